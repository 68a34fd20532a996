"""A stage task: what becomes of every line of its raw files, whichever way the lines go."""

import gzip
import json
import platform
import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest

import staged_rows
from eventlake.archive.reader import ReadSizes
from eventlake.archive.whole import WholeArchive
from eventlake.events import instants
from eventlake.lake import ids
from eventlake.lake.layout import HOUR
from eventlake.lake.lines_file import LineSizes
from eventlake.lake.segment import SegmentDialect
from eventlake.lake.segments import Segment, unpacked
from eventlake.lake.staging import read_rows
from eventlake.schema.types import Seen
from eventlake.storage.base import Part, new_digest
from eventlake.storage.local import LocalStorage
from eventlake.tasks.scope import Scope
from eventlake.tasks.stage import stage
from eventlake.tasks.staged import HOURS_COUNTED, FileCount, RawFile, StageContext, StageResult, StageSizes
from unpacked_segments import segments_by_table

ONE_BY_ONE = StageSizes(at_once=False)
AT_ONCE = StageSizes()
either_way = pytest.mark.parametrize("sizes", [ONE_BY_ONE, AT_ONCE], ids=["one by one", "at once"])

DAY_MS = 1_700_006_400_000


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(str(tmp_path))


def micros(text: str) -> int:
    instant = instants.parse(text)
    assert instant
    return instant.micros


def line(number: int, event: str = "A", **fields: Any) -> bytes:
    whole = {"type": "track", "event": event, "messageId": f"m{number}", **fields}
    return json.dumps(whole, separators=(",", ":"), ensure_ascii=False).encode()


def raw_file(number: int, day: int = DAY_MS) -> RawFile:
    return RawFile(number, f"segment-logs/src/{day}/{number}.gz", 1, "")


def staged(storage: LocalStorage, files: dict[int, bytes], sizes: StageSizes = ONE_BY_ONE, **more: Any) -> StageResult:
    """Stage files with these numbers and contents."""
    for number, content in files.items():
        storage.write(raw_file(number).path, content)
    given: dict[str, Any] = {"known_columns": {}, "column_limit": 100, "table_limit": 100, **more}
    context = StageContext(
        "segment-stage/run", storage, WholeArchive(storage), SegmentDialect("src", "web"), sizes=sizes, **given
    )
    return stage(context, [raw_file(number) for number in files])


def of_lines(*lines: bytes) -> bytes:
    return b"\n".join(lines)


class Row(NamedTuple):
    """A staged row."""

    received: int
    cells: dict[str, Any]  # by pointer
    rescued: dict[str, Any]  # by pointer


def segments_of(result: StageResult) -> dict[str, list[Segment]]:
    return segments_by_table(result.tables)


def rows_of(storage: LocalStorage, result: StageResult, table: str) -> list[Row]:
    return list(numbered_rows(storage, result, table).values())


def numbered_rows(storage: LocalStorage, result: StageResult, table: str) -> dict[int, Row]:
    """The rows of a table by the numbers of their messages."""
    rows: dict[int, Row] = {}
    for segment in segments_of(result)[table]:
        (content,) = storage.read_parts([Part(result.staged, segment.offset, segment.size)])
        found = read_rows(content, segment, table)
        assert len(found) == segment.rows
        for number, cells in enumerate(staged_rows.rows_of(found)):
            assert number + segment.first_message not in rows
            rescued = json.loads(cells.pop(staged_rows.RESCUED, "{}"))
            rows[number + segment.first_message] = Row(
                int(found.received[number]),
                {place.pointer: value for place, value in cells.items()},
                {place: entry["value"] for place, entry in rescued.items()},
            )
    told = unpacked(result.tables)
    assert told.rows[told.tables.index(table)] == len(rows)
    return rows


class Message(NamedTuple):
    """A staged message, with the row that it points at."""

    file: int
    table: str
    received: int
    digest: int
    row: Row


