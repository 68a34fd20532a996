"""A batch cut into texts is what it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.collector.batch_text import members
from eventlake.schema.exact_json import NotJsonError
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


BROKEN = [b"", b"{", b"[]", b'{"a"}', b'{"a":}', b'{"a":1,}', b'{"a":[1,]}', b'{"a":[1', b'{"a":1}x', b'{"a":1 "b":2}']


@pytest.mark.parametrize("body", [*BROKEN, b"\xff"])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(NotJsonError):
        list(members(body))


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    try:
        found = list(members(body))
    except NotJsonError:
        return
    assert {key for key, _ in found} == set(json.loads(body.decode("utf-8-sig")))
