"""Reading JSON without losing anything, and writing it back.

`parse` takes the fast reader: whole numbers are exact at any size, and numbers with a fraction or an exponent
stay the text they were sent as (`Raw`). What that reader cannot take, or would drop without a word (a key
twice in one object, half a surrogate pair, NaN), goes through the slow reader, which sets the odd values aside.
"""

import json
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from eventlake.schema import numbers
from eventlake.schema.rescue import Rescued, pointer

MAX_NESTING = 650  # Python's own limit is about 1,000, for everything on the stack

_decode = msgspec.json.Decoder(float_hook=Raw).decode
encode = msgspec.json.Encoder().encode


class NotJsonError(ValueError):
    """The line is not JSON: `reason` is one of a few words, the message tells more."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Parsed(NamedTuple):
    """A value made of dict, list, str, int, bool, None and Raw (text that is JSON already, mostly a number)."""

    value: Any
    set_aside: list[Rescued]


def parse(line: bytes) -> Parsed:
    """The value that a line of JSON holds, exactly. Raises NotJsonError."""
    try:
        value = _decode(line)
        _check_nesting(line, value)
        if _has_all_keys(line, value):
            return Parsed(value, [])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    return _parse_slowly(line)


def _has_all_keys(line: bytes, value: Any) -> bool:
    """Whether a fast reader dropped no key of a line: one that came twice, or that it does not know.

    What is written again is never longer than what was read, so if it is as long, nothing was dropped. Otherwise: a
    key has one colon, and every other colon is inside a text; as many colons in as out, and none of them escaped,
    means that no key was dropped.
    """
    text = encode(value)
    return len(text) == len(line) or (text.count(b":") == line.count(b":") and b"\\u003" not in line)


def _check_nesting(line: bytes, value: Any) -> None:
    """Refuse what later steps, deeper in the stack, could not write again."""
    if len(line) <= 2 * MAX_NESTING or line.count(b"{") + line.count(b"[") <= MAX_NESTING:
        return  # it is within the limit, without a look at the value
    depth, level = 0, [value]
    while level:
        depth += 1
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, _Members):
                inner += (member for _, member in item)
            elif isinstance(item, list):
                inner += item
        level = [item for item in inner if isinstance(item, dict | list)]
    if depth > MAX_NESTING:
        raise NotJsonError("nested_too_deeply", f"{depth} levels of nesting, more than {MAX_NESTING}")


class _Members(list[tuple[str, Any]]):
    """The members of an object as they were sent."""


class _Constant(str):
    """NaN, Infinity or -Infinity."""

    __slots__ = ()


_decoder = json.JSONDecoder(
    object_pairs_hook=_Members,
    parse_float=numbers.fraction,
    parse_int=numbers.whole,
    parse_constant=_Constant,
)


def _parse_slowly(line: bytes) -> Parsed:
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotJsonError("not_utf8", f"byte {error.start} is not UTF-8") from error
    set_aside: list[Rescued] = []
    try:
        value = _decoder.decode(text.strip())
        _check_nesting(line, value)
        return Parsed(_plain(value, (), set_aside), set_aside)
    except json.JSONDecodeError as error:
        raise NotJsonError("not_json", f"{error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise NotJsonError("nested_too_deeply", "nested too deeply to read") from error


def _plain(value: Any, path: tuple[str, ...], set_aside: list[Rescued]) -> Any:
    """The value in plain types; what has no place in them goes to `set_aside` and becomes None."""
    if isinstance(value, _Members):
        members: dict[str, Any] = {}
        for key, item in value:
            if key in members:
                set_aside.append(_rescued((*path, key), item, "the same key came before in this object"))
            elif not _is_unicode(key):
                set_aside.append(_rescued((*path, key), item, "half a surrogate pair in the key"))
            else:
                members[key] = _plain(item, (*path, key), set_aside)
        return members
    if isinstance(value, _Constant):
        set_aside.append(_rescued(path, value, f"{value} is not a JSON number"))
        return None
    if isinstance(value, str) and not _is_unicode(value):
        set_aside.append(_rescued(path, value, "half a surrogate pair is not text"))
        return None
    return _encodable(value) if isinstance(value, list) else value


def _rescued(path: tuple[str, ...], value: Any, reason: str) -> Rescued:
    return Rescued(pointer(path), json_text(value), reason)


def _encodable(value: Any) -> Any:
    """The value in types that `encode` takes; what is odd becomes JSON text.

    Plain loops: a comprehension would take a second stack frame for every level of nesting.
    """
    if isinstance(value, dict | _Members):
        members = []
        for key, item in value.items() if isinstance(value, dict) else value:
            members.append((key, _encodable(item)))
        whole = dict(members)
        if len(whole) == len(members) and all(map(_is_unicode, whole)):
            return whole
        text = ",".join(f"{json.dumps(key)}:{encode(item).decode()}" for key, item in members)
        return Raw(f"{{{text}}}".encode())
    if isinstance(value, list):
        items = []
        for item in value:
            items.append(_encodable(item))
        return items
    if isinstance(value, str) and (isinstance(value, _Constant) or not _is_unicode(value)):
        return Raw(json.dumps(value).encode())
    return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def json_text(value: Any) -> str:
    """A value as compact JSON, numbers exactly as they were sent."""
    return encode(_encodable(value)).decode()


def rescued_in(text: str) -> list[Rescued]:
    """The entries of `_rescued_data`, exactly as they were written."""
    entries = []
    for place, members in _decoder.decode(text):
        entry = dict(members)
        value, column = json_text(entry["value"]), entry.get("column", "")
        entries.append(Rescued(place.partition("~#")[0], value, entry["reason"], column))
    return entries


def rewritten(sent: bytes, stored: dict[str, Any], *, without: frozenset[str]) -> bytes:
    """An object that was sent, with other or more members, but with all that it held, also what `parse` set aside."""
    pairs, met = [], set(without)
    for key, value in _decoder.decode(sent.decode("utf-8-sig").strip()):
        if key not in without:
            pairs.append((key, _grown(value, stored[key]) if key in stored and key not in met else value))
            met.add(key)
    pairs += [(key, value) for key, value in stored.items() if key not in met]
    return encode(_encodable(_Members(pairs)))


def _grown(sent: Any, stored: Any) -> Any:
    if isinstance(sent, _Members) and isinstance(stored, dict):
        held = {key for key, _ in sent}
        return _Members([*sent, *((key, value) for key, value in stored.items() if key not in held)])
    return sent if stored is None else stored