def messages(storage: LocalStorage, result: StageResult) -> Iterator[Message]:
    tables = {ids.route_hash((name,)): name for name in segments_of(result)}
    rows = {name: numbered_rows(storage, result, name) for name in segments_of(result)}
    for segment in result.id_segments:
        with storage.open_input(segment.path) as source:
            found = ids.IdFile(source, segment.offset, tuple(ids.FIELDS)).read(ids.ALL, ids.FIELDS)
        assert len(found) == segment.messages
        for high, low, received, table, digest, file, row in zip(
            *(found[name].tolist() for name in ids.FIELDS), strict=True
        ):
            name = tables[table]
            hashed = ids.message_hash(str(rows[name][row].cells["/messageId"]))
            assert (high << 64 | low).to_bytes(16, "big") == hashed
            assert received == rows[name][row].received
            yield Message(file, name, received, digest, rows[name][row])


def count_of(result: StageResult, file: int) -> FileCount:
    (found,) = [count for count in result.files if count.file.number == file]
    return found


def segment_sizes(result: StageResult, table: str = "track_a") -> list[int]:
    return [segment.rows for segment in segments_of(result)[table]]


@either_way
@pytest.mark.parametrize(
    "small",
    [
        {},
        {"rows_per_chunk": 2, "ids_per_segment": 3},
        {"bytes_at_once": 500, "read": ReadSizes(block=200), "bytes_in_buffers": 300, "names_remembered": 1},
    ],
    ids=["default", "few rows", "few bytes"],
)
def test_every_event_is_a_row_and_a_message_that_points_at_it(
    storage: LocalStorage, sizes: StageSizes, small: dict[str, Any]
) -> None:
    lines = [
        line(n, event="AB"[n % 2], receivedAt=f"2026-01-02T{n % 3 + 5:02}:00:00.{n:03}Z", properties={"n": n})
        for n in range(20)
    ]
    lines[7] = b'{"type":"page","messageId":"m7","n":7,"n":8}'
    lines[8] = b'{"type":"identify","messageId":8,"event":5,"receivedAt":"soon"}'
    lines[9] = '{"type":"track","event":"É","n":9}'.encode()
    content = {4: gzip.compress(of_lines(*lines[:5])), 2: of_lines(*lines[5:16]), 9: of_lines(b"", *lines[16:], b"")}
    result = staged(storage, content, replace(sizes, **small))
    found = {message.digest: message for message in messages(storage, result)}
    assert sorted(found) == sorted(map(zlib.crc32, lines))
    files = [4] * 5 + [2] * 11 + [9] * 4
    for n, (file, sent) in enumerate(zip(files, lines, strict=True)):
        message = found[zlib.crc32(sent)]
        assert message.file == file
        if n not in (7, 8, 9):
            assert message.table == ("track_a" if n % 2 == 0 else "track_b")
            assert message.received == micros(f"2026-01-02T{n % 3 + 5:02}:00:00.{n:03}Z")
            assert message.row.cells["/properties/n"] == n
            assert message.row.rescued == {}
    page, identify, named = (found[zlib.crc32(lines[n])] for n in (7, 8, 9))
    assert (page.table, page.received, page.row.rescued) == ("page", DAY_MS * 1000, {"/n": 8})
    assert (identify.table, identify.received) == ("identify", DAY_MS * 1000)
    assert identify.row.cells["/event"] == 5
    assert named.row.cells["/messageId"].startswith("line-")
    assert [(c.file, c.lines, c.staged, c.quarantined, c.blocked, c.error) for c in result.files] == [
        (raw_file(4), 5, 5, 0, 0, None),
        (raw_file(2), 11, 11, 0, 0, None),
        (raw_file(9), 4, 4, 0, 0, None),
    ]
    assert (count_of(result, 4).first_received, count_of(result, 4).last_received) == (
        micros("2026-01-02T05:00:00Z"),
        micros("2026-01-02T07:00:00.002Z"),
    )
    assert (count_of(result, 2).first_received, count_of(result, 2).last_received) == (
        DAY_MS * 1000,
        micros("2026-01-02T07:00:00.014Z"),
    )
    for number, raw in content.items():
        digest = new_digest()
        digest.update(raw)
        assert count_of(result, number).digest == digest.hexdigest()
    assert (result.quarantine, result.refused_tables) == (None, {})


