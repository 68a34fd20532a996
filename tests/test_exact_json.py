"""Reading JSON without losing anything."""

import contextlib
import json
import re
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Raw

from eventlake.reading import exact_json
from eventlake.reading.exact_json import NotJsonError, Parsed, json_text, parse
from eventlake.schema import numbers
from eventlake.schema.rescue import Rescued
from strategies import (
    EMPTY,
    Constant,
    Leaf,
    Number,
    Pairs,
    canonical,
    json_lines,
    json_values,
    leaves,
    path_of,
    read_exactly,
    written,
)


def kept(value: Any) -> Any:
    """A parsed value in the types of the oracle."""
    if isinstance(value, Raw | bytes):
        return read_exactly(bytes(value).decode())
    if isinstance(value, dict):
        return {key: kept(item) for key, item in value.items()}
    if isinstance(value, list):
        return [kept(item) for item in value]
    assert value is None or type(value) in (str, int, bool)
    return value


def found(parsed: Parsed) -> Counter[Leaf]:
    """Every leaf that the parser gave: in the value or set aside."""
    everything = Counter(leaves(kept(parsed.value)))
    for entry in parsed.set_aside:
        assert entry.reason
        everything.update(leaves(read_exactly(entry.json_text), path_of(entry.pointer)))
    return everything


def sent(line: bytes) -> Counter[Leaf]:
    return Counter(leaves(read_exactly(line.decode("utf-8-sig"))))


def assert_nothing_is_lost(line: bytes) -> Parsed:
    parsed = parse(line)
    lost, surplus = sent(line) - found(parsed), found(parsed) - sent(line)
    assert not lost
    # An object of which everything was set aside is empty now; nothing else may be new.
    asides = [path_of(entry.pointer) for entry in parsed.set_aside]
    for path, value in surplus:
        assert value == EMPTY
        assert any(aside[: len(path)] == path != aside for aside in asides)
    return parsed


def is_text(text: str) -> bool:
    return not re.search("[\ud800-\udfff]", text)


def reason_of(line: bytes) -> str:
    with pytest.raises(NotJsonError) as caught:
        parse(line)
    assert str(caught.value)
    return caught.value.reason


def nested(levels: int, opening: str, closing: str, inner: str = "1") -> bytes:
    return (opening * levels + inner + closing * levels).encode()


@given(json_lines())
def test_every_value_of_an_event_is_read_or_set_aside(line: bytes) -> None:
    assert_nothing_is_lost(line)


@given(json_lines(json_values()))
@example(b"-0")
@example(b" [1,2] ")
@example(b'"\\u003a"')
def test_every_json_value_is_read_or_set_aside(line: bytes) -> None:
    assert_nothing_is_lost(line)


@given(json_values())
def test_plain_json_is_read_with_nothing_set_aside(value: Any) -> None:
    parsed = parse(written(value).encode())
    assert not parsed.set_aside
    assert canonical(kept(parsed.value)) == canonical(value)


@given(json_lines())
def test_of_equal_keys_the_first_is_read(line: bytes) -> None:
    def first_ones(value: Any) -> Any:
        if isinstance(value, Pairs):
            return {key: first_ones(item) for key, item in reversed(value) if is_text(key)}
        return None if isinstance(value, Constant) or (isinstance(value, str) and not is_text(value)) else value

    expected = first_ones(read_exactly(line.decode("utf-8-sig")))
    assert Counter(leaves(kept(parse(line).value))) == Counter(leaves(expected))


@given(json_lines(json_values()))
def test_a_value_is_written_as_it_was_read(line: bytes) -> None:
    value = parse(line).value
    again = parse(json_text(value).encode())
    assert Counter(leaves(kept(again.value))) + found(Parsed(None, again.set_aside)) == Counter(leaves(kept(value)))


