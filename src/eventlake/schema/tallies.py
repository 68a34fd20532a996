"""How many values of which kind a column holds, with an example of each: why it has the type that it gets.

Tallies are joined by sum and minimum, so neither order nor split of the events can change the counts.
"""

from collections.abc import Iterable
from typing import NamedTuple

from eventlake.schema.types import ColumnType, Seen

SAMPLE_LENGTH = 40  # characters of a value that a report may show


class Tally(NamedTuple):
    """The values of one kind."""

    seen: Seen  # exactly one
    values: int
    sample: str  # one of them, cut


Tallies = tuple[Tally, ...]  # one for each kind that was seen, in the order of the kinds


def joined(one: Tallies, other: Tallies) -> Tallies:
    whole = {tally.seen: tally for tally in one}
    for tally in other:
        known = whole.get(tally.seen)
        whole[tally.seen] = (
            Tally(tally.seen, known.values + tally.values, min(known.sample, tally.sample)) if known else tally
        )
    return tuple(sorted(whole.values(), key=lambda tally: tally.seen.value))


def union(tallies: Iterable[Tally]) -> Seen:
    seen = Seen.NOTHING
    for tally in tallies:
        seen |= tally.seen
    return seen


def why_text(tallies: Tallies, numbers: ColumnType = ColumnType.DECIMAL) -> str | None:
    """Why a column became text though most of its values are of another type; None if text was to be expected."""
    whole = sum(tally.values for tally in tallies)
    for kinds, word in _TYPED:
        others = [tally for tally in tallies if tally.seen not in kinds]
        odd = sum(tally.values for tally in others)
        if 0 < odd < whole - odd:
            example = max(others, key=lambda tally: tally.values)
            what = f"too large for {numbers.value}" if example.seen is Seen.HUGE else f"not {word}"
            return f"text because {odd:,} of {whole:,} values {'is' if odd == 1 else 'are'} {what}: {example.sample}"
    return None


_TYPED = ((Seen.INTEGER | Seen.NUMBER, "a number"), (Seen.BOOLEAN, "a boolean"), (Seen.TIMESTAMP, "a timestamp"))
