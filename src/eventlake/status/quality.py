"""Lines that are not events, and events that were refused: what to look at when numbers are not as expected."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pyarrow.parquet as pq

from eventlake.collector import rejects
from eventlake.collector.options import Spool
from eventlake.collector.rejects import Reject
from eventlake.workspace import Lake, Workspace

MOST = 200
_FILES = 50
_SHOWN = 2000  # characters of a line


class BadLine(NamedTuple):
    lake: str
    source_id: str
    run_id: str
    raw_file: str
    line: int
    reason: str
    detail: str
    size: int
    text: str  # its beginning


class BadLines(NamedTuple):
    lines: list[BadLine]
    reasons: dict[str, int]  # how many of those that were looked at, by reason
    looked_at: int


def quarantined(
    lake: Lake, *, source_id: str | None = None, run_id: str | None = None, reason: str | None = None
) -> BadLines:
    """The lines of the last runs, or of one run, that are not events."""
    shown: list[BadLine] = []
    reasons: Counter[str] = Counter()
    for one in _read(lake, source_id, run_id):
        reasons[one.reason] += 1
        if len(shown) < MOST and reason in (None, one.reason):
            shown.append(one)
    return BadLines(shown, dict(reasons.most_common()), reasons.total())


def _read(lake: Lake, source_id: str | None, run_id: str | None) -> Iterator[BadLine]:
    left = 20 * MOST
    for path in lake.ledger.newest_quarantine_files(_FILES, source_id=source_id, run_id=run_id):
        of = dict(part.partition("=")[::2] for part in path.split("/") if "=" in part)
        with suppress(FileNotFoundError), lake.storage.open_input(path) as source:
            for batch in pq.ParquetFile(source).iter_batches(1000):
                for row in batch.to_pylist():
                    text = bytes(row["content"][:_SHOWN]).decode("utf-8", "replace")
                    yield BadLine(
                        *(lake.name, of.get("source", ""), of.get("run_id", ""), row["raw_file"], row["line"]),
                        *(row["reason"], row["detail"] or "", row["size"], text),
                    )
                left -= batch.num_rows
                if left <= 0:
                    return


def refused(place: Workspace, source_id: str | None = None) -> list[Reject]:
    """What the collector of this machine refused last, newest first."""
    with suppress(OSError):
        found = rejects.latest(Spool(place.folder).rejects, most_bytes=1 << 20)
        return [one for one in reversed(found) if source_id in (None, one.source)][:MOST]
    return []
