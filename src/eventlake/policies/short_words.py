"""Schemas that find the same and say it in fewer words: an `enum` of thousands would be told for each wrong value."""

from typing import Any

OF_SCHEMAS = ("properties", "patternProperties", "definitions", "dependencies")  # whose members are schemas
OF_VALUES = ("enum", "const", "default", "examples", "required", "labels")  # in which there are none
_MOST_NAMED = 100  # values of an enum
_ONE_OF = "\0one of "  # the beginning of what stands for such an enum, and what no event has


def with_short_words(told: Any) -> Any:
    """A schema in which a long enum is told by the number of its values: see `many_allowed`."""
    if isinstance(told, list):
        return [with_short_words(one) for one in told]
    if not isinstance(told, dict):
        return told
    found = {key: _inner(key, value) for key, value in told.items()}
    values, beside = found.get("enum"), found.get("allOf", [])
    if isinstance(values, list) and len(values) > _MOST_NAMED and isinstance(beside, list) and "$ref" not in found:
        del found["enum"]
        found["allOf"] = [*beside, {"if": {"enum": values}, "else": {"const": f"{_ONE_OF}{len(values):,}"}}]
    return found


def _inner(key: str, value: Any) -> Any:
    if key in OF_VALUES:
        return value
    if key in OF_SCHEMAS and isinstance(value, dict):  # whose keys are names, not keywords
        return {name: with_short_words(one) for name, one in value.items()}
    return with_short_words(value)


def many_allowed(expected: Any) -> str:
    """How many values an enum allows, if a value was to be what stands for that; else nothing."""
    return expected.removeprefix(_ONE_OF) if isinstance(expected, str) and expected.startswith(_ONE_OF) else ""
