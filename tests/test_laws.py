"""The laws of the lake, on hostile events: books balance, nothing is lost, order does not matter, twice is once."""

import json
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conftest import InProcess, Lake, of_lakes
from eventlake.audit.verify import verify
from eventlake.events import instants
from eventlake.reading.flatten import CONTAINERS
from eventlake.schema.names import column_name
from strategies import EMPTY, Leaf, Pairs, badly_written, canonical, events, json_lines, leaves, path_of, read_exactly


@contextmanager
def new_lake() -> Iterator[Lake]:
    folder = Path(tempfile.mkdtemp(prefix="eventlake-law-"))
    try:
        yield Lake(folder / "workspace", InProcess())
    finally:
        shutil.rmtree(folder)


def balanced(report: list[dict[str, Any]]) -> bool:
    books = report[0]["books"]
    rest = ("loaded", "duplicates", "suppressed", "blocked", "quarantined")
    return bool(books["lines"] == sum(books[word] for word in rest))


def all_rows(lake: Lake, run: str = "") -> dict[str, dict[str, Any]]:
    """Every row of every table, or only those of one run, by message id. No message may be in the lake twice."""
    tables = {table: lake.rows(table, run=run) for table in lake.tables()} if run else lake.all_rows()
    rows = [{**row, "table": table} for table, some in tables.items() for row in some]
    by_id = {row["message_id"]: row for row in rows}
    assert len(by_id) == len(rows), Counter(row["message_id"] for row in rows).most_common(3)
    return by_id


def with_id(line: bytes, message_id: str) -> bytes:
    """The line with a message id in front of all others it may have."""
    start = line.index(b"{") + 1
    tail = line[start:]
    comma = b"" if tail.strip() == b"}" else b","
    return line[:start] + b'"messageId":' + json.dumps(message_id).encode() + comma + tail


def rescued_of(row: dict[str, Any]) -> list[Leaf]:
    text = row.get("_rescued_data")
    entries = read_exactly(text) if text else Pairs()
    found: list[Leaf] = []
    for pointer, entry in entries:
        members = dict(entry)
        found += leaves(members["value"], path_of(pointer.partition("~#")[0]))
    return found


def holds(cell: Any, leaf: Any) -> bool:
    """Whether a cell gives a value back: numbers by value, timestamps by instant, all else as its text."""
    if isinstance(cell, datetime):
        instant = instants.parse(leaf[1]) if leaf[0] == "text" else None
        return instant is not None and instant == (instants.micros_of(cell), True)
    if isinstance(cell, bool):
        return leaf in (("constant", cell), ("text", json.dumps(cell)))
    if isinstance(cell, int | Decimal):
        number = canonical(read_exactly(str(cell) if isinstance(cell, int) else format(cell, "f")))
        return bool(leaf == number or (leaf[0] == "text" and canonical(read_exactly(leaf[1])) == number))
    if leaf == ("text", cell):
        return True
    try:
        return bool(canonical(read_exactly(cell)) == leaf)
    except (ValueError, TypeError):
        return False


def is_inside_a_text(path: tuple[str, ...], value: Any, row: dict[str, Any]) -> bool:
    """Whether a value is in the JSON text of an object: one too deep, or one for a column that was text before."""
    for end in range(1, len(path)):
        cell = row.get(column_name(*path[:end]))
        try:
            inside = list(leaves(read_exactly(cell))) if isinstance(cell, str) else []
        except ValueError:  # a text that is not JSON
            continue
        if (path[end:], value) in inside:
            return True
    return False


def lost(line: bytes, row: dict[str, Any]) -> list[Leaf]:
    """The values of a line that its row does not give back."""
    rest = rescued_of(row)
    missing = []
    for path, value in leaves(read_exactly(line.decode("utf-8-sig"))):
        if value == EMPTY and len(path) == 1 and path[0] in CONTAINERS:
            continue
        if (path, value) in rest:
            rest.remove((path, value))
            continue
        if is_inside_a_text(path, value, row):
            continue
        cell = row.get(column_name(*path))
        if cell is None or not holds(cell, value):
            missing.append((path, value))
    return missing


