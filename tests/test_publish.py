"""Staged rows become the rows of a table: what is kept, how it is cast, and which files it is in."""

import json
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.events import instants
from eventlake.lake import ids, packing
from eventlake.lake.parquet import FileSizes
from eventlake.lake.segment import SegmentDialect
from eventlake.lake.segments import NONE, RECORD, Segment, records_of, segments_of
from eventlake.lake.staging import StagedFile, read_rows
from eventlake.reading import exact_json
from eventlake.reading.flatten import TableColumns
from eventlake.reading.route_buffer import RouteBuffer
from eventlake.schema.cast import NO_ROOM, ROUNDED
from eventlake.schema.evolve import Column
from eventlake.schema.types import ColumnType
from eventlake.storage.base import Part
from eventlake.storage.local import LocalStorage
from eventlake.tasks.dropped import write_dropped
from eventlake.tasks.publish import PublishContext, Published, PublishSizes, TableShare, publish

COLUMNS = (
    Column("message_id", ColumnType.STRING, "/messageId"),
    Column("received_at", ColumnType.TIMESTAMP, "/receivedAt"),
    Column("n", ColumnType.BIGINT, "/n"),
    Column("d", ColumnType.DECIMAL, "/d"),
    Column("product_id", ColumnType.STRING, "/productId"),
)
STAGED = ("s0", "s1")
DAY = 20_000 * 86_400_000_000
Lost = tuple[int, int, bool]  # staged file, message, whether it has rows in the tables of a replay


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def message(number: int, **fields: Any) -> dict[str, Any]:
    return {"messageId": f"m{number}", **fields}


def stage(storage: LocalStorage, path: str, *chunks: Sequence[dict[str, Any] | bytes]) -> bytes:
    """Stage events of one table, one segment for each chunk."""
    segments: list[Segment] = []
    rows = 0
    with StagedFile(storage, path) as staged:
        for chunk in chunks:
            buffer = RouteBuffer(("track_a",), [TableColumns(column_limit=100)])
            for sent in chunk:
                line = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
                event, set_aside = exact_json.parse(line)
                instant = instants.parse(event.get("receivedAt", ""))
                received = instant.micros if instant else DAY
                buffer.add(event, set_aside, message_hash=bytes(16), received=received, digest=0, file=0)
            segments.append(staged.append(buffer.take().piece, rows))
            rows += len(chunk)
    number = STAGED.index(path)
    return share_of(segment._replace(file=number) for segment in segments)


def share_of(segments: Iterable[Segment]) -> bytes:
    """A share with just these segments, in this order."""
    return packing.packed_records(np.frombuffer(records_of(segments), RECORD))


def context(storage: LocalStorage, **changes: Any) -> PublishContext:
    given = {"staged_paths": STAGED, "dropped": (), "carried": (), "keep_rounded": True, **changes}
    return PublishContext("run", storage, SegmentDialect("src", "web"), **given)


def dropped(storage: LocalStorage, path: str, *lost: Lost) -> str:
    files, numbers, in_scope = (np.array(values) for values in zip(*lost, strict=True))
    assert write_dropped(storage, path, files, numbers, in_scope) == path
    return path


def tables(storage: LocalStorage, published: Published) -> list[pa.Table]:
    assert sum(file.rows for file in published.files) == published.rows
    return [pq.read_table(storage.full(file.written)) for file in published.files]


def rows_of(storage: LocalStorage, published: Published) -> list[dict[str, Any]]:
    return [row for table in tables(storage, published) for row in table.to_pylist()]


def names_in(storage: LocalStorage, published: Published) -> list[list[str]]:
    """The messages in each file."""
    return [table.column("message_id").to_pylist() for table in tables(storage, published)]


def only(storage: LocalStorage, *events: dict[str, Any] | bytes, columns: Any = COLUMNS, **more: Any) -> Published:
    """These events, published as one share."""
    keep_rounded = more.pop("keep_rounded", True)
    share = TableShare("track_a", columns, stage(storage, "s0", events), **more)
    (published,) = publish(context(storage, keep_rounded=keep_rounded), [share])
    return published


