"""One real run over more lines than any buffer holds, compared with what was made."""

import gzip
import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from conftest import Lake
from eventlake.audit.verify import verify
from eventlake.lake import ids

EVENTS = 300_000
FILES = 8
COPIED = 100  # every so many events come twice, the second time in another file
BAD = (b"{}", b"no event", b'{"type":"track","event":5}', b'{"type":"page"')
BLANK = (b"", b"  ", b"\r")
TABLES = {"track_seen": "Seen", "track_clicked": "Clicked", "track_bought": "Bought"}


class Event(NamedTuple):
    number: int

    @property
    def message_id(self) -> str:
        return f"m-{self.number}"

    @property
    def table(self) -> str:
        """Most are of one table, so that it is split, and each share of it is more than is published at once."""
        names = list(TABLES)
        return names[0] if self.number % 10 < 7 else names[1 + self.number % 2]

    @property
    def file(self) -> int:
        return self.number * FILES // EVENTS

    @property
    def total(self) -> str:
        """Now and then with more digits than a double holds."""
        return f"{self.number}.{'25' if self.number % 1000 else '12345678901234567'}"

    @property
    def title(self) -> str:
        return "caf\u00e9" if self.number % 3 else 'a "b"'

    def line(self, hour: int = 0) -> bytes:
        title = self.title.replace('"', '\\"')
        if self.number % 500 == 1:  # some are read one by one
            title = title.replace("\u00e9", "\\u00e9")
        return (
            f'{{"type":"track","event":"{TABLES[self.table]}","messageId":"{self.message_id}",'
            f'"receivedAt":"2026-11-15T{hour + self.number % 4:02}:{self.number % 60:02}:07.5Z",'
            f'"properties":{{"n":{self.number},"total":{self.total},"title":"{title}","none":null}},"context":{{}}}}'
        ).encode()


def made() -> Iterator[list[bytes]]:
    """The lines of each file."""
    events = [Event(number) for number in range(EVENTS)]
    files = [[] for _ in range(FILES)]  # type: list[list[bytes]]
    for event in events:
        files[event.file].append(event.line())
        if event.number % COPIED == 0:
            files[-1 - event.file].append(event.line(hour=4))  # received later: this one is the copy
    for number, lines in enumerate(files):
        lines[1000:1000] = BAD
        lines[-10:-10] = [*BLANK * (number + 1)]
        yield lines


def rows_of(lake: Lake, table: str) -> Iterator[tuple[str, int, str, str]]:
    """All rows of a table, from the files that the ledger names."""
    for file in lake.place.ledger.data_files(lake.source.id, table):
        path = lake.root / file.path
        content = path.read_bytes()
        assert (len(content), hashlib.blake2b(content, digest_size=16).hexdigest()) == (file.size, file.digest)
        rows = pq.read_table(path, partitioning=None)
        assert rows.num_rows == file.rows
        columns = [rows.column(name).to_pylist() for name in ("message_id", "properties_n", "properties_title")]
        totals = rows.column("properties_total").to_pylist()
        rescued = (
            rows.column("_rescued_data").to_pylist() if "_rescued_data" in rows.column_names else [None] * len(rows)
        )
        for message_id, number, title, total, odd in zip(*columns, totals, rescued, strict=True):
            sent = odd.partition('"value":')[2].partition(",")[0] if odd else format(total, ".2f")
            yield message_id, number, title, sent


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_real_run_of_300000_lines_gives_exactly_what_was_made(lake: Lake) -> None:
    lines_made = []
    for number, lines in enumerate(made()):
        lake.put_bytes(gzip.compress(b"\n".join(lines), 1), name=f"{number}.gz")
        lines_made.append(lines)
    report = lake.sync()

    # The books: of the run, and of each raw file.
    copies = EVENTS // COPIED
    bad = len(BAD) * FILES
    blank = sum(len(BLANK) * (number + 1) for number in range(FILES))
    assert sum(map(len, lines_made)) == EVENTS + copies + bad + blank
    books = report[0]["books"]
    expected = {"lines": EVENTS + copies + bad, "loaded": EVENTS, "duplicates": copies, "quarantined": bad}
    assert {name: books[name] for name in expected} == expected
    by_file = Counter(Event(number).file for number in range(EVENTS))
    copied = Counter(FILES - 1 - Event(number).file for number in range(0, EVENTS, COPIED))
    found = lake.place.ledger.raw_files(lake.source.id)
    assert {path.rpartition("/")[2]: (f.lines, f.loaded, f.duplicates, f.quarantined) for path, f in found.items()} == {
        f"{n}.gz": (by_file[n] + copied[n] + len(BAD), by_file[n], copied[n], len(BAD)) for n in range(FILES)
    }
    quarantined = lake.query("select raw_file, line, content from __segment_datalake.quarantine order by all")
    assert [(row["raw_file"].rpartition("/")[2], row["line"], row["content"]) for row in quarantined] == sorted(
        (f"{number}.gz", 1001 + place, line) for number in range(FILES) for place, line in enumerate(BAD)
    )

    # The tables: every message once, with its own values, in files that are what the ledger says.
    assert sorted(lake.tables()) == sorted(TABLES)
    events = [Event(number) for number in range(EVENTS)]
    for table in TABLES:
        sent = Counter((e.message_id, e.number, e.title, e.total) for e in events if e.table == table)
        assert Counter(rows_of(lake, table)) == sent
    named = {file.path for file in lake.place.ledger.data_files(lake.source.id)}
    assert named == {f"segment-data/data/{path}" for path in lake.data_files()}
    assert max(file.rows for file in lake.place.ledger.data_files(lake.source.id)) > 10_000

    # The index: exactly these messages, each with its table.
    indexed: Counter[tuple[bytes, int]] = Counter()
    for file in lake.place.ledger.index_files(lake.source.id):
        with lake.place.storage.open_input(file.path) as source:
            messages = ids.IdFile(source).read(ids.Share(0, ids.BUCKETS), ids.INDEX_FIELDS)
            halves = zip(messages["high"].tolist(), messages["low"].tolist(), strict=True)
            hashes = [high.to_bytes(8, "big") + low.to_bytes(8, "big") for high, low in halves]
            indexed.update(zip(hashes, messages["route"].tolist(), strict=True))
    keys = {table: ids.route_hash((table,)) for table in TABLES}
    assert indexed == Counter(
        (hashlib.blake2b(event.message_id.encode(), digest_size=16).digest(), keys[event.table]) for event in events
    )
    assert verify(lake.workspace, lake.connection, lake.runner) == []
