"""Lines read at once: what is called whole is exactly what the exact reader reads."""

import json
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.demo import events as demo
from eventlake.demo.events import Recipe
from eventlake.native.library import Places
from eventlake.reading import exact_json
from eventlake.reading.flatten import CONTAINERS, Flattener, TableColumns
from eventlake.reading.scan import Scan
from eventlake.schema.kinds import Kind, by_kind
from eventlake.schema.rescue import pointer
from scans import KINDS, native, place, text_of
from strategies import json_lines, json_values, plain_line

Values = dict[tuple[str, Kind], Any]


def read(lines: list[bytes], *, places: int = 1000, keys: int = 100_000, room: int = 1) -> list[Values | None]:
    """What is read of each line, if it is whole, by place and kind."""
    memory = Places.with_room(places + len(CONTAINERS), keys + len("".join(CONTAINERS)))
    for key in CONTAINERS:
        memory.arrays["may_be_empty"][place(memory, key)] = True
    text = text_of(lines)
    scan = Scan(native(), memory, text, room)
    found: list[Values | None] = []
    for line in range(len(lines)):
        if not scan.lines.arrays["whole"][line]:
            found.append(None)
            assert scan.lines.arrays["first_value"][line] == scan.lines.arrays["first_value"][line + 1]
            continue
        values: Values = {}
        first, end = (int(scan.lines.arrays["first_value"][line + more]) for more in (0, 1))
        for value in range(first, end):
            number, start, length, kind = (
                int(scan.values.arrays[name][value]) for name in ("place", "start", "length", "kind")
            )
            where = (pointer(path(memory, number)), KINDS[kind & 0x0F])
            assert where not in values
            values[where] = _value(text.content[start : start + length], kind)
        found.append(values)
    return found


def path(memory: Places, number: int) -> tuple[str, ...]:
    if not number:
        return ()
    parent, key = memory.key(number)
    return (*path(memory, parent), key)


def _value(content: bytes, kind: int) -> Any:
    assert (b"\\" in content) == (kind == 0x10)
    match KINDS[kind & 0x0F]:
        case Kind.TEXT:
            return json.loads(b'"' + content + b'"')
        case Kind.INTEGER:
            return int(content)
        case Kind.BOOLEAN:
            return {b"true": True, b"false": False}[content]
        case Kind.JSON if kind & 0x20:
            return exact_json.encode(exact_json.parse(content).value).decode()
        case _:
            return content.decode()


def exactly(line: bytes) -> Values:
    """What the exact reader finds; fails if it sets anything aside."""
    event, set_aside = exact_json.parse(line)
    assert not set_aside
    flattener = Flattener(TableColumns())
    flattener.add(event, set_aside)
    chunk = flattener.take()
    found = {(where, kind): array[0].as_py() for _, where, cells in chunk.columns for kind, array in by_kind(cells)}
    # Two values may go to one column: the second is rescued then.
    for entry in chunk.rescued.get(0, []):
        value = exact_json.parse(entry.json_text.encode()).value
        cell = exact_json.encode(value) if isinstance(value, list) else value
        ((kind, array),) = by_kind([cell])
        found[entry.pointer, kind] = array[0].as_py()
    return found


def check(lines: list[bytes]) -> int:
    """Compare what is whole with the exact reader; how many lines were whole."""
    found = read(lines)
    for line, values in zip(lines, found, strict=True):
        assert values is None or values == exactly(line), line
    return sum(values is not None for values in found)


def web_event(number: int) -> dict[str, Any]:
    return {
        "type": "track",
        "event": "Order Completed",
        "messageId": f"m{number}",
        "anonymousId": None,
        "context": {"library": {"name": "js", "version": "1"}, "screen": {"density": 1.5}} if number % 2 else {},
        "properties": {
            "n": number,
            "total": number / 4,
            "first": number == 0,
            "title": 'a "quoted"\nline \\ é 🎉',
            "products": [{"sku": f"p{number}", "price": 12.5, "tags": [], "none": None, "more": {}}, True],
        },
    }


# Ordinary events are read so


def test_ordinary_events_are_whole() -> None:
    assert check([plain_line(web_event(number)) for number in range(20)]) == 20


def test_demo_events_are_whole() -> None:
    lines = list(demo.lines(Recipe(3000)))
    assert check(lines) == len(lines)


def test_spaces_and_escapes_change_nothing() -> None:
    lines = [json.dumps(web_event(number)).encode() for number in range(20)]
    lines += [
        b" \t" + json.dumps(web_event(number), indent=1).replace("\n", "\r").encode() + b"\r " for number in range(5)
    ]
    assert check(lines) == 25


def test_lines_may_lack_keys_and_have_values_of_other_kinds() -> None:
    values: list[Any] = [1, "1", True, None, 1.25, [1, {"a": 2}], "", False, -7, "é", {"x": {"x": 1}}]
    lines = [plain_line({"type": "track", "x": value, f"only{row}": row}) for row, value in enumerate(values)]
    assert check(lines) == len(values)


