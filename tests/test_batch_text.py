"""A batch cut into texts is what it was."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.collector.batch_text import is_all, members
from eventlake.reading.exact_json import NotJsonError
from strategies import json_lines, json_values, plain_line, read_exactly

VALUES = st.dictionaries(st.text(max_size=5), json_values(), max_size=4)


@given(json_lines(VALUES))
def test_every_member_and_every_element_comes_as_its_own_text(body: bytes) -> None:
    found = [
        (key, [read_exactly(one.decode()) for one in text] if isinstance(text, list) else read_exactly(text.decode()))
        for key, text in members(body)
    ]
    assert found == read_exactly(body.decode("utf-8-sig"))


@given(st.lists(json_values(), max_size=5))
def test_elements_are_not_changed(values: list[Any]) -> None:
    texts = [plain_line(value) for value in values]
    [(key, found)] = members(b'{"batch": [' + b" , ".join(texts) + b"]}")
    assert (key, found) == ("batch", texts)


BROKEN = {
    b"": "broken: it ends too early",
    b"{": "broken: it ends too early",
    b'{"a":[1': "broken: it ends too early",
    b"[]": "broken: no {: line 1 column 1 (char 0)",
    b'{"a"}': "broken: no :: line 1 column 5 (char 4)",
    b'{"a":}': "broken: Expecting value: line 1 column 6 (char 5)",
    b'{"a":1,}': "broken: a comma before the end: line 1 column 8 (char 7)",
    b'{"a":[1,]}': "broken: a comma before the end: line 1 column 9 (char 8)",
    b'{"a":1}x': "broken: more than one value: line 1 column 7 (char 6)",
    b'{"a":1 "b":2}': "broken: no ,: line 1 column 8 (char 7)",
    b"{1:2}": "broken: a key that is no text: line 1 column 2 (char 1)",
    b"\xff": "broken: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
}


@pytest.mark.parametrize(("body", "told"), BROKEN.items(), ids=repr)
def test_what_is_no_object_is_refused_and_where_it_breaks_is_told(body: bytes, told: str) -> None:
    with pytest.raises(NotJsonError) as refused:
        list(members(body))
    assert (refused.value.reason, str(refused.value)) == ("not_json", told)


def test_what_is_nested_too_deeply_to_read_is_refused() -> None:
    with pytest.raises(NotJsonError) as refused:
        list(members(b'{"a":' * 100_000))
    assert (refused.value.reason, str(refused.value)) == ("nested_too_deeply", "nested too deeply to read")


class Batch(msgspec.Struct):
    batch: list[msgspec.Raw]


WHOLE = [
    b'{"batch":[]}',
    b'{"batch":[{"a":1},{"b":2}]}',
    b'{"batch": [{"a": 1}, {"b": 2}], "sentAt": "x"}',
    b'{"x":[1],"batch":[{"a":[1]},{"b":"batch"}],"y":[2]}',
]
MORE = [
    b'{"batch":[{"a":1}],"batch":[{"b":2}]}',
    b'{"batch":[{"a":1}],"batch":[{"a":1}]}',
    b'{"batch":[{"a":1}],"b\\u0061tch":[{"a":1}]}',
    b'{"batch":[{"a":1}],"context":{},"context":{"b":2}}',
    b'{"batch":[{"a":1}],"x":' + b"[" * 700 + b"]" * 700 + b"}",  # deeper than it could be looked at
]


@pytest.mark.parametrize(("body", "whole"), [*((body, True) for body in WHOLE), *((body, False) for body in MORE)])
def test_a_batch_of_which_something_would_be_dropped_is_found(body: bytes, whole: bool) -> None:
    assert is_all(body, msgspec.json.decode(body, type=Batch).batch) is whole


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        found = list(members(body))
    except NotJsonError:
        return
    assert {key for key, _ in found} == set(json.loads(body.decode("utf-8-sig")))
