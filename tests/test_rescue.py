"""The text of `_rescued_data`."""

import pytest

from eventlake.schema.rescue import Rescued, keys_of, pointer, to_json


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ([], ""),
        ([""], "/"),
        (["a", "b"], "/a/b"),
        (["a/b", "~"], "/a~1b/~0"),
        (["~1", "~#2", "/~"], "/~01/~0#2/~1~0"),
        (["A", "a", "é 🎉"], "/A/a/é 🎉"),
    ],
)
def test_a_place_is_a_json_pointer(path: list[str], place: str) -> None:
    assert pointer(path) == place
    assert keys_of(place) == path
    if path:
        assert keys_of(f"{place}~#2") == keys_of(f"{place}~#12") == path


def test_values_are_written_as_they_were_sent_in_the_order_of_their_places() -> None:
    entries = [Rescued("/b", "1.10", 'a "reason"'), Rescued("/a", '{"x":1,"x":2}', "é")]
    assert to_json(entries) == (
        '{"/a":{"value":{"x":1,"x":2},"reason":"\\u00e9"},"/b":{"value":1.10,"reason":"a \\"reason\\""}}'
    )
    assert to_json(iter(entries)) == to_json(reversed(entries))
    assert to_json([]) == "{}"


def test_a_place_with_several_values_has_a_mark_for_each_after_the_first() -> None:
    entries = [Rescued(place, text, "r") for place, text in (("/a", "2"), ("/b", "9"), ("/a", "3"), ("/a", "1"))]
    assert to_json(entries) == (
        '{"/a":{"value":2,"reason":"r"},"/a~#2":{"value":3,"reason":"r"},'
        '"/a~#3":{"value":1,"reason":"r"},"/b":{"value":9,"reason":"r"}}'
    )