def test_all_rows_but_those_that_lost_are_published(storage: LocalStorage) -> None:
    chunks = [[message(n) for n in range(start, start + 3)] for start in (0, 3, 6, 9, 12, 15)]
    segments = [*segments_of(stage(storage, "s0", *chunks[:4])), *segments_of(stage(storage, "s1", *chunks[4:]))]
    mixed = share_of(segments[number] for number in (4, 0, 1, 5, 2, 3))
    lost = [
        dropped(storage, "dropped-1", *((0, number, False) for number in (7, 2, 6, 3)), (1, 5, False)),
        dropped(storage, "dropped-2", (0, 8, False), (0, 11, False), (2, 1, False)),
        dropped(storage, "dropped-3", (1, 99, False)),
    ]
    published = publish(
        context(storage, dropped=tuple(lost), sizes=PublishSizes(rows_at_once=2)),
        [TableShare("track_a", COLUMNS, mixed), TableShare("track_b", COLUMNS, NONE)],
    )
    assert [(part.table_key, part.rows) for part in published] == [("track_a", 11), ("track_b", 0)]
    assert names_in(storage, published[0]) == [[f"m{n}" for n in (12, 13, 14, 0, 1, 4, 5, 15, 16, 9, 10)]]
    assert published[1].files == []


def test_a_table_outside_of_a_replays_scope_gets_the_rows_of_new_messages_only(storage: LocalStorage) -> None:
    segments = stage(storage, "s0", [message(n) for n in range(4)])
    lost = dropped(storage, "dropped", (0, 0, False), (0, 2, True), (0, 3, True))
    for is_in_scope, names in ((True, ["m1", "m2", "m3"]), (False, ["m1"])):
        share = TableShare("track_a", COLUMNS, segments, is_in_scope=is_in_scope)
        (published,) = publish(context(storage, dropped=(lost,)), [share])
        assert names_in(storage, published) == [names]


def test_rows_have_the_planned_columns_in_their_order_and_types(storage: LocalStorage) -> None:
    columns = (*COLUMNS[:2], Column("never_sent", ColumnType.BOOLEAN, "/neverSent"), *COLUMNS[2:])
    published = only(
        storage,
        message(1, d=1.5, n="12", receivedAt="2024-10-04T02:00:00.5+01:30"),
        message(2, productId="p", n=3),
        message(3, product_id=4, d=2),
        message(4, productId=True),
        columns=columns,
    )
    (table,) = tables(storage, published)
    assert table.schema.names == [column.name for column in columns]
    assert table.schema.types == [column.type.arrow for column in columns]
    assert table["never_sent"].to_pylist() == [None] * 4
    assert {row["message_id"]: (row["n"], row["d"], row["product_id"]) for row in table.to_pylist()} == {
        "m1": (12, Decimal("1.5"), None),
        "m2": (3, None, "p"),
        "m3": (None, Decimal(2), "4"),
        "m4": (None, None, "true"),
    }
    assert [moment.isoformat() for moment in table["received_at"].to_pylist()] == [
        *["2024-10-04T00:00:00+00:00"] * 3,  # the day of the file
        "2024-10-04T00:30:00.500000+00:00",
    ]
    assert published.rescued == {}


