"""Rows that only the lake has, back in the form of staged rows."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventlake.events import instants
from eventlake.lake import ids
from eventlake.lake.staged_rows import StagedRows
from eventlake.schema import rescue
from eventlake.schema.cast import CUT, NO_ROOM, ROUNDED, SPELLING, TOO_LARGE
from eventlake.schema.claims import SEGMENT
from eventlake.schema.evolve import Column
from eventlake.schema.kinds import Kind
from eventlake.schema.rescue import Rescued
from eventlake.schema.types import ColumnType
from eventlake.storage.local import LocalStorage
from eventlake.tasks import carried_over
from eventlake.tasks.publish import PublishSizes
from staged_rows import RESCUED, rows_of

COLUMNS = [
    Column("message_id", ColumnType.STRING, "/messageId"),
    Column("received_at", ColumnType.TIMESTAMP, "/receivedAt"),
    Column("properties_n", ColumnType.BIGINT, "/properties/n"),
    Column("properties_d", ColumnType.DECIMAL, "/properties/D"),
    Column("properties_b", ColumnType.BOOLEAN, "/properties/b"),
    Column("properties_s", ColumnType.STRING, "/properties/s"),
    Column("properties_t", ColumnType.TIMESTAMP, "/properties/t"),
]
Cell = tuple[str, str, Kind]  # column, pointer and kind


def carried_rows(storage: LocalStorage, *args: Any) -> Iterator[StagedRows]:
    """The rows as a publish task takes them."""
    return carried_over.carried_rows(storage, SEGMENT, [("track_a",)], *args, at_once=PublishSizes().carried_at_once)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def data_file(storage: LocalStorage, path: str, *rows: dict[str, Any]) -> str:
    schema = pa.schema([*((c.name, c.type.arrow) for c in COLUMNS), ("_rescued_data", pa.string())])
    with storage.open_output(path) as sink:
        pq.write_table(pa.Table.from_pylist([{"received_at": at(1_000_000), **row} for row in rows], schema), sink)
    return path


def id_file(
    storage: LocalStorage, path: str, *message_ids: str, received: int = 1_000_000, table: str = "track_a"
) -> str:
    arrays = ids.from_digests([ids.message_hash(one) for one in message_ids])
    arrays["received"] = np.full(len(message_ids), received, ids.FIELDS["received"])
    arrays["route"] = np.full(len(message_ids), ids.route_hash((table,)), ids.FIELDS["route"])
    with storage.open_output(path) as sink:
        ids.write(sink, ids.Ids(arrays).ordered())
    return path


def at(micros: int) -> Any:
    return pa.scalar(micros, pa.timestamp("us", "UTC")).as_py()


def carried(storage: LocalStorage, *rows: dict[str, Any]) -> StagedRows:
    """All of these rows, carried over from one file."""
    data = data_file(storage, "data.parquet", *rows)
    named = [
        id_file(storage, f"ids-{row['message_id']}", row["message_id"], received=instants.micros_of(received))
        for row in rows
        if (received := row.get("received_at", at(1_000_000)))
    ]
    (batch,) = carried_rows(storage, [data], COLUMNS, named)
    return batch


def cells(batch: StagedRows, row: int = 0) -> dict[Cell, Any]:
    return {(*place,): value for place, value in rows_of(batch)[row].items() if place != RESCUED}


def of_properties(batch: StagedRows, row: int = 0) -> dict[Cell, Any]:
    return {cell: value for cell, value in cells(batch, row).items() if cell[0].startswith("properties")}


def row_ids(batches: list[StagedRows]) -> list[list[Any]]:
    return [
        [cells(batch, row)["message_id", "/messageId", Kind.TEXT] for row in range(len(batch))] for batch in batches
    ]


def test_only_the_rows_whose_messages_are_named_are_carried(storage: LocalStorage) -> None:
    files = [data_file(storage, f"{name}.parquet", *({"message_id": f"{name}{n}"} for n in range(3))) for name in "abc"]
    named = [id_file(storage, "ids-1", "a0", "c1"), id_file(storage, "ids-2", "a2", "other")]
    assert row_ids(list(carried_rows(storage, files, COLUMNS, named))) == [["a0", "a2"], ["c1"]]
    assert list(carried_rows(storage, files, COLUMNS, [])) == []
    assert list(carried_rows(storage, [], COLUMNS, ["there is no such file"])) == []


def test_of_a_message_that_is_there_more_than_once_only_the_row_that_is_named_is_carried(storage: LocalStorage) -> None:
    data = data_file(storage, "data.parquet", *({"message_id": "m", "received_at": at(n)} for n in (1, 2, 3)))
    named = [id_file(storage, "ids-1", "m", received=2), id_file(storage, "ids-2", "m", received=3, table="track_b")]
    (batch,) = carried_rows(storage, [data], COLUMNS, named)
    assert batch.received.tolist() == [2]


def test_many_rows_are_carried_some_thousand_at_a_time(storage: LocalStorage) -> None:
    names = [f"m{n}" for n in range(5000)]
    data = data_file(storage, "data.parquet", *({"message_id": name} for name in names))
    batches = list(carried_rows(storage, [data], COLUMNS, [id_file(storage, "ids", *names)]))
    assert [len(batch) for batch in batches] == [4096, 904]
    assert [one for part in row_ids(batches) for one in part] == names


def test_cells_come_back_as_they_would_be_read_from_a_line(storage: LocalStorage) -> None:
    moment = at(1_500_000)
    row = {
        "message_id": "m1",
        "received_at": moment,
        "properties_n": -(2**63),
        "properties_d": Decimal("9" * 32 + ".123450"),
        "properties_b": False,
        "properties_s": "",
        "properties_t": moment,
    }
    batch = carried(storage, row, {"message_id": "m2", "properties_d": Decimal("100.000000")})
    assert cells(batch) == {
        ("message_id", "/messageId", Kind.TEXT): "m1",
        ("received_at", "/receivedAt", Kind.TEXT): "1970-01-01T00:00:01.500000Z",
        ("properties_n", "/properties/n", Kind.INTEGER): -(2**63),
        ("properties_d", "/properties/D", Kind.NUMBER): "9" * 32 + ".12345",
        ("properties_b", "/properties/b", Kind.BOOLEAN): False,
        ("properties_s", "/properties/s", Kind.TEXT): "",
        ("properties_t", "/properties/t", Kind.TEXT): "1970-01-01T00:00:01.500000Z",
    }
    assert of_properties(batch, 1) == {("properties_d", "/properties/D", Kind.NUMBER): "100"}
    assert batch.received.tolist() == [1_500_000, 1_000_000]
    assert batch.rescued is None


def test_rows_are_received_when_they_were(storage: LocalStorage) -> None:
    batch = carried(storage, {"message_id": "m", "received_at": at(instants.LAST)})
    assert batch.received.tolist() == [instants.LAST]


@pytest.mark.parametrize(
    ("entry", "cell"),
    [
        (Rescued("/properties/n", '"n/a"', "not a bigint"), (Kind.TEXT, "n/a")),
        (Rescued("/properties/n", "12.50", "not a whole number"), (Kind.NUMBER, "12.50")),
        (Rescued("/properties/n", "1e400", TOO_LARGE), (Kind.NUMBER, "1e400")),
        (Rescued("/properties/n", '[1,"x"]', "not a bigint"), (Kind.JSON, '[1,"x"]')),
        (Rescued("/properties/n", '{"a":[]}', "not a bigint"), (Kind.JSON, '{"a":[]}')),
        (Rescued("/properties/n", "true", "not a bigint"), (Kind.BOOLEAN, True)),
        (Rescued("/properties/n", "7", NO_ROOM), (Kind.INTEGER, 7)),
    ],
)
def test_a_value_that_did_not_fit_gets_another_chance(
    storage: LocalStorage, entry: Rescued, cell: tuple[Kind, Any]
) -> None:
    batch = carried(storage, {"message_id": "m1", "_rescued_data": rescue.to_json([entry])})
    assert of_properties(batch) == {("properties_n", entry.pointer, cell[0]): cell[1]}
    assert batch.rescued is None


@pytest.mark.parametrize("reason", [ROUNDED, CUT, SPELLING])
def test_the_original_of_a_cell_that_is_not_exact_takes_its_place(storage: LocalStorage, reason: str) -> None:
    text = rescue.to_json([Rescued("/properties/d", '"12.50"', reason)])
    batch = carried(storage, {"message_id": "m1", "properties_d": Decimal("12.5"), "_rescued_data": text})
    assert of_properties(batch) == {("properties_d", "/properties/d", Kind.TEXT): "12.50"}
    assert batch.rescued is None


def test_what_has_no_cell_stays_rescued(storage: LocalStorage) -> None:
    entries = [
        Rescued("/properties/N", "2", "not a bigint"),  # another key has the cell
        Rescued("/properties/o", "{}", "an empty object has no column"),
        Rescued("/properties/s", "1", "the same key came before in this object"),
    ]
    rows: list[dict[str, Any]] = [
        {"message_id": "m1"},
        {"message_id": "m2", "properties_n": 1, "_rescued_data": rescue.to_json(entries)},
        {"message_id": "m3"},
    ]
    batch = carried(storage, *rows)
    assert [of_properties(batch, row) for row in range(3)] == [
        {},
        {("properties_n", "/properties/n", Kind.INTEGER): 1},
        {},
    ]
    assert batch.rescued
    texts = batch.rescued.values.to_pylist()
    assert (texts[0], texts[2]) == (None, None)
    assert json.loads(texts[1]) == json.loads(rescue.to_json(entries))


def test_of_two_rescued_values_for_one_column_the_first_gets_the_cell(storage: LocalStorage) -> None:
    entries = [Rescued("/properties/N", '"a"', "not a bigint"), Rescued("/properties/n", '"b"', "not a bigint")]
    batch = carried(storage, {"message_id": "m1", "_rescued_data": rescue.to_json(entries)})
    assert of_properties(batch) == {("properties_n", "/properties/N", Kind.TEXT): "a"}
    assert batch.rescued
    assert batch.rescued.values.to_pylist() == [rescue.to_json(entries[1:])]


def test_a_file_from_before_anything_was_rescued_is_carried_too(storage: LocalStorage) -> None:
    data = data_file(storage, "data.parquet", {"message_id": "m1", "properties_n": 5})
    without = pq.read_table(storage.full(data)).drop_columns(["_rescued_data"])
    pq.write_table(without, storage.full("older.parquet"))
    (batch,) = carried_rows(storage, ["older.parquet"], COLUMNS, [id_file(storage, "ids", "m1")])
    assert of_properties(batch) == {("properties_n", "/properties/n", Kind.INTEGER): 5}