@example(  # the second goes as JSON into the column of the first
    [
        b'{"type":"track","event":"a","properties":{"a":"x"}}',
        b'{"type":"track","event":"a","properties":{"a":{"b":["0",null]}}}',
    ],
    random.Random(0),
)
@of_lakes
@given(st.lists(json_lines(), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_every_value_of_every_event_is_in_its_row_or_rescued(lines: list[bytes], random: Any) -> None:
    with new_lake() as lake:
        lines = [with_id(line, f"id{number}") for number, line in enumerate(lines)]
        cut = random.randint(0, len(lines))  # the second sync meets columns whose types are set
        loaded = 0
        for part in (lines[:cut], lines[cut:]):
            report = lake.sync_of(*part)
            assert balanced(report)
            loaded += report[0]["books"]["loaded"]
        assert loaded == len(lines)
        rows = all_rows(lake)
        missing = {number: lost(line, rows[f"id{number}"]) for number, line in enumerate(lines)}
        assert {number: values for number, values in missing.items() if values} == {}


EVENTS = int(os.environ.get("EVENTLAKE_EVENTS", "2000"))


@pytest.mark.timeout(120 + EVENTS // 10)
def test_nothing_is_lost_of_many_events_in_one_lake() -> None:
    """Columns fill up with values of every kind: what comes later meets what came before."""
    pool: list[Any] = []

    @settings(max_examples=max(100, EVENTS // 50), database=None, derandomize=True)
    @given(events())
    def collect(event: Any) -> None:
        pool.append(event)

    collect()
    dice = random.Random(EVENTS)
    with new_lake() as lake:
        for start in range(0, EVENTS, 2500):
            lines = {
                f"id{number}": with_id(badly_written(dice.choice(pool), dice), f"id{number}")
                for number in range(start, min(start + 2500, EVENTS))
            }
            report = lake.sync_of(*lines.values())
            assert balanced(report)
            assert report[0]["books"]["loaded"] == len(lines)
            rows = all_rows(lake, run=report[0]["run_id"])
            missing = {message_id: lost(line, rows[message_id]) for message_id, line in lines.items()}
            assert {message_id: values for message_id, values in missing.items() if values} == {}
        assert verify(lake.workspace, lake.connection, lake.runner) == []


few_ids = st.sampled_from(["a", "b", "c", "d", "e"])
few_times = st.sampled_from(["2026-11-15T10:00:00Z", "2026-11-15T10:00:00.5Z", "2026-11-15T11:00:00Z"])


@st.composite
def copies(draw: st.DrawFn) -> bytes:
    event = draw(events()) | {"messageId": draw(few_ids), "receivedAt": draw(few_times)}
    return draw(json_lines(st.just(event)))


@of_lakes
@given(st.lists(copies(), min_size=1, max_size=15), st.randoms(use_true_random=False))
def test_any_split_of_the_lines_over_files_gives_the_same_tables(lines: list[bytes], random: Any) -> None:
    def load(groups: list[list[bytes]]) -> tuple[Any, Any]:
        with new_lake() as lake:
            for group in groups:
                lake.put(*group)
            assert balanced(lake.sync())
            return all_rows(lake), {table: lake.types(table) for table in lake.tables()}

    shuffled = random.sample(lines, len(lines))
    groups: list[list[bytes]] = [[] for _ in range(4)]
    for line in shuffled:
        random.choice(groups).append(line)
    assert load([lines]) == load([group for group in groups if group])


@of_lakes
@given(st.lists(copies(), min_size=1, max_size=12))
def test_any_split_over_runs_keeps_one_row_per_message_and_only_appends_columns(lines: list[bytes]) -> None:
    with new_lake() as lake:
        before: dict[str, list[tuple[str, str]]] = {}
        for line in lines:
            assert balanced(lake.sync_of(line))
            now = {t: [c for c in lake.types(t).items() if c[0] != "_rescued_data"] for t in lake.tables()}
            assert all(now[table][: len(columns)] == columns for table, columns in before.items())
            before = now
        rows = [row for some in lake.all_rows().values() for row in some]
        expected = {dict(reversed(read_exactly(line.decode("utf-8-sig"))))["messageId"] for line in lines}
        assert sorted(row["message_id"] for row in rows) == sorted(expected)


@of_lakes
@given(st.lists(json_lines(), min_size=1, max_size=8))
def test_reading_the_same_files_again_adds_nothing(lines: list[bytes]) -> None:
    with new_lake() as lake:
        file = lake.put(*lines)
        first = lake.sync()
        rows = all_rows(lake)
        os.utime(file, ns=(1, 1))  # looks like another file
        again = lake.sync()
        assert balanced(again)
        assert again[0]["books"]["loaded"] == 0
        assert again[0]["books"]["lines"] == first[0]["books"]["lines"]
        assert all_rows(lake) == rows
