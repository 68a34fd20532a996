"""The sizes at which code takes another way: small ones, so that few events cross them. What comes out is the same."""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa
from hypothesis import example, given
from hypothesis import strategies as st

from conftest import RECEIVED, InProcess, Lake, of_lakes, track
from eventlake.archive.reader import ReadSizes
from eventlake.audit.verify import verify
from eventlake.control import database
from eventlake.lake import ids
from eventlake.lake.lines_file import LineSizes
from eventlake.lake.parquet import FileSizes
from eventlake.reading.scanner import ScanSizes
from eventlake.sync import jobs
from eventlake.sync.shares import ShareSizes
from eventlake.sync.work import Sizes
from eventlake.tasks.publish import PublishSizes
from eventlake.tasks.staged import StageSizes
from strategies import canonical, events, json_lines, plain_line, read_exactly

few = st.integers(1, 4)
some = st.integers(1, 40)


@st.composite
def small_sizes(draw: st.DrawFn) -> Sizes:
    """Sizes at random. Limits are none of them: what is longer than a limit is treated otherwise by intent."""
    fewest = draw(few)
    return Sizes(
        ShareSizes(
            bytes_per_stage_task=draw(st.integers(1, 500)),
            fewest_bytes_per_stage_task=draw(st.integers(1, 500)),
            files_per_stage_task=draw(few),
            bytes_to_open_a_file=draw(few),
            ids_per_share=draw(few),
            ids_for_one_share=draw(some),
            fewest_rows_per_share=fewest,
            most_rows_per_share=fewest + draw(few),
        ),
        StageSizes(
            read=ReadSizes(block=draw(st.integers(2, 300))),
            at_once=draw(st.sampled_from([True, True, True, False])),
            scan=ScanSizes(
                places=draw(st.integers(12, 200)),
                bytes_of_keys=draw(st.integers(100, 2000)),
                names=draw(some),
                bytes_of_names=draw(st.integers(1, 500)),
                columns=draw(st.integers(1, 500)),
                values_per_line=draw(some),
            ),
            quarantine=LineSizes(bytes_at_once=draw(some), lines_at_once=draw(few)),
            bytes_at_once=draw(st.integers(1, 3000)),
            bytes_per_line=draw(some),
            rows_per_chunk=draw(few),
            bytes_in_buffers=draw(st.integers(0, 1000)),
            ids_per_segment=draw(few),
            names_remembered=draw(few),
        ),
        PublishSizes(
            rows_at_once=draw(few),
            bytes_at_once=draw(st.integers(1, 2000)),
            bytes_fetched_at_once=draw(st.integers(1, 2000)),
            cells_at_once=draw(some),
            carried_at_once=draw(few),
            files=FileSizes(
                open_files=draw(few), bytes_in_memory=draw(st.sampled_from([1, 1 << 20])), rows_per_group=draw(few)
            ),
        ),
    )


class Outcome(NamedTuple):
    """What is in a lake, as people and the next sync see it."""

    rows: dict[str, list[str]]
    columns: dict[str, list[tuple[str, str]]]
    messages: Counter[tuple[int, ...]]  # of the index
    raw_files: list[tuple[Any, ...]]
    quarantine: list[Any]
    books: list[dict[str, Any]]


def outcome(lake: Lake, reports: list[list[dict[str, Any]]]) -> Outcome:
    ledger, source = lake.place.ledger, lake.source.id
    names = ("path", "lines", "loaded", "duplicates", "quarantined", "checksum", "digest", "first_received")
    quarantine = "select raw_file, line, reason, detail, size, content from __segment_datalake.quarantine order by all"
    return Outcome(
        {table: sorted(repr(sorted(_cells(row))) for row in rows) for table, rows in lake.all_rows().items()},
        {table: list(lake.types(table).items()) for table in lake.tables()},
        index_of(lake),
        [tuple(getattr(file, name) for name in names) for _, file in sorted(ledger.raw_files(source).items())],
        lake.query(quarantine),
        [line["books"] for report in reports for line in report],
    )


