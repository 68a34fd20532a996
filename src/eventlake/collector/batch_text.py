"""A batch cut into the texts of its parts: for bodies with something that the fast decoder refuses or would drop.

Half a surrogate pair or NaN in one event must not cost the others, and no event may be changed on the way.
"""

import json
import re
from collections.abc import Iterator

from msgspec import Raw

from eventlake.reading import exact_json
from eventlake.reading.exact_json import NotJsonError

_SPACE = re.compile(r"[ \t\n\r]*")
_read = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode  # only where a value ends is of interest


def members(body: bytes) -> Iterator[tuple[str, bytes | list[bytes]]]:
    """Each member of an object, also one whose key came before: the texts of an array's elements, else of its value.

    Raises NotJsonError.
    """
    try:
        text = body.decode("utf-8-sig").strip()
        yield from _members(text)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise NotJsonError("not_json", f"broken: {error}") from error
    except IndexError as error:
        raise NotJsonError("not_json", "broken: it ends too early") from error
    except RecursionError as error:
        raise NotJsonError("nested_too_deeply", "nested too deeply to read") from error


def is_all(body: bytes, events: list[Raw]) -> bool:
    """Whether a batch holds these events and nothing that came twice, however its key is written.

    They are what a fast decoder found, and it takes the last of several members. Without them the batch is small, so it
    is read once more, exactly. May say no where the spaces between events are unusual.
    """
    begin = body.find(b"[", body.find(b'"batch"')) + 1
    for between in (b",", b", "):
        text = between.join(events)
        if body.startswith(text, begin):
            try:
                return not exact_json.parse(body[:begin] + body[begin + len(text) :]).set_aside
            except NotJsonError:
                return False
    return False


def _members(text: str) -> Iterator[tuple[str, bytes | list[bytes]]]:
    at = _after(text, 0, "{")
    while text[at] != "}":
        if text[at] != '"':
            raise json.JSONDecodeError("a key that is no text", text, at)
        key, at = _read(text, at)
        at = _after(text, at, ":")
        if text[at] == "[":
            elements, at = _elements(text, at)
            yield key, elements
        else:
            start = at
            _, at = _read(text, at)
            yield key, text[start:at].encode()
        at = _next(text, at, "}")
    if at + 1 != len(text):
        raise json.JSONDecodeError("more than one value", text, at)


def _elements(text: str, at: int) -> tuple[list[bytes], int]:
    elements = []
    at = _after(text, at, "[")
    while text[at] != "]":
        start = at
        _, at = _read(text, at)
        elements.append(text[start:at].encode())
        at = _next(text, at, "]")
    return elements, at + 1


def _after(text: str, at: int, sign: str) -> int:
    """Where something begins after this sign, which must be next."""
    at = _skip(text, at)
    if text[at] != sign:
        raise json.JSONDecodeError(f"no {sign}", text, at)
    return _skip(text, at + 1)


def _next(text: str, at: int, end: str) -> int:
    """Where the next member begins, or the end is."""
    at = _skip(text, at)
    if text[at] == end:
        return at
    at = _after(text, at, ",")
    if text[at] == end:
        raise json.JSONDecodeError("a comma before the end", text, at)
    return at


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
