"""Whether DuckDB reads and prints JSON as `columns` relies on: a few lines that show each thing, read both ways.

Another version may print a number with other digits, keep a null or take what is no JSON. No length would tell then
that a line was read wrongly. So each worker reads these lines before any others, once.
"""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb

from eventlake.reading import exact_json
from eventlake.reading.columns import ColumnReader
from eventlake.reading.proof import Path
from eventlake.schema.kinds import Kind, by_kind

_NUMBERS = (
    *("0", "7", "-1", "10", "1000000", "9007199254740993", "999999999999999999", "-99999999999999999"),
    *("0.5", "12.25", "-3.75", "0.1", "0.01", "0.001", "100.0", "0.0", "1.7", "99.95", "1234567890.1234"),
    *("123456789012.34", "-12345.678901", "33.33333333333", "0.30000000000001"),
)
_TEXTS = (
    *("", "a", " a  b ", "0", "null", "true", "{}", "[]", "a:null", "a:{}", "x" * 500, "\u007f", "\u2028", "\ufeff"),
    *("é", "e\u0301", "购买", "🎉", "\U0010ffff", '"', "\\", "/", "\n", "\r\n", "\t", "\b", "\f", "\x01", 'a "b"\\\n'),
)
_ARRAYS = ("[]", "[1,-2]", '["a","é"]', "[true,null]", '[{"b":1,"c":[]},{}]', "[[1],[[2]]]", '[{"b":1.5}]')
_OBJECTS = ('{"b":1}', '{"b":null}', '{"p":{"c":"x","d":null},"e":true}')

WHOLE: tuple[bytes, ...] = (
    *(f'{{"a":{value}}}'.encode() for value in (*_NUMBERS, "true", "false", "null", *_ARRAYS)),
    *(b'{"a":' + exact_json.encode(text) + b',"t":"x"}' for text in _TEXTS),
    *(f'{{"t":"x","o":{value},"a":1}}'.encode() for value in _OBJECTS),
    b'{"t":null,"context":{},"integrations":{},"a":null}',
)
"""Ordinary lines. Each must be read as columns, exactly."""

_ODD_NUMBERS = (
    *("1.10", "1.50", "100.00", "1e5", "1E5", "1.0e10", "1e-7", "0.0000001", "1e400", "-0", "-0.0", "0e0", "-0E0"),
    *("1901749037.9184876", "9.290736625851781", "0.1234567890123456789", "12345678901234567890", "1" + "0" * 30),
    *("01", "+1", ".5", "5.", "0x10", "1_000", "NaN", "Infinity", "-Infinity", "nan", "TRUE", "None"),
)
_ODD_TEXTS = (
    *(
        '"\\u0041"',
        '"\\/"',
        '"\\u00e9"',
        '"\\ud83c\\udf89"',
        '"\\ud800"',
        '"\\u0000"',
        '"\\x41"',
        '"a\tb"',
        '"a',
        "'a'",
    ),
    *('"\\":null"', '"\\":{}"', '"\\":-0E0"'),
)
_ODD_ARRAYS = (
    *("[ 1 ]", "[1.50]", "[1e2]", '[{"b":1e2}]', "[1,]", "[,1]", "[1 2]", "[01]", "[+1]", "[.5]", "[5.]", "[0x10]"),
    *(
        "[NaN]",
        "[1,-Infinity]",
        "[nan]",
        '[{"b":Infinity}]',
        "['a']",
        '["\\u0041"]',
        '["\\/"]',
        '["a\tb"]',
        '[{"b":1,"b":2}]',
    ),
)

ODD: tuple[bytes, ...] = (
    *(f'{{"a":{value},"t":"x"}}'.encode() for value in (*_ODD_NUMBERS, *_ODD_TEXTS, *_ODD_ARRAYS, "{}", " 5", "5 ")),
    b'{"a":1, "t":"x"}',
    *(b'{"a":1,"a":2}', b'{"t":"x","a":1,"A":2}', b'{"o":{"b":1,"b":2}}', b'{"o":{"new":1}}', b'{"new":1,"a":1}'),
    *(b'{"a":1,}', b'{"a":1', b'{"a":1}}', b'{"a":1}{"a":2}', b'{"a":1} x', b"{a:1}", b'{"a" 1}', b'{"a":1/**/}'),
    *(b"5", b"null", b'"x"', b"[]", b"{}", b'[{"a":1}]', b'{"a":"\xff"}', b'\xef\xbb\xbf{"a":1}', b'{"a":"\x00"}'),
)
"""Lines that are not what they seem. Each must be left to the exact reader, or be read like it."""

Values = dict[tuple[Path, Kind], Any]


def duckdb_is_understood() -> bool:
    """Whether this process may read lines as columns."""
    return _is_understood(duckdb.__version__)


@functools.cache
def _is_understood(version: str) -> bool:  # noqa: ARG001 # that of another is another answer
    return not misread(ColumnReader())


def misread(reader: ColumnReader) -> list[bytes]:
    """The lines that a reader, which learns their keys, reads in another way than is relied on."""
    for line in WHOLE:
        reader.learn(exact_json.parse(line).value)
    return [*_misread(reader, WHOLE, must_be_whole=True), *_misread(reader, ODD, must_be_whole=False)]


def _misread(reader: ColumnReader, lines: Sequence[bytes], *, must_be_whole: bool) -> Iterator[bytes]:
    read = reader.read(lines)
    found: list[Values] = [{} for _ in lines]
    for leaf in read.leaves:
        for row, value in zip(leaf.rows.tolist(), leaf.values.to_pylist(), strict=True):
            found[row][leaf.path, leaf.kind] = value
    for line, values, is_whole, has_surplus in zip(lines, found, read.whole, read.surplus, strict=True):
        is_exact = values == _exactly(line) if is_whole else not must_be_whole
        if has_surplus or not is_exact:
            yield line


def _exactly(line: bytes) -> Values | None:
    """What the exact reader finds; None if there is anything that columns do not show."""
    try:
        event, set_aside = exact_json.parse(line)
    except exact_json.NotJsonError:
        return None
    return dict(_values((), event)) if type(event) is dict and not set_aside else None


def _values(path: Path, value: Any) -> Iterator[tuple[tuple[Path, Kind], Any]]:
    if type(value) is dict:
        for key, member in value.items():
            yield from _values((*path, key), member)
    else:
        for kind, array in by_kind([exact_json.encode(value) if type(value) is list else value]):
            yield (path, kind), array[0].as_py()
