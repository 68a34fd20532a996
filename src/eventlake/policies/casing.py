"""The casings of texts that transformations and conditions know."""

import re
from collections.abc import Callable, Mapping

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def snake(text: str) -> str:
    """In lower case, with underscores between words.

    >>> snake("Order Completed"), snake("orderID2")
    ('order_completed', 'order_id_2')
    """
    return "_".join(_words(text)).lower()


def kebab(text: str) -> str:
    """In lower case, with hyphens between words.

    >>> kebab("Order Completed")
    'order-completed'
    """
    return "-".join(_words(text)).lower()


def title(text: str) -> str:
    """With a capital at the beginning of each word.

    >>> title("order completed")
    'Order Completed'
    """
    return re.sub(r"[^\W\d_]+", lambda word: word[0][0].upper() + word[0][1:].lower(), text)


FUNCTIONS: Mapping[str, Callable[[str], str]] = {
    "lowercase": str.lower,
    "uppercase": str.upper,
    "snakecase": snake,
    "kebabcase": kebab,
    "titlecase": title,
}