def test_what_does_not_fit_is_kept_beside_its_row_and_counted_by_column(storage: LocalStorage) -> None:
    published = only(
        storage,
        message(0, n=1),
        message(1, n="n/a", d=0.1234567, extra=7.5),
        message(2, extra="x"),
        b'{"messageId":"m3","n":[1],"n":2,"a":{"b":null,"B":{}}}',
        message(4, product_id=1, productId=2),
    )
    rows = {row["message_id"]: row for row in rows_of(storage, published)}
    assert list(rows["m0"]) == [*(column.name for column in COLUMNS), "_rescued_data"]
    kept = {name: json.loads(row["_rescued_data"] or "{}") for name, row in rows.items()}
    assert {
        name: {place: (entry["value"], entry["reason"]) for place, entry in entries.items()}
        for name, entries in kept.items()
    } == {
        "m0": {},
        "m1": {
            "/n": ("n/a", "not a bigint"),
            "/d": (0.1234567, ROUNDED),
            "/extra": (7.5, NO_ROOM),
        },
        "m2": {"/extra": ("x", NO_ROOM)},
        "m3": {
            "/n": ([1], "not a bigint"),
            "/n~#2": (2, "the same key came before in this object"),
            "/a/B": ({}, "an empty object has no column"),
        },
        "m4": {"/productId": (2, "another key has the column product_id in this event")},
    }
    assert rows["m0"]["_rescued_data"] is None
    assert published.rescued == {"n": 3, "d": 1, "extra": 2, "a_b": 1, "product_id": 1}


def test_rounded_values_are_kept_or_not_as_is_set(storage: LocalStorage) -> None:
    published = only(storage, message(1, d=0.1234567), keep_rounded=False)
    (row,) = rows_of(storage, published)
    assert row["d"] == Decimal("0.123457")
    assert "_rescued_data" not in row
    assert published.rescued == {}


@pytest.mark.parametrize("at", [0, 2, 5])
def test_rescued_data_is_where_the_table_has_it_also_if_there_is_none(storage: LocalStorage, at: int) -> None:
    names = [column.name for column in COLUMNS]
    names.insert(at, "_rescued_data")
    for event in (message(1), message(1, n="n/a")):
        (table,) = tables(storage, only(storage, event, rescued_at=at))
        assert table.schema.names == names
        assert table.schema.field("_rescued_data").type == pa.string()


def test_a_value_that_few_rows_have_stays_in_its_row(storage: LocalStorage) -> None:
    events = [message(n, n=n if n in (7, 13) else None) for n in range(20)]
    events[3] = message(3, n="n/a")
    rows = rows_of(storage, only(storage, *events))
    assert {row["message_id"]: row["n"] for row in rows if row["n"] is not None} == {"m7": 7, "m13": 13}
    assert [row["message_id"] for row in rows if row["_rescued_data"]] == ["m3"]


@pytest.mark.parametrize("bytes_at_once", [1, 1000, 1 << 20])
def test_pieces_are_fetched_some_at_a_time(storage: LocalStorage, bytes_at_once: int) -> None:
    share = TableShare("track_a", COLUMNS, stage(storage, "s0", *([message(n)] for n in range(9))))
    (published,) = publish(context(storage, sizes=PublishSizes(bytes_fetched_at_once=bytes_at_once)), [share])
    assert names_in(storage, published) == [[f"m{n}" for n in range(9)]]


def test_large_rows_are_cast_fewer_at_a_time(storage: LocalStorage) -> None:
    """Those that are in memory at once are sorted together: each piece by itself, two and two, or all of them."""
    chunks = [[message(number, receivedAt=f"1970-01-01T00:00:0{number}Z")] for number in (4, 3, 2, 1)]
    share = TableShare("track_a", COLUMNS, stage(storage, "s0", *chunks))
    segment = segments_of(share.segments)[0]
    (piece,) = storage.read_parts([Part("s0", segment.offset, segment.size)])
    size = read_rows(piece, segment, "track_a").nbytes
    for bytes_at_once, order in (
        (1, "4321"),
        (size, "4321"),
        (size + 1, "3412"),
        (2 * size, "3412"),
        (1 << 20, "1234"),
    ):
        (published,) = publish(context(storage, sizes=PublishSizes(bytes_at_once=bytes_at_once)), [share])
        assert names_in(storage, published) == [[f"m{number}" for number in order]]


def test_rows_are_cast_some_at_a_time(storage: LocalStorage) -> None:
    """What is rescued among later rows does not give the earlier ones another column."""
    events = [message(n) for n in range(6)]
    events[3] = message(3, n="n/a")
    share = TableShare("track_a", COLUMNS, stage(storage, "s0", *([event] for event in events)))
    (published,) = publish(context(storage, sizes=PublishSizes(rows_at_once=2)), [share])
    assert sorted(names_in(storage, published)) == [["m0", "m1", "m4", "m5"], ["m2", "m3"]]
    assert published.rows == 6