@given(
    json_lines(json_values()),
    st.lists(
        st.tuples(
            st.integers(0, 400), st.integers(0, 2), st.sampled_from(list(b'{}[],:"\\u0n19.eE-+ \x00\x1f\xc3\xff'))
        ),
        max_size=3,
    ),
)
def test_a_damaged_line_is_refused_or_still_read_exactly(line: bytes, damages: list[tuple[int, int, int]]) -> None:
    for place, dropped, byte in damages:
        line = line[:place] + bytes([byte]) + line[place + dropped :]
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        assert reason_of(line) == "not_utf8"
        return
    try:
        read_exactly(text)
    except json.JSONDecodeError:
        assert reason_of(line) == "not_json"
    else:
        assert_nothing_is_lost(line)


@pytest.mark.parametrize(
    "digits",
    [
        "0",
        "-1",
        "9007199254740993",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551616",
        "1" * 40,
        "-" + "7" * 4299,
        "7" * 4300,
        "7" * 4301,
        "7" * 5000,
        "1.10",
        "-0.0",
        "0.1000000000000000055511151231257827",
        "1e400",
        "1e-400",
        "1E+5",
        "1e99999999999999999999",
        "0." + "3" * 5000,
    ],
)
def test_numbers_keep_every_digit(digits: str) -> None:
    parsed = parse(f'{{"a":{digits},"b":[{digits}]}}'.encode())
    assert not parsed.set_aside
    assert canonical(kept(parsed.value)) == canonical({"a": Number(digits), "b": [Number(digits)]})
    if re.search("[.eE]", digits):
        assert bytes(parsed.value["a"]).decode() == digits
    assert json_text(parsed.value) == f'{{"a":{digits},"b":[{digits}]}}'


@pytest.mark.parametrize(
    ("line", "asides"),
    [
        (b'{"a":1,"a":2}', [("/a", "2")]),
        (b'{"a":1,"a":2,"a":3}', [("/a", "2"), ("/a", "3")]),
        (b'{"a":1,"\\u0061":2}', [("/a", "2")]),
        (b'{"a":1,"a":"\\u003a"}', [("/a", '":"')]),
        (b'{"a":"::","a":"\\u003A\\u003a\\u003a"}', [("/a", '":::"')]),
        (b'{"p":{"a":{"b":1,"b":{"c":[2]}}}}', [("/p/a/b", '{"c":[2]}')]),
        (b'{"a":null,"a":1}', [("/a", "1")]),
        (b'{"a":{"x":1},"a":{"y":2}}', [("/a", '{"y":2}')]),
        (b'{"a/b~":1,"a/b~":2}', [("/a~1b~0", "2")]),
        (b'{"a":1,"a":1.10}', [("/a", "1.10")]),
        (b'{"a":1,"a":[{"b":1,"b":2}]}', [("/a", '[{"b":1,"b":2}]')]),
    ],
)
def test_a_key_that_came_before_is_set_aside(line: bytes, asides: list[tuple[str, str]]) -> None:
    parsed = assert_nothing_is_lost(line)
    assert [(entry.pointer, entry.json_text) for entry in parsed.set_aside] == asides
    assert {entry.reason for entry in parsed.set_aside} == {"the same key came before in this object"}


@pytest.mark.parametrize(
    "array",
    ['[{"a":1,"a":2}]', '[[{"a":{"b":1,"b":[{"c":1.10,"c":2}]}}]]', '[{"a":1,"a":1}]', '[{"a":1,"\\ud800":2}]'],
)
def test_keys_that_come_twice_inside_an_array_stay_in_it(array: str) -> None:
    parsed = parse(f'{{"list":{array}}}'.encode())
    assert not parsed.set_aside
    assert canonical(kept(parsed.value["list"])) == canonical(read_exactly(array))
    assert canonical(read_exactly(json_text(parsed.value["list"]))) == canonical(read_exactly(array))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("wrapped", ['{{"list":[{}]}}', '{{"z":1,"z":{}}}', '{{"z":1,"z":2,"a":{}}}'])