def test_events_without_ids_are_told_apart_by_their_places(storage: LocalStorage) -> None:
    same = b'{"type":"page","messageId":""}'
    found = [list(messages(storage, staged(storage, {0: of_lines(same, same), 1: same}))) for _ in range(2)]
    names = [{message.row.cells["/messageId"] for message in of_one} for of_one in found]
    assert names[0] == names[1]
    assert len(names[0]) == 3
    assert [message.row.rescued for message in found[0]] == [{"/messageId": ""}] * 3


def test_messages_are_in_the_order_in_which_shares_are_read(storage: LocalStorage) -> None:
    lines = [line(n, event=f"{n}") for n in range(200)]
    result = staged(storage, {0: of_lines(*lines)}, replace(ONE_BY_ONE, ids_per_segment=60), table_limit=200)
    assert [segment.messages for segment in result.id_segments] == [60, 60, 60, 20]
    for segment in result.id_segments:
        with storage.open_input(segment.path) as source:
            found = ids.IdFile(source, segment.offset, tuple(ids.FIELDS)).read(ids.ALL, ids.FIELDS)
        keys = list(zip(*(found[name].tolist() for name in ("high", "low")), strict=True))
        assert keys == sorted(keys)


# Lines that are not events


@either_way
def test_lines_that_are_not_events_are_kept_with_file_number_and_reason(
    storage: LocalStorage, sizes: StageSizes
) -> None:
    long = line(9, text="x" * 300)
    bad = [b"no", b'{"type":"track"}', long, b'{"type":"track","event":"\xff"}', b"[1]"]
    sizes = replace(sizes, read=ReadSizes(block=100, longest_line=200, sample=50))
    content = {
        0: of_lines(line(1), b"", bad[0], line(2), bad[1]),
        3: of_lines(bad[2], bad[3], line(3), bad[4]),
        5: of_lines(bad[2], bad[2]),
    }
    result = staged(storage, content, sizes)
    assert result.quarantine
    kept = sorted(pq.read_table(storage.full(result.quarantine)).to_pylist(), key=lambda row: row["raw_file"])
    places = {raw_file(0).path: [(3, 0), (5, 1)], raw_file(3).path: [(1, 2), (2, 3), (4, 4)]}
    places[raw_file(5).path] = [(1, 2), (2, 2)]
    reasons = ["not_json", "event_not_defined", "line_too_long", "not_utf8", "not_an_object"]
    assert sorted((row["raw_file"], row["line"], row["reason"], row["size"]) for row in kept) == [
        (path, number, reasons[which], len(bad[which])) for path, found in places.items() for number, which in found
    ]
    contents = {row["reason"]: row["content"] for row in kept}
    assert contents == {**dict(zip(reasons, bad, strict=True)), "line_too_long": long[:50]}
    details = {row["reason"]: row["detail"] for row in kept}
    assert details["not_json"] == "Expecting value at character 0"
    assert [details[reason] for reason in ("event_not_defined", "line_too_long", "not_an_object")] == [None] * 3
    assert [(count.lines, count.staged, count.quarantined) for count in result.files] == [
        (4, 2, 2),
        (4, 1, 3),
        (2, 0, 2),
    ]
    assert (result.quarantine.split("/")[0], result.id_segments[0].path.split("/")[0]) == ("segment-stage",) * 2
    assert result.quarantine.endswith(".parquet")


