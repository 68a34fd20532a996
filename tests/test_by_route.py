"""Lines that were read as columns become rows of their tables; what is special is left to the exact reader."""

import itertools
import json
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from eventlake.events import instants
from eventlake.events.envelope import reject_reason
from eventlake.lake import ids
from eventlake.lake.dialects import SegmentDialect
from eventlake.lake.staging import RECEIVED, place_of
from eventlake.reading import exact_json, proof
from eventlake.reading.by_route import ByRoute
from eventlake.reading.columns import ColumnReader
from eventlake.reading.flatten import TableColumns
from eventlake.reading.proof import Leaf
from eventlake.reading.route_buffer import RouteBuffer
from eventlake.schema.kinds import Kind

DIALECT = SegmentDialect("src", "web")


def line(call: str, number: int, **fields: Any) -> bytes:
    whole = {"type": call, "messageId": f"m{number}", **fields}
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()


def day_of_file(file: int) -> int:
    return file * 86_400_000_000


class Read:
    """Lines that were read by a reader that knows all of their keys."""

    def __init__(self, lines: list[bytes], known: dict[str, tuple[str, ...]] | None = None) -> None:
        self.lines = lines
        self.asked: list[tuple[str, str]] = []
        self._known = known or {}
        self._buffers: dict[tuple[str, ...], RouteBuffer] = {}
        reader = ColumnReader()
        for each in lines:
            reader.learn(exact_json.parse(each).value)
        self.whole = ByRoute(reader.read(lines), self._buffer_for)

    def _buffer_for(self, call: str, name: str) -> RouteBuffer | None:
        self.asked.append((call, name))
        if reject_reason({"type": call, "event": name}):
            return None
        route = DIALECT.route(call, name)
        columns = [TableColumns(known=self._known.get(key, ()), column_limit=100) for key in route]
        return self._buffers.setdefault(route, RouteBuffer(route, columns))

    @property
    def left(self) -> list[int]:
        """The lines that are for the exact reader."""
        return np.flatnonzero(~self.whole.taken).tolist()

    def rows(self, files: list[int] | None = None) -> dict[str, list[dict[str, Any]]]:
        """The rows of each table: their cells by pointer, and what is kept of their messages."""
        file_of = np.array(files or [0] * len(self.lines))
        found: dict[str, list[dict[str, Any]]] = {}
        for buffer, (messages, tables) in self.whole.rows(self.lines, file_of, day_of_file):
            ((key, staged, _),) = tables
            assert key not in found
            assert (key,) == buffer.route
            assert set(messages["route"].tolist()) == {ids.route_hash(buffer.route)}
            assert staged.column(RECEIVED).to_pylist() == messages["received"].tolist()
            rows = found[key] = []
            for number, cells in enumerate(staged.to_pylist()):
                received = cells.pop(RECEIVED)
                of_line = {name: int(messages[name][number]) for name in ("file", "digest")}
                row = {place_of(name).pointer: value for name, value in cells.items() if value is not None}
                hashed = ids.from_digests([ids.message_hash(row["/messageId"])])
                assert all(messages[half][number] == hashed[half][0] for half in ("high", "low"))
                rows.append({**row, "received": received, **of_line})
        return found


