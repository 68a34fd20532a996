"""What is wrong with a value of a setting, in plain words."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import AfterValidator

_WORDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda bounds: f"must be more than {bounds['gt']:g}",
    "greater_than_equal": lambda bounds: f"must be at least {bounds['ge']:g}",
    "less_than_equal": lambda bounds: f"must be at most {bounds['le']:g}",
    "string_too_short": lambda bounds: f"must have at least {_characters(bounds['min_length'])}",
    "string_too_long": lambda bounds: f"must have at most {_characters(bounds['max_length'])}",
    "literal_error": lambda allowed: f"must be {allowed['expected']}",
    "enum": lambda allowed: f"must be {allowed['expected']}",
    "missing": lambda _: "is required",
    **dict.fromkeys(("bool_parsing", "bool_type"), lambda _: "must be true or false"),
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), lambda _: "must be a whole number"),
    **dict.fromkeys(("float_parsing", "float_type"), lambda _: "must be a number"),
    **dict.fromkeys(("string_type",), lambda _: "must be text"),
    **dict.fromkeys(("dict_type", "model_type"), lambda _: "must be a table"),
    **dict.fromkeys(("list_type",), lambda _: "must be a list"),
}


def in_words(kind: str, context: Mapping[str, Any], message: str) -> str:
    """A mistake that Pydantic found: its kind, what it says of it, and its own words for what has none here."""
    words = _WORDS.get(kind)
    return words(context) if words else message.removeprefix("Value error, ")


def matching(pattern: str, meaning: str) -> AfterValidator:
    """Text that matches a pattern. What it `must be` is said in words, for nobody reads a pattern."""
    compiled = re.compile(pattern)

    def matched(text: str) -> str:
        if not compiled.fullmatch(text):
            raise ValueError(f"must be {meaning}")
        return text

    return AfterValidator(matched)


def _characters(number: int) -> str:
    return f"{number} character{'' if number == 1 else 's'}"