@either_way
def test_a_file_that_breaks_off_is_named_and_its_bad_lines_are_not_kept(
    storage: LocalStorage, sizes: StageSizes
) -> None:
    whole = gzip.compress(of_lines(b"bad", *(line(n, noise=uuid.uuid4().hex) for n in range(500))))
    sizes = replace(sizes, read=ReadSizes(block=1000))
    result = staged(storage, {0: whole[: len(whole) // 2], 1: of_lines(line(1), b"also bad")}, sizes)
    broken, sound = result.files
    assert "EOFError" in str(broken.error)
    assert (broken.digest, sound.error) == ("", None)
    assert (sound.lines, sound.staged, sound.quarantined) == (2, 1, 1)
    assert broken.staged > 10, "what was read of it is left to those who know that it broke"
    assert result.quarantine
    kept = pq.read_table(storage.full(result.quarantine)).to_pylist()
    assert [(row["raw_file"], row["content"]) for row in kept] == [(raw_file(1).path, b"also bad")]


def test_as_much_is_kept_of_bad_lines_as_is_set(storage: LocalStorage) -> None:
    sizes = replace(ONE_BY_ONE, quarantine=LineSizes(bytes_kept=4))
    result = staged(storage, {0: b"not json"}, sizes)
    assert result.quarantine
    assert pq.read_table(storage.full(result.quarantine)).column("content").to_pylist() == [b"not "]
    assert (segments_of(result), result.news, result.id_segments) == ({}, {}, [])


def test_every_attempt_writes_files_of_its_own(storage: LocalStorage) -> None:
    storage.write(raw_file(0).path, of_lines(line(1), b"bad"))
    context = StageContext(
        "segment-stage/run", storage, WholeArchive(storage), SegmentDialect("src", "web"), {}, 100, 100
    )
    first, second = (stage(context, [raw_file(0)]) for _ in range(2))
    assert rows_of(storage, first, "track_a") == rows_of(storage, second, "track_a")
    paths = {path for result in (first, second) for path in (result.quarantine, result.id_segments[0].path)}
    assert len(paths) == 4
    assert all(str(path).startswith("segment-stage/run/") for path in paths)


# Which events a replay takes, and which tables may be


@either_way
@pytest.mark.parametrize(
    ("tables", "wanted"), [(None, ["m1", "m2", "m4", "m6"]), ({"track_a"}, ["m1", "m2", "m4"]), (set(), [])]
)
def test_a_replay_takes_its_period_and_its_tables_and_counts_no_other_lines(
    storage: LocalStorage, sizes: StageSizes, tables: set[str] | None, wanted: list[str]
) -> None:
    at = [9, 10, 10, 20, 19, 20, 15, 5]
    lines = [line(n, "A" if n < 6 else "B", receivedAt=f"2026-01-02T00:00:{second:02}Z") for n, second in enumerate(at)]
    scope = Scope(
        micros("2026-01-02T00:00:10Z"),
        micros("2026-01-02T00:00:20Z"),
        None if tables is None else frozenset(tables),
    )
    result = staged(storage, {0: of_lines(*lines[:3]), 1: of_lines(*lines[3:], b"bad")}, sizes, scope=scope)
    found = list(messages(storage, result))
    assert sorted(message.row.cells["/messageId"] for message in found) == wanted
    of_first = [name for name in wanted if name in ("m1", "m2")]
    counts = [(len(of_first), len(of_first), 0), (len(wanted) - len(of_first) + 1, len(wanted) - len(of_first), 1)]
    assert [(count.lines, count.staged, count.quarantined) for count in result.files] == counts
    assert set(segments_of(result)) == {message.table for message in found}


@either_way
def test_lines_of_tables_that_may_not_be_are_blocked_or_kept_and_counted(
    storage: LocalStorage, sizes: StageSizes
) -> None:
    lines = [line(n, event) for n, event in enumerate(["Known", "Gone", "A", "B", "C", "B", "Gone", "Wanted"])]
    result = staged(
        storage,
        {0: of_lines(*lines)},
        sizes,
        known_columns={"track_known": ("message_id",)},
        table_limit=1,
        dropped_tables=frozenset({"track_gone"}),
        preferred_tables=frozenset({"track_wanted"}),
    )
    assert set(segments_of(result)) == {"track_known", "track_a", "track_wanted"}
    assert result.refused_tables == {"track_b": 2, "track_c": 1}
    (count,) = result.files
    assert (count.lines, count.staged, count.quarantined, count.blocked) == (8, 3, 3, 2)
    assert result.quarantine
    kept = pq.read_table(storage.full(result.quarantine)).to_pylist()
    assert sorted((row["raw_file"], row["line"], row["reason"], row["detail"], row["size"]) for row in kept) == [
        (raw_file(0).path, n + 1, "table_limit", None, len(lines[n])) for n in (3, 4, 5)
    ]
    assert sorted(row["content"] for row in kept) == sorted(lines[n] for n in (3, 4, 5))


@either_way
@pytest.mark.parametrize(
    "limits", [{"column_limit": 20}, {"sizes": {"new_columns": 5}}], ids=["of the table", "of the task"]
)
def test_a_message_has_its_id_however_many_keys_come_before(
    storage: LocalStorage, sizes: StageSizes, limits: dict[str, Any]
) -> None:
    sizes = replace(sizes, **limits.pop("sizes", {}))
    keys = "".join(f'"k{n}":{n},' for n in range(30))
    sent = f'{{"type":"track","event":"A",{keys}"receivedAt":"2026-01-02T03:04:05Z","messageId":"m1"}}'
    result = staged(storage, {0: sent.encode()}, sizes, **limits)
    (row,) = rows_of(storage, result, "track_a")
    assert (row.cells["/messageId"], row.cells["/receivedAt"]) == ("m1", "2026-01-02T03:04:05Z")
    assert len({**row.cells, **row.rescued}) == 34


def test_keys_that_come_late_do_not_fill_the_memory(storage: LocalStorage) -> None:
    """Each would have a cell for every event before it: events are written out before that is much."""
    few = [line(n, b=1) for n in range(100)]
    many: dict[str, Any] = {f"k{n}": n for n in range(50)}
    late = line(100, **many)
    content = {0: of_lines(*few, late, *(line(n, b=1) for n in range(101, 151)))}
    sizes = replace(ONE_BY_ONE, bytes_in_buffers=sum(map(len, few)) + len(late) + 8 * 50 * 100 - 1)
    assert segment_sizes(staged(storage, content, sizes)) == [101, 50]
    assert segment_sizes(staged(storage, content, ONE_BY_ONE)) == [151]


@either_way
def test_keys_that_somebody_makes_up_are_rescued_when_there_are_very_many(
    storage: LocalStorage, sizes: StageSizes
) -> None:
    """Over all tables of a task: each of them has its limit, but there may be many tables."""
    sizes = replace(sizes, new_columns=9)  # three of the envelope for each table, which are always there
    lines = [line(0, "A", a=0, b=0), line(1, "B", c=1, d=1), line(2, "B", c=2, e=2), line(3, "A", a=3, f=3)]
    result = staged(storage, {0: of_lines(*lines)}, sizes, known_columns={"track_c": ("x",)})
    assert sum(len(news.evidence) for news in result.news.values()) == 9
    found = {}
    for table in ("track_a", "track_b"):
        for row in rows_of(storage, result, table):
            number = int(row.cells["/messageId"][1:])
            found[number] = {**row.cells, **row.rescued}
    assert [found[n] for n in range(4)] == [
        {"/type": "track", "/event": "A", "/messageId": "m0", "/a": 0, "/b": 0},
        {"/type": "track", "/event": "B", "/messageId": "m1", "/c": 1, "/d": 1},
        {"/type": "track", "/event": "B", "/messageId": "m2", "/c": 2, "/e": 2},
        {"/type": "track", "/event": "A", "/messageId": "m3", "/a": 3, "/f": 3},
    ]


# What is told of tables


@either_way
def test_what_is_new_in_a_table_is_told_with_the_hours_of_its_events(storage: LocalStorage, sizes: StageSizes) -> None:
    hours = [0, 1, 1, 5]
    lines = [line(n, receivedAt=f"2026-01-02T{hour:02}:30:00Z", n=n, s="x") for n, hour in enumerate(hours)]
    lines += [line(n + 10, "B", receivedAt=f"2026-01-02T{hour:02}:30:00Z", n=n) for n, hour in enumerate(hours)]
    known = {"track_b": ("message_id", "received_at", "type", "event")}
    sizes = replace(sizes, rows_per_chunk=3)
    result = staged(storage, {0: of_lines(*lines)}, sizes, known_columns=known)
    start = micros("2026-01-02T00:00:00Z") // HOUR
    assert result.news["track_a"].hours == {start, start + 1, start + 5}
    assert result.news["track_b"].hours == set()
    evidence = {name: news.evidence for name, news in result.news.items()}
    assert set(evidence["track_a"]) == {"type", "event", "message_id", "received_at", "n", "s"}
    assert (evidence["track_a"]["n"].seen, evidence["track_a"]["n"].values) == (Seen.INTEGER, 4)
    assert {name: (one.values, one.pointer) for name, one in evidence["track_b"].items()} == {"n": (4, "/n")}


def test_no_more_hours_are_told_than_count(storage: LocalStorage) -> None:
    lines = [line(n, receivedAt=f"2026-01-{n // 24 + 1:02}T{n % 24:02}:00:00Z") for n in range(HOURS_COUNTED + 9)]
    result = staged(storage, {0: of_lines(*lines)}, replace(ONE_BY_ONE, rows_per_chunk=1))
    start = micros("2026-01-01T00:00:00Z") // HOUR
    assert result.news["track_a"].hours == {start + n for n in range(HOURS_COUNTED)}


def test_a_task_finds_no_more_columns_than_a_table_may_have(storage: LocalStorage) -> None:
    result = staged(storage, {0: line(1, a=1, b=2, c=3)}, known_columns={"track_a": ("a",)}, column_limit=4)
    (row,) = rows_of(storage, result, "track_a")
    assert {"/type", "/event", "/messageId"} < set(row.cells)
    assert row.cells["/a"] == 1
    assert row.rescued == {"/b": 2, "/c": 3}


# How much is held at once


def test_rows_are_written_when_there_are_many_of_a_table_or_many_bytes_of_all(storage: LocalStorage) -> None:
    lines = [line(n) for n in range(10, 20)]
    content = {0: of_lines(*lines)}
    assert segment_sizes(staged(storage, content, replace(ONE_BY_ONE, rows_per_chunk=4))) == [4, 4, 2]
    held = replace(ONE_BY_ONE, bytes_in_buffers=3 * len(lines[0]))
    assert segment_sizes(staged(storage, content, held)) == [4, 4, 2]
    mixed = [line(n, "AB"[n % 2]) for n in range(10, 20)]
    both = staged(storage, {0: of_lines(*mixed)}, held)
    assert (segment_sizes(both), segment_sizes(both, "track_b")) == ([2, 2, 1], [2, 2, 1])


def test_ordinary_lines_are_taken_at_once_as_many_as_fit_and_odd_ones_by_themselves(storage: LocalStorage) -> None:
    def taken(lines: Sequence[bytes], **sizes: Any) -> list[int]:
        small = {
            "rows_per_chunk": 1,
            "read": ReadSizes(block=len(lines[0]) + 1),
            **sizes,
        }
        return segment_sizes(staged(storage, {0: of_lines(*lines)}, replace(StageSizes(), **small)))

    lines = [line(n, n=n) for n in range(10, 20)]
    assert taken(lines) == [10]
    size = len(lines[0])
    assert taken(lines, bytes_at_once=4 * (size + 101)) == [4, 4, 2]
    assert taken(lines, bytes_at_once=4 * (size + 6), bytes_per_line=5) == [4, 4, 2]
    assert taken(lines, bytes_at_once=4 * (size + 6) + 1, bytes_per_line=5) == [5, 5]
    two_lines = ReadSizes(block=2 * (size + 1))
    assert taken(lines, bytes_at_once=4 * (size + 51), bytes_per_line=50, read=two_lines) == [4, 4, 2]
    assert taken(lines, at_once=False) == [1] * 10
    odd = [*lines[:5], lines[5].replace(b'"n":15', b'"n":{}'), *lines[6:]]
    assert taken(odd) == [9, 1]
    assert taken([*lines, b"bad", *lines[:3]]) == [13]


def test_the_kind_of_system_is_told_where_lines_can_only_be_read_one_by_one(storage: LocalStorage) -> None:
    content = {0: of_lines(*(line(n, total=12.25) for n in range(4)))}
    assert staged(storage, content, AT_ONCE).one_by_one is None
    result = staged(storage, content, ONE_BY_ONE)
    assert result.one_by_one == f"{platform.system()} {platform.machine()}"
    assert [row.cells["/total"] for row in rows_of(storage, result, "track_a")] == ["12.25"] * 4
