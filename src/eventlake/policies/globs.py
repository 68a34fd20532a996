"""Patterns of texts: `*` is any characters, `?` is one, `[a-z]` is one of some."""

import re
from collections.abc import Callable


def matches(text: str, glob: str) -> bool:
    r"""Whether a text fits a pattern: `*` is any characters, `?` is one, `[a-z]` is one of some, `\x` is x.

    >>> matches("Order Completed", "Order*"), matches("a?b", r"a\?b"), matches("cat", "[bc]at")
    (True, True, True)
    """
    wanted = _pieces(glob)
    at, piece, star, resume = 0, 0, -1, 0
    while at < len(text):  # in time that grows with both of them multiplied, and no faster
        if piece < len(wanted) and wanted[piece] is None:
            star, resume, piece = piece, at, piece + 1
        elif piece < len(wanted) and _fits(wanted[piece], text[at]):
            at, piece = at + 1, piece + 1
        elif star >= 0:
            resume += 1
            at, piece = resume, star + 1
        else:
            return False
    return all(one is None for one in wanted[piece:])


_Piece = Callable[[str], bool] | None


def _fits(piece: _Piece, one: str) -> bool:
    return piece is not None and piece(one)


def _pieces(glob: str) -> list[_Piece]:
    """What each part of a pattern lets through; None for any characters."""
    found: list[_Piece] = []
    at = 0
    while at < len(glob):
        one = glob[at]
        if one == "*":
            found.append(None)
        elif one == "?":
            found.append(lambda _: True)
        elif one == "[" and (end := glob.find("]", at + 2)) > 0:
            found.append(_one_of(glob[at + 1 : end]))
            at = end
        else:
            at += one == "\\" and at + 1 < len(glob)
            found.append(glob[at].__eq__)
        at += 1
    return found


def _one_of(inside: str) -> Callable[[str], bool]:
    ranges = [(low, high) for low, high in re.findall(r"(.)-(.)", inside, re.DOTALL)]
    singles = set(re.sub(r"(.)-(.)", "", inside, flags=re.DOTALL))
    return lambda one: one in singles or any(low <= one <= high for low, high in ranges)