def test_keys_that_come_twice_at_every_level_take_no_longer_than_others(wrapped: str) -> None:
    text = "1"
    for _ in range(200):
        text = f'{{"a":{text},"a":2}}'
    assert_nothing_is_lost(wrapped.format(text).encode())


@pytest.mark.parametrize(
    ("line", "asides"),
    [
        (b'{"a":"\\ud800"}', [("/a", '"\\ud800"')]),
        (b'{"a":"x\\udfffy","b":1}', [("/a", '"x\\udfffy"')]),
        (b'{"\\ud800":1}', [("/\ud800", "1")]),
        (b'{"\\ud800":1,"\\ud800":2}', [("/\ud800", "1"), ("/\ud800", "2")]),
        (b'{"p":{"\\udc00":{"a":["\\ud800"]}}}', [("/p/\udc00", '{"a":["\\ud800"]}')]),
    ],
)
def test_half_a_surrogate_pair_is_set_aside(line: bytes, asides: list[tuple[str, str]]) -> None:
    parsed = assert_nothing_is_lost(line)
    assert [(entry.pointer, entry.json_text) for entry in parsed.set_aside] == asides


def test_half_a_surrogate_pair_inside_an_array_stays_in_it() -> None:
    parsed = parse(b'{"a":["\\ud800",1]}')
    assert not parsed.set_aside
    assert read_exactly(json_text(parsed.value["a"])) == ["\ud800", Number("1")]


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert parse(b'{"\\ud83c\\udf89":"\\uD83C\\uDF89"}') == Parsed({"🎉": "🎉"}, [])


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_what_is_not_a_number_is_set_aside_by_its_name(name: str) -> None:
    parsed = parse(f'{{"a":{{"b":{name}}},"c":[1,{name}]}}'.encode())
    assert parsed.value["a"] == {"b": None}
    assert [(entry.pointer, entry.json_text) for entry in parsed.set_aside] == [("/a/b", f'"{name}"')]
    assert name in parsed.set_aside[0].reason
    assert json_text(parsed.value["c"]) == f'[1,"{name}"]'


def test_a_byte_order_mark_and_white_space_are_passed_over() -> None:
    assert parse(b'\xef\xbb\xbf \t{ "a" :\t1 }\r') == Parsed({"a": 1}, [])


@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]"), ('{"a":1,"b":[0,', "]}")]
)
@pytest.mark.parametrize("beside", ["", '"z":1,"z":2,', '"z":NaN,'])
def test_six_hundred_levels_are_read(opening: str, closing: str, beside: str) -> None:
    levels = 600 // len(closing)
    line = b'{%s"deep":%s}' % (beside.encode(), nested(levels - 1, opening, closing))
    parsed = parse(line)
    assert len(parsed.set_aside) == bool(beside)
    text = json_text(parsed.value["deep"]).encode()
    assert text == nested(levels - 1, opening, closing)


