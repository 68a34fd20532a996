"""JSON Schemas of a plan, and what of an event violates them.

Drafts up to 7, as Segment has them. Nothing is ever fetched for a schema, its patterns are matched in time that grows
with the text and no faster, and it looks at a place of an event a bounded number of times (`visits`), so neither a plan
nor an event can hold up a run.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec
from msgspec import Raw, Struct

from eventlake.policies import visits
from eventlake.policies.short_words import OF_SCHEMAS, OF_VALUES, many_allowed, with_short_words
from eventlake.policies.trees import Path

MAX_BYTES = 500_000
MAX_DEPTH = 100
MAX_DESCRIPTION = 500  # characters
MOST_FOUND = 10_000  # violations of one event

_VALUE = "the value"  # what descriptions have in place of it: it may be what is to be hashed, or left out
_UNREADABLE = (ValueError, ArithmeticError, RecursionError)
_UNUSABLE = (jsonschema_rs.ValidationError, ValueError, jsonschema_rs.ReferencingError)
_REFERENCE = b'"$ref"'
_ROOT = "(root)"  # where Segment says that an event as a whole is wrong

_KEYWORDS = frozenset(
    """
    $schema $id id $ref $comment title description default examples readOnly writeOnly definitions type enum const
    multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern items additionalItems
    maxItems minItems uniqueItems contains maxProperties minProperties required properties patternProperties
    additionalProperties dependencies propertyNames if then else allOf anyOf oneOf not format contentMediaType
    contentEncoding labels key
    """.split()  # noqa: SIM905 - a list would take 50 lines
)
# Keywords that look only at the members of an event that they name.
_BY_MEMBER = frozenset({"$schema", "$id", "id", "$comment", "title", "description", "labels", "type", "definitions"})

_TYPES = {
    "Required": "Required",
    "Type": "Invalid Type",
    "AdditionalProperties": "Additional Property Not Allowed",
    "FalseSchema": "Additional Property Not Allowed",
    "Constant": "Const",
    "MultipleOf": "Multiple Of",
    "AnyOf": "Any Of",
    "OneOfNotValid": "One Of",
    "OneOfMultipleValid": "One Of",
    "MinLength": "String Length",
    "MaxLength": "String Length",
    "Minimum": "Number Range",
    "Maximum": "Number Range",
    "ExclusiveMinimum": "Number Range",
    "ExclusiveMaximum": "Number Range",
}


class SchemaError(ValueError):
    """Why a schema cannot be used."""


class Violation(Struct, frozen=True):
    """What is wrong with an event, as `context.protocols.violations` has it."""

    type: str
    field: str  # where, with dots
    description: str


class Found(NamedTuple):
    violation: Violation
    path: Path  # of the value that is in the way; of the object that lacks one


class Schema:
    """A schema that is ready to look at events."""

    def __init__(self, told: Any) -> None:
        if not isinstance(told, dict | bool):
            raise SchemaError("a schema is an object")
        try:
            written = msgspec.json.encode(told)
        except (UnicodeError, RecursionError) as error:
            raise SchemaError(f"it cannot be written as JSON: {error}") from error
        if len(written) > MAX_BYTES:
            raise SchemaError(f"more than {MAX_BYTES:,} bytes")
        if _depth(told) > MAX_DEPTH:
            raise SchemaError(f"more than {MAX_DEPTH} levels of nesting")
        self.told = told
        try:
            if _REFERENCE in written:
                visits.check(told)
            self._validator = _validator(with_short_words(told), mask=_VALUE)
        except visits.UnboundedError as error:
            raise SchemaError(str(error)) from error
        except _UNUSABLE as error:
            raise SchemaError(_why(told, error)) from error

    def is_valid(self, instance: Any) -> bool:
        """Whether an event, in the form of `instance_of`, is as it should be."""
        try:
            return self._validator.is_valid(instance)
        except _UNREADABLE:  # what cannot be looked at has to be looked at more closely
            return False

    def violations(self, event: Any) -> list[Found]:
        """All that is wrong with an event, in order of the places."""
        try:
            errors = self._validator.iter_errors(instance_of(event))
            found = list(islice((one for error in errors for one in _found(error)), MOST_FOUND))
        except _UNREADABLE:
            found = [Found(Violation("Unreadable", _ROOT, "nested too deeply to be looked at"), ())]
        return sorted(found, key=lambda one: (one.violation.field, one.violation.type))

    @cached_property
    def members(self) -> frozenset[str] | None:
        """The members of an event that it looks at; None if it may look at any."""
        if isinstance(self.told, bool):
            return None
        if self.told.keys() - _BY_MEMBER - {"properties", "required"} or self.told.get("type", "object") != "object":
            return None
        return frozenset(self.told.get("properties", ())) | frozenset(self.told.get("required", ()))

    def unplanned(self, event: Mapping[str, Any], part: str) -> list[Path]:
        """The places below a part of an event of which it says nothing."""
        value = event.get(part)
        if not isinstance(value, dict):
            return []
        whole = self._described([self.told])
        return list(self._unplanned(value, whole.members.get(part, ()), (part,)))

    def _unplanned(self, value: Mapping[str, Any], schemas: Sequence[Any], path: Path) -> Iterator[Path]:
        """What an object has that its schemas do not name; those that let anything in name all."""
        described = self._described(schemas)
        if described.is_open or (not described.members and len(path) > 1):
            return
        for key, inner in value.items():
            if key not in described.members:
                yield (*path, key)
            elif isinstance(inner, dict):
                yield from self._unplanned(inner, described.members[key], (*path, key))

    def _described(self, schemas: Sequence[Any]) -> "_Described":
        """What schemas that hold for one object say of its members, wherever within them they say it."""
        members: dict[str, list[Any]] = {}
        is_open, seen, left = False, set(), list(schemas)
        while left:
            schema = left.pop()
            if not isinstance(schema, dict) or id(schema) in seen:
                continue
            seen.add(id(schema))
            if "$ref" in schema:  # beside which nothing counts
                found = visits.referred(self.told, schema["$ref"])
                is_open |= found is None
                left.append(found)
                continue
            is_open |= schema.get("additionalProperties") not in (None, False) or bool(schema.get("patternProperties"))
            if isinstance(planned := schema.get("properties"), dict):
                for key, inner in planned.items():
                    members.setdefault(key, []).append(inner)
            for word in ("allOf", "anyOf", "oneOf"):
                left += schema[word] if isinstance(schema.get(word), list) else ()
            left += [schema[word] for word in ("if", "then", "else") if word in schema]
            depending = schema.get("dependencies")
            left += depending.values() if isinstance(depending, dict) else ()
        return _Described(members, is_open)


def joined(schemas: Sequence[Schema]) -> Schema | None:
    """One schema for several; None if they do not go together."""
    if len(schemas) == 1:
        return schemas[0]
    told = {"allOf": [_of_draft_7(schema.told) for schema in schemas]}
    if _REFERENCE in msgspec.json.encode(told):  # it is about a place that would be another then
        return None
    try:
        return Schema(told)
    except SchemaError:  # together they are too large
        return None


class _Described(NamedTuple):
    members: Mapping[str, Sequence[Any]]  # with what is said of each
    is_open: bool  # there may be any others


def instance_of(event: Any) -> Any:
    """An event as schemas look at it: with numbers instead of their texts."""
    if isinstance(event, dict):
        return {key: instance_of(value) for key, value in event.items()}
    if isinstance(event, list):
        return [instance_of(value) for value in event]
    return _of_text(bytes(event).decode()) if isinstance(event, Raw) else event


def _of_text(text: str) -> Any:
    """A value that was kept as its JSON: mostly a number, else something odd (half a character, a key twice)."""
    try:
        return Decimal(text)
    except ArithmeticError:
        return _sound(json.loads(text, parse_float=_number, parse_constant=str))


def _number(text: str) -> Decimal:
    """A number; for one that is beyond all bounds, another that is larger, or smaller, than any that is meant."""
    try:
        return Decimal(text)
    except ArithmeticError:
        small = "e-" in text.lower()
        return Decimal(0) if small else Decimal("-1e999999" if text.startswith("-") else "1e999999")


def _sound(value: Any) -> Any:
    if isinstance(value, dict):
        return {_sound(key): _sound(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_sound(inner) for inner in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def unknown_keywords(told: Any) -> set[str]:
    """Words of a schema that mean nothing in draft 7: most are mistakes."""
    if not isinstance(told, dict):
        return set().union(*map(unknown_keywords, told)) if isinstance(told, list) else set()
    found = {key for key in told if key not in _KEYWORDS}
    for key, value in told.items():
        if key in OF_SCHEMAS and isinstance(value, dict):
            found |= set().union(*map(unknown_keywords, value.values()))
        elif key in _KEYWORDS and key not in OF_VALUES:
            found |= unknown_keywords(value)
    return found


def _validator(told: Any, mask: str | None = None) -> jsonschema_rs.Draft7Validator:
    return jsonschema_rs.Draft7Validator(
        _of_draft_7(told), pattern_options=jsonschema_rs.RegexOptions(), offline=True, mask=mask
    )


def _of_draft_7(told: Any) -> Any:
    """Without what names another draft: older ones are read as this one."""
    return {key: value for key, value in told.items() if key != "$schema"} if isinstance(told, dict) else told


def _depth(value: Any) -> int:
    depth, level = 0, [value] if isinstance(value, dict | list) else []
    while level and depth <= MAX_DEPTH:
        depth += 1
        members = [list(one.values()) if isinstance(one, dict) else one for one in level]
        level = [item for one in members for item in one if isinstance(item, dict | list)]
    return depth


def _why(schema: Any, error: Exception) -> str:
    try:
        _validator(schema)  # without a mask, to say what is wrong
    except _UNUSABLE as same:
        error = same
    told = str(error).strip().splitlines()[0]
    if 'is not a "regex"' in told and "(?" in told:
        return f"{told}: patterns with a look-ahead or look-behind are not supported; use not"
    return told[:MAX_DESCRIPTION]


def _found(error: Any) -> Iterator[Found]:
    kind = error.kind
    name = type(kind).__name__
    at = tuple(str(key) for key in error.instance_path)
    if name == "AdditionalProperties":
        paths: Sequence[Path] = [(*at, key) for key in kind.unexpected]
    elif name == "Required":
        paths = [(*at, kind.property)]
    else:
        paths = [at]
    told = str(error.message)[:MAX_DESCRIPTION]
    if name == "Constant" and (allowed := many_allowed(kind.expected_value)):
        name, told = "Enum", f"{_VALUE} is none of the {allowed} that are allowed"
    for path in paths:
        violation = Violation(_TYPES.get(name, name), _dotted(path), told)
        yield Found(violation, at if name == "Required" else path)


def _dotted(path: Iterable[str]) -> str:
    return ".".join(path) or _ROOT