def _cells(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        # Not json.loads: an integer may have more digits than Python reads.
        yield name, canonical(read_exactly(value)) if name == "_rescued_data" and value else value


def index_of(lake: Lake) -> Counter[tuple[int, ...]]:
    """Every message of the index, as often as it is there."""
    found: Counter[tuple[int, ...]] = Counter()
    for file in lake.place.ledger.index_files(lake.source.id):
        with lake.place.storage.open_input(file.path) as source:
            messages = ids.IdFile(source).read(ids.Share(0, ids.BUCKETS), ids.INDEX_FIELDS)
            found.update(zip(*(messages[name].tolist() for name in ids.INDEX_FIELDS), strict=True))
    return found


@contextmanager
def new_lake(sizes: Sizes, dialect: str) -> Iterator[Lake]:
    folder = Path(tempfile.mkdtemp(prefix="eventlake-sizes-"))
    settings = f'[lake]\nroot = "lake"\ndialect = "{dialect}"\n'
    try:
        yield Lake(folder / "workspace", InProcess(), sizes=sizes, settings=settings)
    finally:
        shutil.rmtree(folder)


few_ids = st.sampled_from(["a", "b", "c", "d", "e", "f"])
few_times = st.sampled_from([f"2026-11-15T{hour}:00:00Z" for hour in (10, 11, 12, 13)])
broken = st.sampled_from([b"", b" \r", b"no event", b"{}", b'{"type":"track"}', b'{"type":"page","a":[NaN]}'])


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    event = draw(events()) | {"messageId": draw(few_ids), "receivedAt": draw(few_times)}
    return draw(json_lines(st.just(event)) | st.just(plain_line(event)) | broken)


@st.composite
def ordinary(draw: st.DrawFn) -> bytes:
    """Lines of a few tables, which are read as columns; many of one kind."""
    properties = {"n": draw(some), "total": draw(some) / 4, "s": draw(st.sampled_from(["x", "é", None]))}
    name, message_id = draw(st.sampled_from(["Seen", "Clicked"])), f"m{draw(st.integers(0, 30))}"
    return plain_line(track(name, message_id, receivedAt=draw(few_times), properties=properties))


FILES = st.lists(st.lists(ordinary() | hostile(), min_size=1, max_size=8), min_size=2, max_size=4)


PLAIN = plain_line(track("Seen", "m0"))
MANY_DIGITS = b'{"type":"track","event":"Seen","messageId":"a","timestamp":%s,"receivedAt":"2026-11-15T10:00:00Z"}' % (
    b"7" * 5000
)


@of_lakes
@given(FILES, small_sizes(), st.sampled_from(["segment", "rudderstack"]))
@example([[PLAIN], [MANY_DIGITS]], Sizes(), "segment")
@example([[PLAIN], [MANY_DIGITS]], Sizes(), "rudderstack")
def test_a_lake_is_the_same_at_any_size_of_anything(files: list[list[bytes]], sizes: Sizes, dialect: str) -> None:
    """Two syncs, the second of which meets copies and columns, and a replay that lacks a raw file."""

    def loaded(at: Sizes) -> list[Outcome]:
        with new_lake(at, dialect) as lake:
            for lines in files[:-1]:
                lost = lake.put(*lines)
            first = lake.sync()
            second = lake.sync_of(*files[-1], files[0][0])
            whole = outcome(lake, [first, second])
            assert verify(lake.workspace, lake.connection, lake.runner) == []
            lost.unlink()
            replayed = lake.run(jobs.replay(lake.connection, None, None))
            return [whole, outcome(lake, [replayed])]

    for found, expected in zip(loaded(sizes), loaded(Sizes()), strict=True):
        for part in Outcome._fields:
            assert getattr(found, part) == getattr(expected, part), part


# One size at a time, and what would be noticed


def sync_at(tmp_path: Path, sizes: Sizes, *lines: dict[str, Any]) -> Lake:
    lake = Lake(tmp_path / "workspace", InProcess(), sizes=sizes)
    report = lake.sync_of(*lines)
    assert report[0]["books"]["loaded"] == len({line["messageId"] for line in lines})
    return lake


def numbers(lake: Lake) -> dict[str, int]:
    return {row["message_id"]: row["properties_n"] for row in lake.rows("track_clicked")}


EVENTS = [track(message_id=f"m{number}", properties={"n": number}) for number in range(30)]
EXPECTED = {f"m{number}": number for number in range(30)}
TWO_AT_A_TIME = StageSizes(read=ReadSizes(block=2 * len(json.dumps(EVENTS[0]))), bytes_at_once=1)


@pytest.mark.parametrize("at_once", [1, 4, 30])
def test_each_row_has_the_values_of_its_own_line_however_many_are_read_at_once(tmp_path: Path, at_once: int) -> None:
    size = len(json.dumps(EVENTS[0])) + 1
    sizes = StageSizes(read=ReadSizes(block=size), bytes_at_once=at_once * size, bytes_per_line=0)
    assert numbers(sync_at(tmp_path, Sizes(stage=sizes), *EVENTS)) == EXPECTED


@pytest.mark.parametrize("at_once", [1, 4, 30, 31])
def test_no_group_of_rows_is_lost_on_the_way_to_its_table(tmp_path: Path, at_once: int) -> None:
    sizes = Sizes(stage=TWO_AT_A_TIME, publish=PublishSizes(rows_at_once=at_once))
    assert numbers(sync_at(tmp_path, sizes, *EVENTS)) == EXPECTED


@pytest.mark.parametrize("stage", [StageSizes(), StageSizes(at_once=False)], ids=["at once", "one by one"])
def test_of_copies_received_at_once_the_same_wins_whatever_their_files_are_called(
    tmp_path: Path, stage: StageSizes
) -> None:
    copies = [track(message_id="m", properties={"n": number}) for number in (1, 2)]
    winners = []
    for order, first_file in enumerate((copies, copies[::-1])):
        lake = Lake(tmp_path / str(order), InProcess(), sizes=Sizes(stage=stage))
        for name, copy in zip("ab", first_file, strict=True):
            lake.put(copy, name=name)
        lake.sync()
        winners.append(lake.row("track_clicked")["properties_n"])
    assert winners[0] == winners[1]


@pytest.mark.parametrize("stage", [StageSizes(), StageSizes(at_once=False)], ids=["at once", "one by one"])
def test_no_digit_of_a_number_is_lost(tmp_path: Path, stage: StageSizes) -> None:
    sent = ["1901749037.9184876", "9.290736625851781", "190174903.79184876", "123456.123456"]
    lake = Lake(tmp_path / "workspace", InProcess(), sizes=Sizes(stage=stage))
    texts = [json.dumps(track(message_id=f"m{n}", properties={"x": "_"})).replace('"_"', x) for n, x in enumerate(sent)]
    lake.sync_of(*(text.replace(" ", "").encode() for text in texts))
    found = []
    for row in lake.rows("track_clicked"):
        rescued = json.loads(row["_rescued_data"] or "{}", parse_float=str).get("/properties/x")
        found.append(rescued["value"] if rescued else format(row["properties_x"], "f"))
    assert found == sent


@pytest.mark.parametrize("cells", [1, 20, 21, 100, 1000])
def test_a_table_with_many_columns_is_written_some_rows_at_a_time(tmp_path: Path, cells: int) -> None:
    lines = [event | {"receivedAt": RECEIVED.replace("T10", f"T{10 + n * 7 % 5}")} for n, event in enumerate(EVENTS)]
    lake = sync_at(tmp_path, Sizes(publish=PublishSizes(cells_at_once=cells)), *lines)
    assert numbers(lake) == EXPECTED
    assert len(lake.data_files()) == 5
    assert lake.parquet("track_clicked").num_rows == 30


def test_files_of_many_row_groups_hold_every_row(tmp_path: Path) -> None:
    lake = sync_at(tmp_path, Sizes(publish=PublishSizes(files=FileSizes(rows_per_group=7))), *EVENTS)
    (name,) = lake.data_files()
    assert numbers(lake) == EXPECTED
    assert lake.parquet("track_clicked").num_rows == 30
    assert pq.ParquetFile(lake.root / "segment-data" / "data" / name).metadata.num_row_groups == 5


def test_a_backfill_with_few_open_files_holds_every_row(tmp_path: Path) -> None:
    sizes = Sizes(publish=PublishSizes(files=FileSizes(open_files=2), rows_at_once=6), stage=TWO_AT_A_TIME)
    lines = [
        event | {"receivedAt": RECEIVED.replace("T10", f"T{10 + number % 5}")} for number, event in enumerate(EVENTS)
    ]
    lake = sync_at(tmp_path, sizes, *lines)
    assert numbers(lake) == EXPECTED
    assert len(lake.data_files()) > 5  # an hour that comes again gets another file


@given(st.lists(st.integers(0, 9), max_size=20, unique=True), st.lists(st.integers(0, 9), unique=True), few)
def test_rows_of_the_database_replace_themselves_however_many_go_in_at_once(
    first: list[int], second: list[int], at_once: int
) -> None:
    engine = sa.create_engine("sqlite://")
    database.metadata.create_all(engine)
    table = database.quarantine_files
    for run, paths in (("one", first), ("two", second), ("two", second)):
        rows = [{"path": f"p{number}", "lake": "default", "source_id": "s", "run_id": run} for number in paths]
        with engine.begin() as connection:
            database.upsert(connection, table, rows, at_once=at_once)
    with engine.connect() as connection:
        found = {row.path: row.run_id for row in connection.execute(sa.select(table))}
    engine.dispose()
    assert found == {f"p{n}": "one" for n in first} | {f"p{n}": "two" for n in second}