@pytest.mark.parametrize("room", [0, 1, 7, 100])
def test_there_is_room_for_all_values_however_much_there_was_to_begin_with(room: int) -> None:
    lines = [plain_line(web_event(number)) for number in range(50)] + [b"{" + b",".join(_members(500)) + b"}"]
    found = read(lines, room=room)
    assert found == read(lines, room=1000)
    assert len(found[-1] or ()) == 500
    assert read([], room=room) == []


def _members(count: int) -> list[bytes]:
    return [f'"{number}":{number}'.encode() for number in range(count)]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *((number, Kind.INTEGER) for number in ("0", "-0", "7", "-7", "999999999999999999", "9223372036854775807")),
        *((number, Kind.INTEGER) for number in ("-9223372036854775808", "1000000000000000000")),
        *((number, Kind.NUMBER) for number in ("9223372036854775808", "-9223372036854775809", "10000000000000000000")),
        *((number, Kind.NUMBER) for number in ("0.5", "-0.0", "1.10", "1e5", "1E+05", "1e-400", "0.10e00", "7" * 5000)),
    ],
)
def test_every_digit_of_a_number_is_kept(text: str, kind: Kind) -> None:
    expected = int(text) if kind is Kind.INTEGER else text
    assert read([f'{{"n":{text},"a":["{text}"]}}'.encode()]) == [
        {("/n", kind): expected, ("/a", Kind.JSON): f'["{text}"]'}
    ]
    if text != "-0":
        assert read([f'{{"a":[{text}, {{"b" :{text}}}]}}'.encode()]) == [
            {("/a", Kind.JSON): f'[{text},{{"b":{text}}}]'}
        ]


def test_texts_of_any_length_are_read_to_their_ends() -> None:
    """Eight bytes are looked at together: whatever is special may be any of them."""
    for length in range(20):
        for special in ('"', "\\", "é", "\u0001", "🎉", "\u2028"):
            for place_of_special in range(length + 1):
                value = "x" * place_of_special + special + "y" * (length - place_of_special)
                for line in (plain_line({"a": value, "b": [value]}), plain_line({value: 1})):
                    (values,) = read([line])
                    assert (values == exactly(line)) if values is not None else (b"\\" in line)


# What is not exactly what was sent is never taken for it


@given(st.lists(json_lines(), min_size=1, max_size=6))
def test_hostile_events_are_read_exactly_or_not_at_all(lines: list[bytes]) -> None:
    check(lines)


@given(st.lists(json_lines(json_values()), min_size=1, max_size=6))
def test_hostile_values_are_read_exactly_or_not_at_all(lines: list[bytes]) -> None:
    check([line.replace(b"\n", b"") for line in lines])


BYTES = b'{}[]":,\\0-1.eE+\x00\x1f\x7f\xff\xc3\xa9\xed\xa0\x80\xf0 tfnrulae\t\ru'


@given(st.integers(0, 2**32))
@example(0)
def test_a_line_that_was_changed_in_transit_is_read_exactly_or_not_at_all(seed: int) -> None:
    dice = random.Random(seed)
    lines = [plain_line(web_event(number)) for number in range(3)] + [json.dumps(web_event(3)).encode()]
    changed = []
    for line in lines * 4:
        copy = bytearray(line)
        for _ in range(dice.randrange(1, 4)):
            where = dice.randrange(len(copy))
            copy[where : where + dice.randrange(3)] = bytes(dice.choices(BYTES, k=dice.randrange(3)))
        changed.append(bytes(copy))
    found = read(lines + changed)
    for line, values in zip(lines + changed, found, strict=True):
        if values is None:
            continue
        assert values == exactly(line)
    assert None not in found[: len(lines)]


@given(st.text(alphabet='{}[]":,\\019-.eE+ tfnrulase\u00e9\ud83d', max_size=30))
def test_whatever_is_no_json_is_left(text: str) -> None:
    line = text.encode(errors="surrogatepass")
    for each in (line, b'{"a":' + line + b"}", b'{"a":[' + line + b"]}", b'{"a":"' + line + b'"}'):
        (values,) = read([each])
        assert values is None or values == exactly(each)


