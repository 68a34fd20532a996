"""What staged events tell about columns that a table does not have yet."""

from collections.abc import Callable, Collection

from eventlake.lake.staging import RESCUED, Packed
from eventlake.schema.evolve import Evidence, Sighting, join
from eventlake.schema.kinds import Typed
from eventlake.schema.tallies import Tallies


def evidence_of(piece: Packed, table_key: str, known: Collection[str], tallied: Callable[[Typed], Tallies]) -> Evidence:
    """What was seen of columns of a table that are not known."""
    return join(
        {name: Sighting.of(tallied(piece.typed(number)), piece.pointers[number])}
        for name, number in piece.tables[table_key]
        if name not in known and name != RESCUED
    )