@pytest.mark.parametrize("cells_at_once", [1, 15, 1000])
def test_rows_are_written_in_the_order_of_their_receipt_some_at_a_time(
    storage: LocalStorage, cells_at_once: int
) -> None:
    at = ["05:00", "03:00", "03:30", "04:59", "03:00", "05:01", "03:29"]
    events = [message(n, n=n if n % 2 else None, receivedAt=f"2024-10-05T{moment}:00Z") for n, moment in enumerate(at)]
    share = TableShare("track_a", COLUMNS, stage(storage, "s0", events[:3], events[3:]))
    (published,) = publish(context(storage, sizes=PublishSizes(cells_at_once=cells_at_once)), [share])
    assert names_in(storage, published) == [["m1", "m4", "m6", "m2"], ["m3"], ["m0", "m5"]]
    for row in rows_of(storage, published):
        number = int(row["message_id"][1])
        assert row["n"] == (number if number % 2 else None)


def test_few_files_are_open_at_once(storage: LocalStorage) -> None:
    hours = ["2024-10-05T01:00:00Z", "2024-10-05T02:00:00Z"]
    chunks = [[message(n, receivedAt=hours[n % 2])] for n in range(3)]
    share = TableShare("track_a", COLUMNS, stage(storage, "s0", *chunks))
    sizes = PublishSizes(rows_at_once=1, files=FileSizes(open_files=1))
    (published,) = publish(context(storage, sizes=sizes), [share])
    assert names_in(storage, published) == [["m0"], ["m1"], ["m2"]]


def test_every_attempt_writes_files_of_its_own(storage: LocalStorage) -> None:
    share = TableShare("track_a", COLUMNS, stage(storage, "s0", [message(1)]))
    (first,), (second,) = (publish(context(storage), [share]) for _ in range(2))
    assert rows_of(storage, first) == rows_of(storage, second)
    paths = [file.path for part in (first, second) for file in part.files]
    assert len({path.rpartition("/")[2] for path in paths}) == 2
    place = "segment-data/data/src/segment_type=track_a/day=2024-10-04/hr=00"
    assert all(re.fullmatch(rf"{place}/run-[0-9a-f]{{16}}-1\.parquet", path) for path in paths)
    written = first.files[0].written
    assert re.fullmatch(r"segment-stage/run/data/([0-9a-f]{16})[0-9a-f]{16}/run-\1-1\.parquet", written)


def test_rows_that_only_the_lake_has_are_published_with_the_others(storage: LocalStorage) -> None:
    old = [message(n, n=n, receivedAt=f"2024-10-04T00:00:0{n}Z") for n in range(1, 4)]
    before = only(storage, *old, message(4, n="n/a"))
    data = before.files[0].written
    digests = [ids.message_hash(name) for name in ("m1", "m3", "m4")]
    arrays = ids.from_digests(digests)
    arrays["received"] = np.array([DAY + 1_000_000, DAY + 3_000_000, DAY], ids.FIELDS["received"])
    arrays["route"] = np.full(3, ids.route_hash(("track_a",)), ids.FIELDS["route"])
    with storage.open_output("carried") as sink:
        ids.write(sink, ids.Ids(arrays).ordered())
    segments = stage(storage, "s1", [message(9)])
    columns = (*COLUMNS[:2], Column("n", ColumnType.STRING, "/n"))
    share = TableShare("track_a", columns, segments, carry_from=(data,), carried_routes=(("track_a",),))
    (published,) = publish(
        context(storage, carried=("carried",), sizes=PublishSizes(rows_at_once=2, carried_at_once=1)), [share]
    )
    assert {row["message_id"]: row["n"] for row in rows_of(storage, published)} == {
        "m1": "1",
        "m3": "3",
        "m4": "n/a",
        "m9": None,
    }
    assert (published.rows, published.rescued) == (4, {})