LEFT = [
    b'{"a":1,"a":2}',
    b'{"a":null,"a":2}',
    b'{"b":{"a":1,"c":{},"a":2}}',
    b'{"a":[{"b":1,"b":1}]}',
    b'{"a":[{"b":{"c":1},"d":2,"b":1}]}',
    b'{"a":1,}',
    b'{,"a":1}',
    b'{"a":1 "b":2}',
    b'{"a" 1}',
    b"{a:1}",
    b'{"a":}',
    b'{"a":NaN}',
    b'{"a":-}',
    b'{"a":+1}',
    b'{"a":.5}',
    b'{"a":1.}',
    b'{"a":1.e5}',
    b'{"a":1e}',
    b'{"a":1e+}',
    b'{"a":01}',
    b'{"a":-01}',
    b'{"a":0x1}',
    b'{"a":tru}',
    b'{"a":truee}',
    b'{"a":nul}',
    b'{"a":falsy}',
    b'{"a":nil}',
    b'{"a":[1,]}',
    b'{"a":[,1]}',
    b'{"a":[1 2]}',
    b'{"a":[1}}',
    b'{"a":[{"b":1]}]}',
    b'{"a":[{"b"}]}',
    b'{"a":[{"b":1,}]}',
    b'{"a":[{1:1}]}',
    b'{"a":[-0]}',
    b'{"a":["\\n"]}',
    b'{"a":[{"\\n":1}]}',
    b'{"a":[nul]}',
    b'{"a":[1.]}',
    b'{"a":["\x1f"]}',
    b'{"a":"\\ud800"}',
    b'{"a":"\\ud800\\u0041"}',
    b'{"a":"\\udc00\\ud800"}',
    b'{"a":"\\ud83dx"}',
    b'{"a":"\\u12g4"}',
    b'{"a":"\\u12"}',
    b'{"a":"\\x41"}',
    b'{"a":"\\\x00"}',
    b'{"a":"\\\xc3\xa9"}',
    b'{"a":"\t"}',
    b'{"a":"\x00"}',
    b'{"a":"\xff"}',
    b'{"a":"\xc3"}',
    b'{"a":"\xc3("}',
    b'{"a":"\xc0\x80"}',
    b'{"a":"\xe0\x80\x80"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\xf0\x80\x80\x80"}',
    b'{"a":"\xf4\x90\x80\x80"}',
    b'{"a":"\xf8\x88\x80\x80\x80"}',
    b'{"a":"\x80"}',
    b'{"\xff":1}',
    b'{"\\u0061":1}',
    b'{"a":["\xc3("]}',
    b'{"a":[{"\xff":1}]}',
    b'\xef\xbb\xbf{"a":1}',
    b'{"a":1}{"a":1}',
    b'{"a":1}x',
    b'{"a":1}\x0b',
    b'{"a":1',
    b'{"a":1}}',
    b'{"a":"1',
    b'{"a":"\\',
    b'{"a',
    b"{",
    b'{"a":{}}',
    b'{"context":{"a":{}}}',
    b'{"a":{"context":{}}}',
    b"{}",
    b"[]",
    b"5",
    b"null",
    b"",
    b" ",
    b'{"a":' + b"[" * 33 + b"]" * 33 + b"}",
    b'{"a":' * 26 + b"1" + b"}" * 26,
    b'{"a":[{' + b",".join(_members(257)) + b"}]}",
]


@pytest.mark.parametrize("line", LEFT)
def test_odd_lines_are_left_and_stop_nobody(line: bytes) -> None:
    plain = [b'{"a":1,"c":{"b":"x"}}', b'{"a":"x"}', b'{"context":{}}']
    expected = read(plain)
    assert None not in expected
    assert read([plain[0], line, *plain[1:], line]) == [expected[0], None, *expected[1:], None]


WHOLE = [
    b'{"a":' + b"[" * 32 + b"]" * 32 + b"}",
    b'{"a":' * 25 + b"1" + b"}" * 25,
    b'{"a":[{' + b",".join(_members(256)) + b"}]}",
    b'{"a":[' + b",".join(b"{" + b",".join(_members(200)) + b"}" for _ in range(3)) + b"]}",
    b'{"a":[{"b":1},{"b":2}],"b":{"a":1},"c":{"a":2}}',
    b'{"":1,"a":{"":{"":2}}}',
    b'{"a":"\\ud83c\\udf89 \\u00e9 \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0000"}',
    b'{"a":"\x7f \xc3\xa9 \xdf\xbf \xe0\xa0\x80 \xed\x9f\xbf \xee\x80\x80 \xef\xbf\xbf"}',
    b'{"a":"\xf0\x90\x80\x80 \xf4\x8f\xbf\xbf"}',
    b'{"' + b"k" * 300 + b'":1,"' + "ключ".encode() + b'":2}',
    b'{ "a" : [ 1 , "b c" , { "d" : [ ] } , true , false , null , -1.50E-3 ] , "context" : { } }',
    b'{"context":{}}',
]


@pytest.mark.parametrize("line", WHOLE)
def test_what_is_usual_enough_is_whole(line: bytes) -> None:
    assert check([line]) == 1


# Senders that make things up


def test_as_many_places_are_remembered_as_there_is_room_for() -> None:
    lines = [b'{"a":1}', b'{"b":{"c":1}}', b'{"d":1}', b'{"a":2,"b":{"c":3}}', b'{"b":{"a":1}}']
    assert [values is not None for values in read(lines, places=4)] == [True, True, False, True, False]
    assert None not in read(lines, places=6)


def test_as_many_bytes_of_keys_are_remembered_as_there_is_room_for() -> None:
    lines = [b'{"aaaa":1}', b'{"bbbbb":1}', b'{"bbbb":1}', b'{"c":1}', b'{"aaaa":1}', b'{"":1}']
    assert [values is not None for values in read(lines, keys=8)] == [True, False, True, False, True, True]


def test_keys_of_one_object_are_not_those_of_another() -> None:
    """Whatever their hashes are: a thousand keys share few slots."""
    lines = [plain_line({f"k{number}": {f"k{other}": number} for other in range(3)}) for number in range(300)]
    assert check(lines) == 300
