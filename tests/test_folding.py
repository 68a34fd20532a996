"""What is repeated is parsed once, and nothing else changes: every test compares with flattening event by event."""

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from eventlake.schema import exact_json, folding
from eventlake.schema.event_json import EventParser
from eventlake.schema.exact_json import NotJsonError
from eventlake.schema.flatten import Flattener, TableColumns
from eventlake.schema.folding import CannotFoldError, FlatRows, FoldingFlattener, RepeatedParts
from eventlake.schema.kinds import Place, by_kind
from eventlake.schema.rescue import Rescued
from strategies import json_lines, json_values, plain_line

Row = tuple[dict[Place, Any], Counter[Rescued]]


class Folded:
    """Flattens lines as a stage task does."""

    def __init__(self, column_limit: int = 2000) -> None:
        self.parser = EventParser()
        self.parts = RepeatedParts(self.parser)
        self.flattener = FoldingFlattener(known=(), column_limit=column_limit, parts=self.parts)

    @property
    def stopped(self) -> bool:
        return self.flattener.takes_whole

    def _add(self, line: bytes) -> None:
        parsed = self.parser.parse(line)
        self.flattener.add(*(exact_json.parse(line) if self.stopped else parsed))

    def rows(self, lines: Iterable[bytes], *, take_every: int = 1000) -> list[Row | None]:
        """A row for each line, None for a line that is not JSON."""
        rows: list[Row | None] = []
        places: list[int] = []

        def take() -> None:
            for place, row in zip(places, rows_of(self.flattener.take()), strict=True):
                rows[place] = row
            places.clear()

        for line in lines:
            rows.append(None)
            try:
                try:
                    self._add(line)
                except CannotFoldError:
                    take()
                    self.flattener.take_whole()
                    self._add(line)
                places.append(len(rows) - 1)
            except NotJsonError:
                continue
            if len(places) >= take_every:
                take()
                self.parts.review()
        take()
        return rows


def rows_of(flat: FlatRows) -> list[Row]:
    rows: list[Row] = [({}, Counter(flat.rescued.get(row, []))) for row in range(flat.rows)]
    for place, array in flat.columns:
        assert len(array) == flat.rows
        assert array.null_count < flat.rows
        for row, value in enumerate(array.to_pylist()):
            if value is not None:
                assert place not in rows[row][0]
                rows[row][0][place] = value
    return rows


def one_by_one(lines: Iterable[bytes]) -> list[Row | None]:
    """The same without folding."""
    rows: list[Row | None] = []
    for line in lines:
        flattener = Flattener(TableColumns())
        try:
            flattener.add(*exact_json.parse(line))
        except NotJsonError:
            rows.append(None)
            continue
        chunk = flattener.take()
        columns = [
            (Place(name, pointer, kind), array)
            for name, pointer, values in chunk.columns
            for kind, array in by_kind(values)
        ]
        rows += rows_of(FlatRows(1, columns, chunk.rescued))
    return rows


def web_event(number: int, **context: Any) -> dict[str, Any]:
    return {
        "type": "track",
        "messageId": f"m{number}",
        "context": {"library": {"name": "js", "version": "1"}, "locale": "nl-NL", **context},
        "integrations": {"All": True},
        "properties": {"n": number},
    }


# The same as event by event


@given(st.lists(json_lines(), max_size=6), st.integers(1, 4))
@example([plain_line({"type": "track", "İ": 1, "context": {"İ": 1}}), plain_line({"": 2, "context": {"": 2}})], 1)
def test_hostile_events_are_flattened_as_if_each_came_alone(lines: list[bytes], take_every: int) -> None:
    lines = lines + lines[::-1]
    assert Folded().rows(lines, take_every=take_every) == one_by_one(lines)


CLASHES = ["context_app_name", "Context_App_Name", "Context", "integrations_all", "_metadata"]
PARTS = st.dictionaries(st.sampled_from(["app", "App", "app_name", "x"]), json_values() | st.just({"name": "x"}))


@given(
    st.lists(
        json_lines(
            st.fixed_dictionaries(
                {"type": st.just("track")},
                optional={
                    "context": PARTS | json_values(),
                    "integrations": json_values(),
                    **{key: json_values() for key in CLASHES},
                },
            ).flatmap(lambda event: st.permutations(list(event.items())).map(dict))
        ),
        max_size=6,
    )
)
def test_parts_that_share_columns_are_told_apart_in_document_order(lines: list[bytes]) -> None:
    assert Folded().rows(lines * 2) == one_by_one(lines * 2)


