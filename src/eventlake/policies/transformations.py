"""Transformations: how a source's events are changed before they have tables.

They are written as in Segment's API. All whose conditions hold for an event as it was sent are applied, one after the
other, each in this order: the event is renamed, then properties are renamed or moved, get values, are defined by FQL,
are left out unless allowed, are hashed. So none sees what another has made, and none is applied twice. What was sent
stays in the raw archive: a transformation can be corrected, and its events replayed.
"""

import base64
import hashlib
import hmac
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct

from eventlake.policies import fql, trees
from eventlake.policies.fql import NO_TEXT, UNKNOWN, Fql, FqlError, Values, path_parts, values_of
from eventlake.policies.fql_functions import number_text
from eventlake.policies.trees import Path

HIDDEN = "…"  # stands for a key wherever a transformation is shown
MAX_PATHS = 10  # with one value, as at Segment's
_PARTS = ("properties", "traits", "context")


class TransformationError(ValueError):
    """Why a transformation cannot be right."""


class _Part(Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A part of a transformation, with Segment's names."""


class PropertyRename(_Part, frozen=True):
    old_name: str
    new_name: str


class PropertyValue(_Part, frozen=True):
    property_paths: tuple[str, ...]
    property_value: str | int | float | bool | None


class FqlProperty(_Part, frozen=True):
    fql: str
    property_name: str


class HashProperties(_Part, frozen=True):
    paths: tuple[str, ...]
    algorithm: Literal["md5", "sha1", "sha256", "sha512"] = "sha256"
    key: str | None = None
    encoding: Literal["hex", "base64"] = "hex"

    def __repr__(self) -> str:
        return f"HashProperties({self.algorithm}, {', '.join(self.paths)})"  # a key is shown to nobody


class Transformation(_Part, frozen=True):
    """As Segment's API has it."""

    name: str
    if_: str = msgspec.field(name="if")
    id: str = ""
    enabled: bool = True
    drop: bool = False
    new_event_name: str | None = None
    property_renames: tuple[PropertyRename, ...] = ()
    property_value_transformations: tuple[PropertyValue, ...] = ()
    fql_defined_properties: tuple[FqlProperty, ...] = ()
    allow_properties: tuple[str, ...] = ()
    hash_properties_configuration: HashProperties | None = None


def shown(told: Transformation) -> dict[str, Any]:
    """As it may be shown: whether a hash has a key is told, and not the key."""
    found: dict[str, Any] = msgspec.to_builtins(told)
    hashes = found.get("hashPropertiesConfiguration", {})
    if "key" in hashes:
        hashes["key"] = HIDDEN
    return found


class _Ready(NamedTuple):
    """A transformation that was looked at."""

    condition: Fql
    told: Transformation
    defined: tuple[tuple[Fql, str], ...]


class Transformations:
    """Those of a source that are enabled, in order. Raises TransformationError if one cannot be right."""

    def __init__(self, told: Iterable[Transformation]) -> None:
        self._ready = [_looked_at(one) for one in told if one.enabled]

    def __bool__(self) -> bool:
        return bool(self._ready)

    def may_change(self, call: str, event: str) -> bool:
        """Whether an event of this kind and name may be changed; the rest of it is not known."""
        known: dict[Path, Any] = {("type",): call, ("event",): event or NO_TEXT}
        return any(one.condition.holds(lambda path: known.get(path, UNKNOWN)) is not False for one in self._ready)

    def changed(self, event: dict[str, Any]) -> dict[str, Any] | None:
        """An event as they leave it, which is the event itself if none is for it; None if one drops it."""
        sent = values_of(event)
        for one in self._ready:
            if one.condition.holds(sent):
                if one.told.drop:
                    return None
                event = _changed(one, event, sent)
        return event

    def hidden(self, event: dict[str, Any]) -> list[Path]:
        """The places of an event of which nothing may get in as it was sent."""
        sent, part = values_of(event), part_of(event)
        return [path for one in self._ready if one.condition.holds(sent) for path in _hidden(one.told, part)]


def _hidden(told: Transformation, part: str) -> list[Path]:
    """What is hashed, replaced or not allowed, and what comes there from elsewhere."""
    hashes = told.hash_properties_configuration
    texts = [
        *(hashes.paths if hashes else ()),
        *(path for one in told.property_value_transformations for path in one.property_paths),
        *(one.property_name for one in told.fql_defined_properties),
    ]
    found = [*(_path(text, part) for text in texts), *([(part,)] if told.allow_properties else [])]
    moved = [(_path(one.old_name, part), _path(one.new_name, part)) for one in told.property_renames]
    return [*found, *(old for old, new in moved if any(trees.meet(new, path) for path in found))]


def _looked_at(told: Transformation) -> _Ready:
    try:
        condition = fql.parse(told.if_)
        defined = tuple((fql.parse(one.fql), one.property_name) for one in told.fql_defined_properties)
    except FqlError as error:
        raise TransformationError(f"{told.name}: {error}") from error
    if told.new_event_name is not None and not told.new_event_name.strip():
        raise TransformationError(f"{told.name}: newEventName is empty, and an event has a name")
    hashed = told.hash_properties_configuration
    values = told.property_value_transformations
    lists = (
        ("propertyRenames", [one.old_name for one in told.property_renames]),
        ("propertyRenames", [one.new_name for one in told.property_renames]),
        ("propertyValueTransformations", [path for one in values for path in one.property_paths]),
        ("fqlDefinedProperties", [name for _, name in defined]),
        ("allowProperties", told.allow_properties),
        ("hashPropertiesConfiguration", hashed.paths if hashed else ()),
    )
    for field, paths in lists:
        found = [_path(text, "properties") for text in paths]
        for text, path in zip(paths, found, strict=True):
            if not path[1:] or "$" in path:
                raise TransformationError(f"{told.name}: {field}: {text!r} is no place of properties: a name, or a.b.c")
        if field != "allowProperties" and any(
            trees.meet(one, other) for one in found for other in found if one is not other
        ):
            raise TransformationError(f"{told.name}: {field}: two of {', '.join(paths)} are in one place")
    for one in told.property_renames:
        if trees.meet(_path(one.old_name, ""), _path(one.new_name, "")) and one.old_name != one.new_name:
            raise TransformationError(f"{told.name}: {one.old_name} cannot become {one.new_name}: one is in the other")
    if any(len(one.property_paths) > MAX_PATHS for one in values):
        raise TransformationError(f"{told.name}: a value is for at most {MAX_PATHS} places")
    return _Ready(condition, told, defined)


def _path(text: str, part: str) -> Path:
    """The place that a path names; one that does not begin with a part of the event is below `part`."""
    keys = path_parts(text)
    return keys if keys and keys[0] in _PARTS and len(keys) > 1 else (part, *keys)


def part_of(event: Mapping[str, Any]) -> str:
    """Where events of this kind have what they are about."""
    return "traits" if event.get("type") in ("identify", "group") else "properties"


def _changed(ready: _Ready, event: dict[str, Any], sent: Values) -> dict[str, Any]:
    told, part = ready.told, part_of(event)
    if told.new_event_name is not None and event.get("type") == "track":
        event = {**event, "event": told.new_event_name}
    event = _moved(event, [(_path(one.old_name, part), _path(one.new_name, part)) for one in told.property_renames])
    for given in told.property_value_transformations:
        for text in given.property_paths:
            event = trees.put(event, _path(text, part), _jsonable(given.property_value))
    for expression, name in ready.defined:
        event = trees.put(event, _path(name, part), _jsonable(expression.value(sent)))
    if told.allow_properties:
        allowed = [path for text in told.allow_properties if (path := _path(text, part))[0] == part]
        event = {**event, part: trees.only(event, allowed).get(part, {})}
    if told.hash_properties_configuration:
        event = _hashed(told.hash_properties_configuration, event, part)
    return event


def _moved(event: dict[str, Any], moves: list[tuple[Path, Path]]) -> dict[str, Any]:
    """With values at other places, all at once; one that has something else than an object in its way stays."""
    values = [(old, new, trees.get(event, old)) for old, new in moves if trees.has(event, old)]
    for old, _, _ in values:
        event = trees.without(event, old)
    for old, new, value in values:
        if not trees.is_free(event, new):
            event = trees.put(event, old, value)
    for _, new, value in values:
        event = trees.put(event, new, value)
    return event


def _jsonable(value: Any) -> Any:
    """A value as events have it: a number with a fraction is the text of one."""
    if isinstance(value, list):
        return [_jsonable(one) for one in value]
    if isinstance(value, float):
        return Raw(msgspec.json.encode(value))
    return Raw(number_text(value).encode()) if isinstance(value, Decimal) else value


def _hashed(told: HashProperties, event: dict[str, Any], part: str) -> dict[str, Any]:
    for text in told.paths:
        path = _path(text, part)
        value = trees.get(event, path)
        if value is None:
            continue
        content = value.encode() if isinstance(value, str) else msgspec.json.encode(value)
        if told.key is None:
            digest = hashlib.new(told.algorithm, content, usedforsecurity=False).digest()
        else:
            digest = hmac.digest(told.key.encode(), content, told.algorithm)
        shown = digest.hex() if told.encoding == "hex" else base64.b64encode(digest).decode()
        event = trees.put(event, path, shown)
    return event