@pytest.mark.parametrize("levels", [3_000, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('{"a":1,"a":', "}"), ("[", "")])
def test_thousands_of_levels_are_refused(levels: int, opening: str, closing: str) -> None:
    assert reason_of(nested(levels, opening, closing)) == "nested_too_deeply"


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_a_line_is_refused_for_its_depth_wherever_it_is_read(opening: str, closing: str) -> None:
    """Who calls, and how deep the stack is by then, must not decide what is loaded."""

    def outcome(levels: int, frames: int) -> str:
        if frames:
            return outcome(levels, frames - 1)
        try:
            parse(nested(levels, opening, closing))
        except NotJsonError as error:
            return error.reason
        return "read"

    depths = range(500, 1100, 20)
    assert [outcome(levels, 0) for levels in depths] == [outcome(levels, 100) for levels in depths]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"", "not_json"),
        (b"   ", "not_json"),
        (b"\xef\xbb\xbf", "not_json"),
        (b"hello", "not_json"),
        (b'{"a":1', "not_json"),
        (b'{"a":1}}', "not_json"),
        (b'{"a":1} {"b":2}', "not_json"),
        (b"{'a':1}", "not_json"),
        (b'{"a":01}', "not_json"),
        (b'{"a":1.}', "not_json"),
        (b'{"a":+1}', "not_json"),
        (b'{"a":1,}', "not_json"),
        (b'{"a":tru}', "not_json"),
        (b'{"a":nan}', "not_json"),
        (b'{"a":"\x00"}', "not_json"),
        (b'{"a":"\\x41"}', "not_json"),
        (b'{"a":"\\u12"}', "not_json"),
        (b"{a:1}", "not_json"),
        (b"{1:1}", "not_json"),
        (b'{"a":"\xff"}', "not_utf8"),
        (b'{"a":"\xed\xa0\x80"}', "not_utf8"),
        (b'{"\xc3":1}', "not_utf8"),
        (b"\xff\xfe{\x00}\x00", "not_utf8"),
        (b"\x1f\x8b\x08\x00", "not_utf8"),
    ],
)
def test_a_line_that_is_not_json_is_refused_with_its_reason(line: bytes, reason: str) -> None:
    assert reason_of(line) == reason


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reader(line: bytes) -> None:
    with contextlib.suppress(NotJsonError):
        assert_nothing_is_lost(line)