@given(json_lines(), st.integers(0, 2**32))
@example(b'{"type":"track","context":{"app":{"name":"\\x"}}}', 0)
@example(b'{"type":"track","context":{"app":"\xff"}}', 0)
@example(b'{"type":"track","context":{"app":"\\ud800"}}', 0)
@example(b'{"type":"track","context":{"app":01}}', 0)
@example(b'{"type":"track","context":{"app":{"a":1,"a":2}}}', 0)
@example(b'{"type":"track","context":{"app":1},"context":{"app":2}}', 0)
def test_a_line_that_was_changed_in_transit_is_an_event_or_not_by_the_same_rule(line: bytes, seed: int) -> None:
    dice = random.Random(seed)
    changed = bytearray(line)
    for _ in range(dice.randrange(3)):
        changed[dice.randrange(len(changed))] = dice.choice(b'{}[]":,\\0-1.eE\x00\xff\n ')
    lines = [line, bytes(changed), line]
    assert Folded().rows(lines) == one_by_one(lines)


# What folding is for


def test_repeated_parts_are_parsed_once() -> None:
    folded = Folded()
    lines = [plain_line(web_event(number)) for number in range(100)]
    assert folded.rows(lines) == one_by_one(lines)
    assert not folded.stopped
    assert {path: len(part.numbers) for path, part in folded.parts._parts.items()} == {
        ("context", "library"): 1,
        ("context", "locale"): 1,
        ("integrations",): 1,
    }


def test_texts_stay_a_dictionary() -> None:
    folded = Folded()
    for number in range(100):
        folded.flattener.add(*folded.parser.parse(plain_line(web_event(number))))
    arrays = {place.column: array for place, array in folded.flattener.take().columns}
    assert str(arrays["context_locale"].type).startswith("dictionary<values=string")
    assert arrays["context_locale"].to_pylist() == ["nl-NL"] * 100


def test_spaces_between_members_change_nothing() -> None:
    folded = Folded()
    lines = [plain_line(web_event(number)).replace(b":", b": ").replace(b",", b", ") for number in range(3)]
    assert folded.rows(lines) == one_by_one(lines)
    assert isinstance(folded.parser.parse(lines[0])[0]["context"]["library"], Raw)


def test_a_part_that_does_not_repeat_is_parsed_with_its_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_MANY_TEXTS", 10)
    folded = Folded()
    lines = [plain_line(web_event(number, page={"url": f"/{number}"}, ip=number / 7)) for number in range(100)]
    assert folded.rows(lines, take_every=20) == one_by_one(lines)
    assert not folded.stopped
    parsed = folded.parser.parse(lines[0])[0]["context"]
    assert parsed["page"] == {"url": "/0"}
    assert isinstance(parsed["library"], Raw)


def test_texts_are_forgotten_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folding, "_MAX_BYTES", 100)
    folded = Folded()
    lines = [plain_line(web_event(number, page={"url": f"/{number}"})) for number in range(50)]
    assert folded.rows(lines, take_every=10) == one_by_one(lines)
    assert not folded.parts._parts


# Senders that make things up


@pytest.mark.parametrize(
    "context",
    [
        lambda n: {f"key{n}": n},
        lambda n: {"app": {f"key{n}": n}},
        lambda n: {"app": {f"key{n}": {"x": None}}},
        lambda n: {f"key{m}": 1 for m in range(n % 25)},
    ],
    ids=["keys", "columns", "objects", "shapes"],
)
def test_a_sender_that_makes_up_keys_does_not_fill_the_memory(context: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_MAX_PARTS", "_MAX_SIZE", "_MAX_SHAPES"):
        monkeypatch.setattr(folding, limit, 20)
    folded = Folded()
    lines = [plain_line({"type": "track", "context": context(number)}) for number in range(60)]
    assert folded.rows(lines) == one_by_one(lines)
    assert folded.stopped


def test_a_part_that_is_not_utf8_is_told_the_same_whatever_came_before() -> None:
    parser = EventParser()
    line = b'{"type":"track","context":{"ua":"caf\xe9"}}'
    told = []
    for _ in range(2):
        with pytest.raises(NotJsonError) as caught:
            parser.parse(line)
        told.append((caught.value.reason, str(caught.value)))
        parser.parse(line.replace(b"\xe9", b"e"))  # now its keys are known
    assert told == [("not_utf8", "byte 36 is not UTF-8")] * 2


def test_made_up_properties_are_not_remembered_past_the_limit() -> None:
    folded = Folded(column_limit=10)
    folded.rows([plain_line({"type": "track", "properties": {f"key{number}": 1}}) for number in range(100)])
    assert len(folded.parts.owners) <= 10


def test_an_event_that_cannot_be_folded_leaves_nothing_behind() -> None:
    folded = Folded()
    folded.flattener.add(*folded.parser.parse(plain_line(web_event(1))))
    clash = {"type": "track", "context": {"os": {"name": "x"}, "os_name": "y"}, "properties": {"n": 2}}
    event, set_aside = folded.parser.parse(plain_line(clash))
    with pytest.raises(CannotFoldError):
        folded.flattener.add(event, set_aside)
    assert rows_of(folded.flattener.take()) == one_by_one([plain_line(web_event(1))])
