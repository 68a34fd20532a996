"""JSON Schemas of a plan, and what of an event violates them.

Drafts up to 7, as Segment has them. Nothing is ever fetched for a schema, and its patterns are matched in time that
grows with the text and no faster, so neither a plan nor an event can hold up a run.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec
from msgspec import Raw, Struct

from eventlake.policies.trees import Path

MAX_BYTES = 500_000
MAX_DEPTH = 100
MAX_DESCRIPTION = 500  # characters: it may quote a value
MAX_VIOLATIONS = 50  # of one event; who sends a thousand wrong things has made one mistake

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
_OF_SCHEMAS = ("properties", "patternProperties", "definitions", "dependencies")  # whose members are schemas
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
        if len(msgspec.json.encode(told)) > MAX_BYTES:
            raise SchemaError(f"more than {MAX_BYTES:,} bytes")
        if _depth(told) > MAX_DEPTH:
            raise SchemaError(f"more than {MAX_DEPTH} levels of nesting")
        self.told = told
        try:
            self._validator = jsonschema_rs.Draft7Validator(
                _of_draft_7(told), pattern_options=jsonschema_rs.RegexOptions(), offline=True
            )
        except (jsonschema_rs.ValidationError, ValueError, jsonschema_rs.ReferencingError) as error:
            raise SchemaError(_why(error)) from error

    def is_valid(self, instance: Any) -> bool:
        """Whether an event, in the form of `instance_of`, is as it should be."""
        try:
            return self._validator.is_valid(instance)
        except ValueError:  # what cannot be looked at has to be looked at more closely
            return False

    def violations(self, instance: Any) -> list[Found]:
        found = (one for error in self._validator.iter_errors(instance) for one in _found(error))
        return sorted(islice(found, MAX_VIOLATIONS), key=lambda one: (one.violation.field, one.violation.type))

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
        below = self.told.get("properties", {}).get(part, {}) if isinstance(self.told, dict) else {}
        return list(_unplanned(value, below, (part,))) if isinstance(value, dict) else []


def instance_of(event: Any) -> Any:
    """An event as schemas look at it: with numbers instead of their texts."""
    if isinstance(event, dict):
        return {key: instance_of(value) for key, value in event.items()}
    if isinstance(event, list):
        return [instance_of(value) for value in event]
    return Decimal(bytes(event).decode()) if isinstance(event, Raw) else event


def unknown_keywords(told: Any) -> set[str]:
    """Words of a schema that mean nothing in draft 7: most are mistakes."""
    if not isinstance(told, dict):
        return set().union(*map(unknown_keywords, told)) if isinstance(told, list) else set()
    found = {key for key in told if key not in _KEYWORDS}
    for key, value in told.items():
        if key in _OF_SCHEMAS and isinstance(value, dict):
            found |= set().union(*map(unknown_keywords, value.values()))
        elif key in _KEYWORDS and key not in ("enum", "const", "default", "examples", "required", "labels"):
            found |= unknown_keywords(value)
    return found


def _of_draft_7(told: Any) -> Any:
    """Without what names another draft: older ones are read as this one."""
    return {key: value for key, value in told.items() if key != "$schema"} if isinstance(told, dict) else told


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        members = [list(one.values()) if isinstance(one, dict) else one for one in level]
        level = [item for one in members for item in one if isinstance(item, dict | list)]
    return depth


def _why(error: Exception) -> str:
    told = str(error).strip().splitlines()[0]
    if 'is not a "regex"' in told and "(?" in told:
        return f"{told}: patterns with a look-ahead or look-behind are not supported; use not"
    if "retriev" in told or "registry" in told:
        return f"{told}: schemas of other places are not fetched; put it into definitions"
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
    for path in paths:
        violation = Violation(_TYPES.get(name, name), _dotted(path), str(error.message)[:MAX_DESCRIPTION])
        yield Found(violation, at if name == "Required" else path)


def _dotted(path: Iterable[str]) -> str:
    return ".".join(path) or _ROOT


def _unplanned(value: Mapping[str, Any], schema: Any, path: Path) -> Iterator[Path]:
    """What an object has that its schema does not name; one that lets anything in names all."""
    if not isinstance(schema, dict) or schema.get("additionalProperties") not in (None, False):
        return
    planned, patterns = schema.get("properties"), schema.get("patternProperties")
    if patterns or (planned is None and len(path) > 1):
        return  # any members
    for key, inner in value.items():
        if key not in (planned or {}):
            yield (*path, key)
        elif isinstance(inner, dict) and isinstance(planned, dict):
            yield from _unplanned(inner, planned[key], (*path, key))
