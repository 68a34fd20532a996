"""Lines that are read at once become rows of their tables; what is special is left to the exact reader."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.archive.whole import WholeArchive
from eventlake.demo import events as demo
from eventlake.demo.events import Recipe
from eventlake.events import instants
from eventlake.events.envelope import reject_reason
from eventlake.lake.ids import Array
from eventlake.lake.routes import Sent
from eventlake.lake.segment import SegmentDialect
from eventlake.lake.staging import StagedFile, read_rows
from eventlake.reading.flatten import TableColumns
from eventlake.reading.route_buffer import RouteBuffer
from eventlake.reading.scanner import Asked, Scanner, ScanSizes
from eventlake.schema.evolve import Evidence
from eventlake.storage.base import Part
from eventlake.storage.local import LocalStorage
from eventlake.tasks.scope import Scope
from eventlake.tasks.stage import stage
from eventlake.tasks.staged import RawFile, StageContext, StageSizes
from scans import native, text_of
from staged_rows import rows_of
from strategies import json_lines, json_values, plain_line
from unpacked_segments import segments_by_table

DIALECT = SegmentDialect("src", "web")
DAY = 86_400_000_000


def line(call: str, number: int, **fields: Any) -> bytes:
    whole = {"type": call, "messageId": f"m{number}", **fields}
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()


class Reader:
    """A scanner, with a buffer for each table of events."""

    def __init__(
        self,
        folder: Path,
        sizes: ScanSizes | None = None,
        known: dict[str, tuple[str, ...]] | None = None,
        column_limit: int = 100,
    ) -> None:
        self.asked: list[tuple[str, str]] = []
        self.wanted: Any = lambda *_: None
        self._known = known or {}
        self._buffers: dict[tuple[str, ...], RouteBuffer] = {}
        self._storage = LocalStorage(str(folder))
        asked = Asked(self._buffer_for, lambda buffer, received: self.wanted(buffer.route, received), DIALECT.received)
        self._scanner = Scanner(native(), asked, sizes or ScanSizes(places=100, names=50, columns=500))
        self._column_limit = column_limit
        self.left: list[int] = []
        self.skipped: list[int] = []

    def _buffer_for(self, call: str, name: str, has_user: bool) -> RouteBuffer | None:
        if not has_user:  # both are asked for
            self.asked.append((call, name))
        if reject_reason({"type": call, "event": name}):
            return None
        route = DIALECT.route(Sent(call, name))
        columns = [TableColumns(known=self._known.get(key, ()), column_limit=self._column_limit) for key in route]
        return self._buffers.setdefault(route, RouteBuffer(route, columns))

    def __call__(self, *lines: bytes) -> dict[str, list[dict[str, Any]]]:
        """The rows of each table: their cells by pointer, and what is known of their lines."""
        is_taken, is_skipped, _, pieces = self._scanner.read(text_of(list(lines)), lambda number: number * DAY)
        self.left = np.flatnonzero(~(is_taken | is_skipped)).tolist()
        self.skipped = np.flatnonzero(is_skipped).tolist()
        found: dict[str, list[dict[str, Any]]] = {}
        for buffer, places, received, ids, packed in pieces:
            (key,) = buffer.route
            assert key not in found
            assert set(packed.tables) == {key}
            assert sorted(number for _, number in packed.tables[key]) == list(range(len(packed.pointers)))
            assert not set(places.tolist()) & {*self.left, *self.skipped}
            with StagedFile(self._storage, "staged") as file:
                segment = file.append(packed, 0)
            (content,) = self._storage.read_parts([Part("staged", segment.offset, segment.size)])
            staged = read_rows(content, segment, key)
            assert staged.received.tolist() == received.tolist()
            found[key] = [
                {
                    **{place.pointer: value for place, value in row.items()},
                    "received": int(received[number]),
                    "line": int(places[number]),
                }
                for number, row in enumerate(rows_of(staged))
            ]
            assert [row["/messageId"].encode() for row in found[key]] == ids
        return found


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


def names_in(rows: dict[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    return {table: [row["/messageId"] for row in found] for table, found in rows.items()}


def test_every_line_goes_to_the_table_of_its_call_and_event(read: Reader) -> None:
    rows = read(
        line("page", 0, event="Bought"),
        line("track", 1, event="Bought"),
        line("identify", 2),
        line("track", 3, event="Seen"),
        line("track", 4, event="bought"),
        line("page", 5),
        line("track", 6, event="Added"),
        line("track", 7, event="Seen"),
        line("identify", 8, event="Added"),
        b'{"type":"tr\\u0061ck","messageId":"m9","event":"\\u0042ought"}',
    )
    assert read.left == []
    assert names_in(rows) == {
        "page": ["m0", "m5"],
        "track_bought": ["m1", "m4", "m9"],
        "identify": ["m2", "m8"],
        "track_seen": ["m3", "m7"],
        "track_added": ["m6"],
    }
    assert Counter(read.asked) == Counter(
        [
            *(("page", name) for name in ("Bought", "")),
            *(("identify", name) for name in ("", "Added")),
            *(("track", name) for name in ("Bought", "Seen", "bought", "Added", "Bought")),
        ]
    ), "each name is asked for once, as it is written"


def test_what_was_met_before_is_remembered(read: Reader) -> None:
    lines = [line("track", n, event=f"E{n % 3}", n=n, **{f"only{n % 4}": n}) for n in range(24)]
    first, asked = read(*lines), list(read.asked)
    assert read(*lines[::-1]) == {
        table: [{**row, "line": 23 - row["line"], "received": (23 - row["line"]) * DAY} for row in rows[::-1]]
        for table, rows in first.items()
    }
    assert read.asked == asked


def test_rows_have_the_values_of_their_lines(read: Reader) -> None:
    times = ["2026-01-02T03:04:05Z", None, "2026-01-02T03:04:05.5+01:00", "soon", "2026-01-02T03:04:06.1234567Z", ""]
    lines = [
        line("track", n, event="AB"[n % 2], receivedAt=moment, n=n, **({"some": f"s{n}"} if n in (0, 2, 3) else {}))
        for n, moment in enumerate(times)
    ]
    rows = read(*lines)
    assert read.left == []
    assert names_in(rows) == {"track_a": ["m0", "m2", "m4"], "track_b": ["m1", "m3", "m5"]}
    for row in [*rows["track_a"], *rows["track_b"]]:
        n = row["/n"]
        sent = times[n]
        instant = instants.parse(sent) if sent else None
        assert row == {
            "/type": "track",
            "/messageId": f"m{n}",
            "/event": "AB"[n % 2],
            "/n": n,
            **({"/receivedAt": sent} if sent is not None else {}),
            **({"/some": f"s{n}"} if n in (0, 2, 3) else {}),
            "received": instant.micros if instant else n * DAY,
            "line": n,
        }


def test_a_time_with_escapes_is_read_too(read: Reader) -> None:
    rows = read(b'{"type":"page","messageId":"m\\u0031","receivedAt":"2026-01-02T03\\u003a04:05Z"}')
    instant = instants.parse("2026-01-02T03:04:05Z")
    assert instant
    assert rows["page"][0]["received"] == instant.micros
    assert names_in(rows) == {"page": ["m1"]}


VALUES: list[Any] = ["", "x", 'é"\n', 0, -5, 2**62, 1.5, -0.25, True, False, [], [1, {"a": " "}], None]


@pytest.mark.parametrize("filled", [1, 2, 3, 7, 8, 9, 64])
def test_cells_of_all_kinds_are_where_they_belong_however_few_there_are(read: Reader, filled: int) -> None:
    """In one row of so many there is a value: where there are few, rows are numbered."""
    lines = []
    for n in range(200):
        some = {f"v{kind}": value for kind, value in enumerate(VALUES) if (n + kind) % filled == 0}
        mixed = VALUES[n % len(VALUES)]
        lines.append(line("track", n, event=f"E{n % 2}", mixed=mixed, **some))
    rows = read(*lines)
    assert read.left == []
    found = {row["line"]: row for of_table in rows.values() for row in of_table}
    for n, text in enumerate(lines):
        sent = {f"/{key}": _cell(value) for key, value in json.loads(text).items() if value is not None}
        assert {key: value for key, value in found[n].items() if key.startswith("/")} == sent


def _cell(value: Any) -> Any:
    if isinstance(value, list):
        return json.dumps(value, separators=(",", ":"))
    return str(value) if isinstance(value, float) else value


def test_many_rows_of_several_tables_keep_their_order(read: Reader) -> None:
    lines = [line("track", n, event=f"E{n * n % 5}", **({"n": n} if n % 3 else {})) for n in range(300)]
    rows = read(*lines)
    assert {table: [row.get("/n") for row in found] for table, found in rows.items()} == {
        f"track_e{rest}": [n if n % 3 else None for n in range(300) if n * n % 5 == rest] for rest in (0, 1, 4)
    }
    assert [row["/messageId"] for row in rows["track_e0"]] == [f"m{n}" for n in range(0, 300, 5)]


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
        b'{"type":"track","event":"A","messageId":"m","Event":"B"}',
        b'{"type":"track","event":"A","messageId":"m","message_id":"B"}',
        b'{"type":"track","event":"A","messageId":"m","year":2026}',
        b'{"type":"track","event":"A","messageId":"m","x":{}}',
        b"no",
    ],
)
def test_a_line_with_anything_special_is_left_to_the_exact_reader(read: Reader, odd: bytes) -> None:
    plain = [line("alias", 0), line("track", 1, event="Z"), line("track", 2, event="A"), line("page", 3)]
    for _ in range(2):  # also when it is known that this is special
        rows = read(*plain, odd, line("page", 4))
        assert read.left == [4]
        assert names_in(rows) == {"alias": ["m0"], "track_z": ["m1"], "track_a": ["m2"], "page": ["m3", "m4"]}


def test_of_places_that_share_a_column_one_has_it_in_each_table(tmp_path: Path) -> None:
    read = Reader(tmp_path, known={"page": ("product_id",)})
    rows = read(
        line("track", 0, event="A", productId=1),
        line("track", 1, event="B", other=1),
        line("track", 2, event="A", product_id=2),
        line("track", 3, event="B", product_id=3),
        line("track", 4, event="A"),
        line("page", 5, product_id=5),
    )
    assert read.left == [2], "the first place that asks for a column has it"
    assert [row.get("/productId") for row in rows["track_a"]] == [1, None]
    assert [row["/product_id"] for row in rows["page"]] == [5]
    assert [row.get("/product_id") for row in rows["track_b"]] == [None, 3]


def test_lines_may_all_be_left(read: Reader) -> None:
    assert read(b'{"type":"track","event":"A","n":1}', b'{"n":2}', b"{}") == {}
    assert read.left == [0, 1, 2]


def test_what_a_replay_does_not_want_is_skipped_and_not_left(read: Reader) -> None:
    def wanted(route: tuple[str, ...], received: Array) -> Array | None:
        return None if route == ("alias",) else (received >= DAY) & (route != ("identify",))

    read.wanted = wanted
    rows = read(
        line("page", 0),
        line("page", 1),
        line("alias", 2, receivedAt="1970-01-01T00:00:00Z"),
        line("identify", 3),
        line("page", 4, receivedAt="1970-01-01T23:59:59.999Z", year=5),
        line("page", 5, receivedAt="1970-01-02T00:00:00Z"),
        line("page", 6, year=5),
    )
    assert names_in(rows) == {"page": ["m1", "m5"], "alias": ["m2"]}
    assert (read.skipped, read.left) == ([0, 3, 4], [6])


# Senders that make things up


def test_as_many_names_are_remembered_as_there_is_room_for(tmp_path: Path) -> None:
    read = Reader(tmp_path, ScanSizes(places=100, names=2, columns=500))
    lines = [line("track", n, event=f"E{n % 3}") for n in range(6)]
    assert names_in(read(*lines)) == {"track_e0": ["m0", "m3"], "track_e1": ["m1", "m4"]}
    assert read.left == [2, 5]
    few_bytes = Reader(
        tmp_path, ScanSizes(places=100, names=50, bytes_of_names=len("page\n") + len("track\nE\n"), columns=9)
    )
    assert names_in(few_bytes(line("page", 0), line("track", 1, event="E"), line("alias", 2), line("page", 3))) == {
        "page": ["m0", "m3"],
        "track_e": ["m1"],
    }
    assert few_bytes.left == [2]


def test_as_many_columns_are_remembered_as_there_is_room_for(tmp_path: Path) -> None:
    read = Reader(tmp_path, ScanSizes(places=100, names=50, columns=5))
    lines = [line("page", 0), line("page", 1, a=1), line("alias", 2), line("page", 3, b=1), line("page", 4, a=5)]
    for _ in range(2):
        assert names_in(read(*lines)) == {"page": ["m0", "m1", "m4"], "alias": ["m2"]}
        assert read.left == [3]


# The stage: the same whichever way lines go


class Staged(NamedTuple):
    rows: Counter[tuple[str, str]]  # table, and a row with its message
    evidence: dict[str, Evidence]
    counts: list[tuple[int, int, int, int | None, int | None]]
    quarantine: list[dict[str, Any]]


def staged(folder: Path, files: list[list[bytes]], sizes: StageSizes, scope: Scope | None = None) -> Staged:
    storage = LocalStorage(str(folder))
    raw = []
    for number, lines in enumerate(files):
        path = f"segment-logs/s/1700000000000/{number}"
        storage.write(path, b"\n".join(lines))
        raw.append(RawFile(number, path, 1, ""))
    context = StageContext(
        "run",
        storage,
        WholeArchive(storage),
        SegmentDialect("s", "d"),
        {},
        column_limit=2000,
        table_limit=100,
        scope=scope,
        sizes=sizes,
    )
    result = stage(context, raw)
    rows: Counter[tuple[str, str]] = Counter()
    for name, segments in segments_by_table(result.tables).items():
        for segment in segments:
            (content,) = storage.read_parts([Part(result.staged, segment.offset, segment.size)])
            found = read_rows(content, segment, name)
            for received, row in zip(found.received.tolist(), rows_of(found), strict=True):
                rows[name, repr((received, sorted(row.items())))] += 1
    return Staged(
        rows,
        {name: _without_samples(news.evidence) for name, news in result.news.items()},
        [(c.lines, c.staged, c.quarantined, c.first_received, c.last_received) for c in result.files],
        sorted(pq.read_table(folder / result.quarantine).to_pylist(), key=str) if result.quarantine else [],
    )


def _without_samples(evidence: Evidence) -> Evidence:
    """Evidence but for the values that stand for others: which these are depends on what is read together."""
    return {
        column: sighting._replace(tallies=tuple(tally._replace(sample="") for tally in sighting.tallies))
        for column, sighting in evidence.items()
    }


ONE_BY_ONE = StageSizes(at_once=False)
AT_ONCE = StageSizes(scan=ScanSizes(places=500, names=100, columns=2000))


def check_stage(folder: Path, files: list[list[bytes]], scope: Scope | None = None) -> None:
    assert staged(folder / "columns", files, AT_ONCE, scope) == staged(folder / "exact", files, ONE_BY_ONE, scope)


ONE_LINE_OF_TWO_IS_WHOLE = [  # so the other is read after it
    b'{"type":"page","receivedAt":"soon","a":[NaN]}',
    b'{"type":"page","receivedAt":"1969-12-31T00:01Z","messageId":"e8d79f49"}',
]
RECEIVED = Scope(instants.FIRST, 1_767_225_600_000_000)  # before 2026


@given(st.lists(st.lists(json_lines(), max_size=5), min_size=1, max_size=3), st.sampled_from([None, RECEIVED]))
@example([ONE_LINE_OF_TWO_IS_WHOLE], None)
def test_hostile_events_are_staged_the_same(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[bytes]], scope: Scope | None
) -> None:
    check_stage(tmp_path_factory.mktemp("stage"), files, scope)


CLASHES = ["context_app_name", "Context_App_Name", "Context", "integrations_all", "received_at", "year", "messageid"]
PARTS = st.dictionaries(st.sampled_from(["app", "App", "app_name", "x"]), json_values() | st.just({"name": "x"}))
TIMES = ["2026-01-01T00:00:00Z", "2025-12-31T23:59:59.999999Z", "2026-01-01T00:30+01:00", "soon", 5]


@given(
    st.lists(
        json_lines(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["track", "page"]), "event": st.sampled_from(["x", "X", "y", ""])},
                optional={
                    "messageId": st.sampled_from(["m1", "m2", ""]) | json_values(),
                    "receivedAt": st.sampled_from(TIMES),
                    "context": PARTS | json_values(),
                    **{key: json_values() for key in CLASHES},
                },
            ).flatmap(lambda event: st.permutations(list(event.items())).map(dict))
        ),
        max_size=6,
    ),
    st.sampled_from([None, RECEIVED, Scope(RECEIVED.stop, instants.LAST, frozenset({"page"}))]),
)
def test_events_whose_columns_clash_are_staged_the_same(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], scope: Scope | None
) -> None:
    check_stage(tmp_path_factory.mktemp("stage"), [lines, lines[::-1]], scope)


@pytest.mark.parametrize("sizes", [AT_ONCE, ONE_BY_ONE], ids=["at once", "one by one"])
def test_events_of_one_table_may_have_names_that_are_written_differently(tmp_path: Path, sizes: StageSizes) -> None:
    sizes = replace(sizes, rows_per_chunk=2)  # so that a table's buffer is empty in between
    names = ["Order Completed", "order completed", "Order Completed", "orderCompleted", "order_completed"]
    with_id = [plain_line({"type": "track", "event": name, "messageId": f"m{n}"}) for n, name in enumerate(names)]
    without = [plain_line({"type": "track", "event": name}) for name in names]
    found = staged(tmp_path, [with_id, without, with_id], sizes)
    assert [(lines, kept) for lines, kept, *_ in found.counts] == [(5, 5)] * 3
    assert sum(found.rows.values()) == 15


def test_demo_events_with_conflicts_and_broken_lines_are_staged_the_same(tmp_path: Path) -> None:
    lines = list(demo.lines(Recipe(2000, conflict_share=0.1, duplicate_share=0.1, broken_share=0.1)))
    check_stage(tmp_path, [lines[:700], lines[700:705], [b"", *lines[705:], b" "]])


EVENT = b'{"type":"track","event":"A","messageId":"m1"'


@pytest.mark.parametrize(
    "line",
    [
        EVENT + b',"properties":{"event":"B","type":"page","messageId":"x"}}',
        EVENT + b',"text":"\\"event\\":\\"B\\""}',
        EVENT + b',"event2":"B"}',
        b'{"messageId":"m1","properties":{"event":"B"},"type":"track","event":"A"}',
        b'{"event":"\\u0041","messageId":"m1","type":"track"}',
        b'{"event":"A","event":"B","messageId":"m1","type":"track"}',
        b'{"Event":"B","event":"A","messageId":"m1","type":"track"}',
        b'{"type":"track","messageId":"m1","properties":{"event":"A"}}',
    ],
)
def test_an_event_is_called_what_it_says_wherever_else_such_texts_are(tmp_path: Path, line: bytes) -> None:
    check_stage(tmp_path, [[line] * 3])
