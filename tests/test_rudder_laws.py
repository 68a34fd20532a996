"""The laws of the lake hold in RudderStack's dialect: nothing is lost, the books balance, a replay changes nothing."""

import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from conftest import InProcess, Lake, of_lakes, track
from eventlake.audit.verify import verify
from eventlake.events import instants
from eventlake.lake.rudderstack import DISCARDS
from eventlake.schema.reading import MAX_DEPTH
from eventlake.schema.rudder_columns import LEFT_OUT
from eventlake.schema.rudder_values import timestamp
from eventlake.sync import jobs
from eventlake.sync.work import Sizes
from eventlake.tasks.staged import StageSizes
from strategies import EMPTY, Leaf, canonical, events, json_lines, leaves, path_of, read_exactly
from test_laws import balanced, rescued_of, with_id

SETTINGS = '[lake]\nroot = "lake"\ndialect = "rudderstack"\n'
ONE_BY_ONE = Sizes(stage=StageSizes(at_once=False))

DICE = random.Random(0)
Rows = dict[str, list[dict[str, Any]]]


@contextmanager
def new_lake(sizes: Sizes | None = None, **options: str) -> Iterator[Lake]:
    folder = Path(tempfile.mkdtemp(prefix="eventlake-rudder-"))
    try:
        lake = Lake(folder / "workspace", InProcess(), settings=SETTINGS, sizes=sizes)
        lake.workspace.connections.change("web", {"skip_users_table": "false", **options})
        yield lake
    finally:
        shutil.rmtree(folder)


def all_rows(lake: Lake) -> Rows:
    """The rows of each table, without the time at which they were written."""
    without_time = {
        table: [{name: cell for name, cell in row.items() if name != "uuid_ts"} for row in rows]
        for table, rows in lake.all_rows().items()
    }
    return {table: sorted(rows, key=str) for table, rows in without_time.items()}


def says_nothing(value: Any) -> bool:
    """Whether a leaf is one that RudderStack has no column for: an empty text, array or object."""
    while value[0] == "array" and len(value) == 2:
        value = value[1]
    return value in (("array",), ("text", ""), EMPTY)


def holds(cell: Any, leaf: Any) -> bool:
    """Whether a cell gives a value back: numbers by value, timestamps by instant, all else as its text."""
    if isinstance(cell, datetime):
        found = timestamp(leaf[1]) if leaf[0] == "text" else None
        return found is not None and (found.value, found.reason) == (instants.micros_of(cell), None)
    if isinstance(cell, bool):
        return bool(leaf == ("constant", cell))
    if isinstance(cell, int | float):
        return bool(leaf == canonical(read_exactly(repr(cell))))
    if leaf == ("text", cell):
        return True
    try:
        return bool(canonical(read_exactly(cell)) == leaf)
    except (ValueError, TypeError):
        return False


def lost(lake: Lake, line: bytes, found: dict[str, dict[str, Any]]) -> list[Leaf]:
    """The values of a line that its rows, by their tables, do not give back."""
    rest = [entry for row in found.values() for entry in rescued_of(row)]
    missing = []
    for path, value in leaves(read_exactly(line.decode("utf-8-sig")), deepest=MAX_DEPTH):
        if says_nothing(value) or path[0] in LEFT_OUT or (path, value) in rest:
            continue
        if any(place[: len(path)] == path for place, _ in rest if path[0] != "context" or len(path) > 1):
            continue  # a part of it was set aside, and with it the whole
        held = False
        for table, row in found.items():
            claims = lake.connection.dialect.columns(table).claims(path)
            columns = [claim.column for claim in claims] if not isinstance(claims, str) else []
            held |= any(row.get(column) is not None and holds(row[column], value) for column in columns)
        if not held:
            missing.append((path, value))
    return missing


@of_lakes
@given(st.lists(json_lines(), min_size=1, max_size=10), st.randoms(use_true_random=False))
@example([b'{"type":"identify","receivedAt":"1969-12-31T00:00+24:00"}'], DICE)
@example(
    [b'{"type":"page","receivedAt":"2020-01-01"}', b'{"type":"page","receivedAt":"2020-01-01T00+01"}'], random.Random(0)
)
def test_every_value_of_every_event_is_in_its_rows_or_kept_beside_them(lines: list[bytes], dice: Any) -> None:
    with new_lake() as lake:
        lines = [with_id(line, f"id{number}") for number, line in enumerate(lines)]
        cut = dice.randint(0, len(lines))  # the second sync meets columns whose types are set
        for part in (lines[:cut], lines[cut:]):
            assert balanced(lake.sync_of(*part))
        by_message: dict[str, dict[str, dict[str, Any]]] = {}
        for table in set(lake.tables()) - {DISCARDS}:
            column = lake.connection.dialect.columns(table).message_column
            for row in lake.rows(table):
                assert table not in by_message.setdefault(row[column], {}), "a message is there twice"
                by_message[row[column]][table] = row
        missing = {n: lost(lake, line, by_message[f"id{n}"]) for n, line in enumerate(lines)}
        assert {number: values for number, values in missing.items() if values} == {}
        assert_discards_are_what_rows_keep(lake)
        assert verify(lake.workspace, lake.connection, lake.runner) == []