def calls_of_slow_reader(line: bytes) -> int:
    """How often Python's own JSON module, which takes twenty times as long, is called to read a line."""
    calls = 0

    def count(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_globals.get("__name__") == json.decoder.__name__

    sys.setprofile(count)
    try:
        parse(line)
    finally:
        sys.setprofile(None)
    return calls


def test_the_fast_reader_is_taken_for_an_ordinary_line() -> None:
    line = '{"type":"track","url":"https://a.b:80/?q=\\"x\\"","time":"2026-11-15T10:20:30Z","n":[1.5,{"é":null}]}'
    assert parse(line.encode()).value["url"] == 'https://a.b:80/?q="x"'
    assert calls_of_slow_reader(line.encode()) == 0
    assert calls_of_slow_reader(b'{"a":1,"a":2}') > 0


# What was rescued, and what a collector adds


def test_entries_of_rescued_data_are_read_with_every_digit_and_without_their_marks() -> None:
    text = '{"/a":{"value":1.10,"reason":"one"},"/a~#2":{"value":{"b":1,"b":2},"reason":"two"}}'
    assert exact_json.rescued_in(text) == [Rescued("/a", "1.10", "one"), Rescued("/a", '{"b":1,"b":2}', "two")]
    assert exact_json.rescued_in("{}") == []


@pytest.mark.parametrize(
    ("sent", "stored", "expected"),
    [
        # members of its own first, in their order; then what is new
        ('{"b":1.10,"a":[1e5]}', {"n": 1}, '{"b":1.10,"a":[1e5],"n":1}'),
        ('{"a":1}', {"a": 2, "n": None}, '{"a":2,"n":null}'),
        ('{"a":1}', {"a": None}, '{"a":1}'),
        ('{"a":1}', {"a": {"b": 2}}, '{"a":{"b":2}}'),
        # the event's own member of an object stays, as it was sent
        ('{"o":{"x":1.0}}', {"o": {"x": 5, "y": 2}}, '{"o":{"x":1.0,"y":2}}'),
        ('{"o":{"x":1,"x":2}}', {"o": {"y": 3}}, '{"o":{"x":1,"x":2,"y":3}}'),
        # of keys that come twice, the first is the event's, and the others stay
        ('{"a":1,"a":2}', {"a": 3}, '{"a":3,"a":2}'),
        # what must not be stored is not, however often it came
        ('{"k":1,"a":2,"k":3}', {}, '{"a":2}'),
        ('{"a":2}', {"k": 5}, '{"a":2}'),
        ('\ufeff {"a":"\\ud800"} ', {"b": 1}, '{"a":"\\ud800","b":1}'),
    ],
)
def test_an_object_grows_and_loses_nothing(sent: str, stored: dict[str, Any], expected: str) -> None:
    assert exact_json.rewritten(sent.encode(), stored, without=frozenset({"k"})).decode() == expected


@pytest.mark.parametrize(
    ("line", "reason", "message"),
    [
        (b'{"a":\xff}', "not_utf8", "byte 5 is not UTF-8"),
        (b'{"a":1,}', "not_json", "Expecting property name enclosed in double quotes at character 7"),
        (b"[" * 700 + b"]" * 700, "nested_too_deeply", "700 levels of nesting, more than 650"),
        (b"[" * 100_000, "nested_too_deeply", "nested too deeply to read"),
    ],
)
def test_the_message_tells_what_is_wrong_with_a_line(line: bytes, reason: str, message: str) -> None:
    with pytest.raises(NotJsonError) as caught:
        parse(line)
    assert (caught.value.reason, str(caught.value)) == (reason, message)


@pytest.mark.parametrize(
    ("opening", "closing", "per_pair"),
    [("[", "]", 1), ('{"a":', "}", 1), ('{"a":1,"a":[', "]}", 2), ('{"a":[1,', ",2]}", 2)],
)
@pytest.mark.parametrize("beside", ["", '"z":1,"z":2,'])
def test_the_limit_of_nesting_is_exact(opening: str, closing: str, per_pair: int, beside: str) -> None:
    def line(levels: int) -> bytes:
        """An object with so many levels below it, not written as briefly as it could be."""
        return b'{%s"deep": %s}' % (
            beside.encode(),
            nested(levels // per_pair, opening, closing, inner="1" + " " * 2000),
        )

    parse(line(exact_json.MAX_NESTING - 2))
    assert reason_of(line(exact_json.MAX_NESTING + 2)) == "nested_too_deeply"


def test_a_long_line_is_refused_for_its_depth_and_not_for_its_brackets() -> None:
    many = b'{"a":"' + b"[{" * 2000 + b'","b":[' + b",".join([b"[]"] * 2000) + b"]}"
    assert parse(many).value["a"] == "[{" * 2000


@pytest.mark.parametrize("beside", ["", '"z":1,"z":2,', '"z":NaN,'])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("later", ["[1]", '{"x":1}', "[[1]]", '{"x":{"y":1}}'])
def test_what_stands_behind_a_deep_value_does_not_hide_its_depth(
    beside: str, opening: str, closing: str, later: str
) -> None:
    deep = nested(exact_json.MAX_NESTING + 1, opening, closing).decode()
    assert reason_of(f'{{{beside}"deep":{deep},"later":{later}}}'.encode()) == "nested_too_deeply"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a":"\\ud800"}', "half a surrogate pair is not text"),
        (b'{"\\ud800":1}', "half a surrogate pair in the key"),
        (b'{"a":1,"a":2}', "the same key came before in this object"),
        (b'{"a":-Infinity}', "-Infinity is not a JSON number"),
    ],
)
def test_it_is_told_why_a_value_was_set_aside(line: bytes, reason: str) -> None:
    assert [entry.reason for entry in parse(line).set_aside] == [reason]


def test_as_many_levels_as_may_be_are_read_and_one_more_is_refused() -> None:
    def line(levels: int) -> bytes:
        return b"[[]," + nested(levels - 1, "[", "]") + b"]"  # with one bracket more than levels

    assert parse(line(exact_json.MAX_NESTING)).value[0] == []
    assert reason_of(line(exact_json.MAX_NESTING + 1)) == "nested_too_deeply"


def test_a_whole_number_of_four_thousand_digits_is_a_number_and_a_longer_one_its_text() -> None:
    """Python makes no integer of much more than that from text."""
    assert numbers.whole("7" * 4000) == int("7" * 4000)
    assert numbers.whole("7" * 4001) == Raw(b"7" * 4001)