def names_in(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {table: [row["/messageId"] for row in found] for table, found in rows.items()}


def test_every_line_goes_to_the_table_of_its_call_and_event() -> None:
    read = Read(
        [
            line("page", 0, event="Bought"),
            line("track", 1, event="Bought"),
            line("identify", 2),
            line("track", 3, event="Seen"),
            line("track", 4, event="bought"),
            line("page", 5),
            line("track", 6, event="Added"),
            line("track", 7, event="Seen"),
            line("identify", 8, event="Added"),
        ]
    )
    assert read.left == []
    assert names_in(read.rows()) == {
        "page": ["m0", "m5"],
        "track_bought": ["m1", "m4"],
        "identify": ["m2", "m8"],
        "track_seen": ["m3", "m7"],
        "track_added": ["m6"],
    }
    names = ("Bought", "Seen", "bought", "Added")
    assert sorted(read.asked) == sorted([("page", ""), ("identify", ""), *(("track", name) for name in names)])


def test_calls_need_no_events() -> None:
    read = Read([line("page", 0), line("screen", 1), line("alias", 2), line("page", 3)])
    assert names_in(read.rows()) == {"page": ["m0", "m3"], "screen": ["m1"], "alias": ["m2"]}


def test_rows_have_the_values_of_their_lines_and_their_messages_beside_them() -> None:
    times = ["2026-01-02T03:04:05Z", None, "2026-01-02T03:04:05.5Z", "soon", "2026-01-02T03:04:06Z"]
    lines = [
        line("track", n, event="AB"[n % 2], receivedAt=moment, n=n, **({"some": f"s{n}"} if n in (0, 2, 3) else {}))
        for n, moment in enumerate(times)
    ]
    files = [3, 1, 3, 2, 5]
    read = Read(lines)
    assert read.left == []
    rows = read.rows(files)
    assert names_in(rows) == {"track_a": ["m0", "m2", "m4"], "track_b": ["m1", "m3"]}
    for row in [*rows["track_a"], *rows["track_b"]]:
        n = row["/n"]
        sent = times[n]
        instant = instants.parse(sent) if sent else None
        assert row == {
            "/type": "track",
            "/messageId": f"m{n}",
            "/event": "AB"[n % 2],
            "/n": n,
            **({"/receivedAt": sent} if sent else {}),
            **({"/some": f"s{n}"} if n in (0, 2, 3) else {}),
            "received": instant.micros if instant else day_of_file(files[n]),
            "file": files[n],
            "digest": zlib.crc32(lines[n]),
        }


def test_many_rows_of_several_tables_keep_their_order_and_their_values() -> None:
    lines = [line("track", n, event=f"E{n * n % 5}", **({"n": n} if n % 3 else {})) for n in range(300)]
    rows = Read(lines).rows()
    assert {table: [row.get("/n") for row in found] for table, found in rows.items()} == {
        f"track_e{rest}": [n if n % 3 else None for n in range(300) if n * n % 5 == rest] for rest in (0, 1, 4)
    }
    assert [row["/messageId"] for row in rows["track_e0"]] == [f"m{n}" for n in range(0, 300, 5)]


def test_a_place_may_have_values_of_several_kinds_in_several_tables() -> None:
    values: list[Any] = ["x", 1, True, 1.5, "y", 2, None]
    read = Read([line("track", n, event="AAB"[n % 3], v=value) for n, value in enumerate(values)])
    rows = read.rows()
    assert {row["/messageId"]: row.get("/v") for found in rows.values() for row in found} == {
        "m0": "x",
        "m1": 1,
        "m2": True,
        "m3": "1.5",
        "m4": "y",
        "m5": 2,
        "m6": None,
    }
    assert names_in(rows) == {"track_a": ["m0", "m1", "m3", "m4", "m6"], "track_b": ["m2", "m5"]}


@pytest.mark.parametrize(
    "odd",
    [
        b'{"type":"track","event":"A"}',
        b'{"type":"track","event":"A","messageId":""}',
        b'{"type":"track","event":"A","messageId":5}',
        b'{"type":"track","messageId":"m"}',
        b'{"type":"track","event":"","messageId":"m"}',
        b'{"type":"track","event":5,"messageId":"m"}',
        b'{"type":"unknown","event":"A","messageId":"m"}',
        b'{"type":5,"messageId":"m"}',
        b'{"messageId":"m"}',
        b'{"type":"track","event":"A","messageId":"m","n":1e5}',
        b'{"type":"track","event":"A","messageId":"m","Event":"B"}',
        b'{"type":"track","event":"A","messageId":"m","message_id":"B"}',
    ],
)
def test_a_line_with_anything_special_is_left_to_the_exact_reader(odd: bytes) -> None:
    plain = [line("alias", 0), line("track", 1, event="Z"), line("track", 2, event="A"), line("page", 3)]
    read = Read([*plain, odd, line("page", 4)])
    assert read.left == [4]
    assert names_in(read.rows()) == {"alias": ["m0"], "track_z": ["m1"], "track_a": ["m2"], "page": ["m3", "m4"]}


def test_of_places_that_share_a_column_one_has_it_in_each_table() -> None:
    read = Read(
        [
            line("track", 0, event="A", productId=1),
            line("track", 1, event="B", other=1),
            line("track", 2, event="A", product_id=2),
            line("track", 3, event="B", product_id=3),
            line("track", 4, event="A"),
            line("page", 5, product_id=5),
        ],
        known={"page": ("product_id",)},
    )
    (owner,) = {name for row in read.rows()["track_a"] for name in row if name in ("/productId", "/product_id")}
    assert read.left == [2 if owner == "/productId" else 0]
    assert [row["/product_id"] for row in read.rows()["page"]] == [5]
    assert [row.get("/product_id") for row in read.rows()["track_b"]] == [None, 3]


@pytest.mark.long
def test_tables_may_be_more_than_two_bytes_can_number() -> None:
    count = (1 << 16) + 1
    texts = {"type": ["track"] * count, "event": [f"e{n}" for n in range(count)], "messageId": ["m"] * count}
    leaves = [Leaf((key,), Kind.TEXT, np.arange(count), pa.array(values)) for key, values in texts.items()]
    none = np.zeros(count, bool)
    whole = ByRoute(
        proof.Read(~none, leaves, none), lambda _, name: RouteBuffer((name,), [TableColumns(column_limit=9)])
    )
    for buffer, taken in itertools.islice(whole.rows([b""] * count, np.zeros(count, int), day_of_file), 3):
        assert buffer.route[0] in taken.tables[0].rows.to_pylist()[0].values()


def test_lines_may_all_be_left() -> None:
    read = Read([b'{"type":"track","event":"A","n":1}', b'{"n":2}', b"{}"])
    assert read.left == [0, 1, 2]
    assert read.rows() == {}