def assert_discards_are_what_rows_keep(lake: Lake) -> None:
    kept: dict[tuple[Any, ...], list[Any]] = {}
    for table in set(lake.tables()) - {DISCARDS}:
        column_of = lake.connection.dialect.columns(table).column_of
        for row in lake.rows(table):
            for place, members in read_exactly(row.get("_rescued_data") or "{}"):
                entry = dict(members)
                column = entry.get("column") or column_of(path_of(place.partition("~#")[0]))
                about = (table, row["id"], row["received_at"], column, entry["reason"])
                kept.setdefault(about, []).append(entry["value"])
    told: dict[tuple[Any, ...], list[str]] = {}
    for row in lake.rows_of_discards():
        about = tuple(row[name] for name in ("table_name", "row_id", "received_at", "column_name", "reason"))
        told.setdefault(about, []).append(row["column_value"])
    assert {about: len(values) for about, values in told.items()} == {about: len(kept[about]) for about in kept}
    for about, values in kept.items():
        texts = [value for value in values if isinstance(value, str) and is_unicode(value)]
        as_json = list((Counter(told[about]) - Counter(texts)).elements())
        assert Counter(told[about]) >= Counter(texts), about
        others = [canonical(value) for value in values if not (isinstance(value, str) and is_unicode(value))]
        assert Counter(canonical(read_exactly(text)) for text in as_json) == Counter(others), about


def is_unicode(text: str) -> bool:
    """Whether a text can be written as it is: half a surrogate pair cannot."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


# With properties and traits that are objects, most lines are read at once.
plain_events = events().map(
    lambda event: (
        event
        | {
            "properties": {"price": 5, "Name": "x", "tags": [1], "deep": {"a": {"b": "2020-01-01"}}, "empty": ""},
            "traits": {"email": "a@b.c", "plan": "x"},
            "context": {"ip": "1.2.3.4", "traits": {"plan": "y"}, "page": {"url": "u"}},
            "request_ip": "5.6.7.8",
        }
    )
)


@of_lakes
@given(
    st.lists(json_lines(events() | plain_events), min_size=1, max_size=12),
    st.sampled_from(["true", "false"]),
    st.sampled_from(["true", "false"]),
)
@example([b'{"type":"identify","userId":" "}', b'{"type":"identify","userId":7}'], "true", "true")
@example([b'{"type":"track","event":"A","properties":{"aB":1,"a_b":2}}'], "true", "false")
@example([b'{"type":"track","event":"A","properties":{"a":[ [ "" ] ],"b":[[],[]],"c":{}}}'], "false", "false")
def test_lines_read_at_once_and_one_by_one_give_the_same_tables(lines: list[bytes], traits: str, divide: str) -> None:
    lines = [with_id(line, f"id{number}") for number, line in enumerate(lines)]
    found = []
    for sizes in (Sizes(), ONE_BY_ONE):
        options = {"allow_users_context_traits": traits, "underscore_divide_numbers": divide}
        with new_lake(sizes, **options) as lake:
            assert balanced(lake.sync_of(*lines))
            found.append((all_rows(lake), {table: sorted(lake.types(table).items()) for table in lake.tables()}))
    assert found[0] == found[1]


@of_lakes
@given(st.lists(json_lines(), min_size=1, max_size=8), st.booleans())
def test_a_replay_changes_nothing_and_neither_does_the_loss_of_the_archive(lines: list[bytes], is_lost: bool) -> None:
    with new_lake() as lake:
        lines = [with_id(line, f"id{number}") for number, line in enumerate(lines)]
        raw = lake.put(*lines)
        lake.sync()
        before = all_rows(lake)
        if is_lost:
            raw.unlink()
        report = lake.run(jobs.replay(lake.connection, None, None))
        assert report[0]["carried_over" if is_lost else "rewritten"] > 0
        assert all_rows(lake) == before
        found = verify(lake.workspace, lake.connection, lake.runner)
        assert {finding.kind for finding in found} == ({"raw_file_gone"} if is_lost else set())


@of_lakes
@given(st.lists(json_lines(), min_size=1, max_size=10), st.randoms(use_true_random=False))
def test_any_split_of_the_lines_over_files_gives_the_same_tables(lines: list[bytes], dice: Any) -> None:
    lines = [with_id(line, f"id{number}") for number, line in enumerate(lines)]

    def load(groups: list[list[bytes]]) -> tuple[Rows, Any]:
        with new_lake() as lake:
            for group in groups:
                lake.put(*group)
            assert balanced(lake.sync())
            return all_rows(lake), {table: lake.types(table) for table in lake.tables()}

    groups: list[list[bytes]] = [[] for _ in range(3)]
    for line in dice.sample(lines, len(lines)):
        dice.choice(groups).append(line)
    assert load([lines]) == load([group for group in groups if group])


def test_a_value_that_lost_its_column_to_an_equal_one_is_not_a_discard() -> None:
    with new_lake() as lake:
        page = {"type": "page", "messageId": "m1", "name": "Home", "properties": {"name": "Home"}, "category": "x"}
        lake.sync_of(page, {**page, "messageId": "m2", "properties": {"name": "Other", "category": "y"}})
        rows = lake.rows("pages")
        assert [(row["name"], row["category"]) for row in rows] == [("Home", "x"), ("Home", "y")]
        told = {(row["row_id"], row["column_name"], row["column_value"]) for row in lake.rows_of_discards()}
        assert told == {("m2", "name", "Other"), ("m2", "category", "x")}


def test_of_two_keys_with_one_column_the_last_in_order_wins_as_theirs_does() -> None:
    with new_lake() as lake:
        lake.sync_of(
            track("A", "m1", properties={"a_b": 1, "aB": 2}),
            track("A", "m2", properties={"aB": 1, "a_b": 2}),
            track("A", "m3", properties={"a": {"b": 5}, "a_b": 6}),
        )
        assert [row["a_b"] for row in lake.rows("a")] == [1, 2, 6]
        assert [row["column_value"] for row in lake.rows_of_discards()] == ["2", "1", "5"]
