"""A week of earlier syncs, for a source that has none: an index of made-up message ids, as syncs leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from eventlake.control.ledger import Entry, IndexFile
from eventlake.lake import ids
from eventlake.lake.layout import SEGMENT
from eventlake.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

SYNCS = 84  # every two hours of the default look-back
_HOUR = 3_600_000_000
_SEED = 1


def write_index(folder: Path, slug: str, messages: int) -> None:
    """Let the source of a workspace look back on so many messages."""
    place = Workspace.open(folder)
    source = place.sources.get(slug)
    dice = np.random.default_rng(_SEED)
    for number in range(SYNCS):
        at = place.clock.now() - (2 * number + 1) * _HOUR
        run_id = str(at * 1000)
        path = f"{SEGMENT.index}/source={source.id}/{run_id}-0.ids"
        made_up = _ids(dice, messages // SYNCS, at)
        with place.lake().storage.open_output(path) as sink:
            ids.write(sink, made_up)
        file = IndexFile(path, run_id, len(made_up), f"{ids.checksum(made_up):032x}", synced_at=at)
        with place.lake().leases.held(source.id) as lease:
            base = place.lake().ledger.last_run(source.id)
            place.lake().ledger.record(Entry(run_id, source.id, at, report=[], index_files=[file], base=base), lease)
    place.engine.dispose()


def _ids(dice: np.random.Generator, count: int, at: int) -> ids.Ids:
    high, low = (dice.integers(0, 2**64, count, dtype=np.uint64) for _ in range(2))
    received = at - dice.integers(0, 2 * _HOUR, count)
    route = np.full(count, ids.route_hash(("page",)), np.uint64)
    return ids.Ids({"high": np.sort(high), "low": low, "received": received, "route": route})
