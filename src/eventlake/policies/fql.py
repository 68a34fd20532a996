"""Conditions and values in Segment's filter query language (FQL): `type = "track" and properties.total > 20`.

A text is parsed once, with the position of what is wrong with it, and evaluated for each event. What an event does not
have is null; what makes no sense (the length of a number) is null too, so that a condition is never in the way of an
event. Part of an event may be unknown: then so is what depends on it.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from eventlake.policies.fql_functions import COMPARISONS, FUNCTIONS, number, plain

MAX_LENGTH = 5000  # as Segment's
_MAX_DEPTH = 50

Path = tuple[str, ...]


class _Unknown:
    """What nobody has looked at yet."""


UNKNOWN: Final = _Unknown()
NO_TEXT: Final = _Unknown()  # only that it is no text is known

Values = Callable[[Path], Any]
"""What is at a place of an event: None if nothing is, UNKNOWN or NO_TEXT if nobody knows."""


class FqlError(ValueError):
    """Why a text is no FQL, and where."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(f"{problem}, at character {position + 1}")
        self.position = position


@dataclass(frozen=True)
class Fql:
    """An expression that can be evaluated."""

    text: str
    _evaluate: Callable[[Values], Any]
    paths: frozenset[Path]  # of the event, that it looks at

    def value(self, values: Values) -> Any:
        return self._evaluate(values)

    def holds(self, values: Values) -> bool | None:
        """Whether it is true; None if that depends on what is unknown."""
        found = self._evaluate(values)
        return None if isinstance(found, _Unknown) else found is True


def values_of(event: Any) -> Values:
    """What is where in a whole event."""

    def value(path: Path) -> Any:
        found = event
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    return value


def parse(text: str) -> Fql:
    """An expression from its text. Raises FqlError.

    >>> parse('event = "Order Completed" and !(properties.total <= 20)').holds(values_of({"event": "x"}))
    False
    """
    if len(text) > MAX_LENGTH:
        raise FqlError(f"more than {MAX_LENGTH:,} characters", MAX_LENGTH)
    parser = _Parser(text)
    evaluate = parser.whole()
    return Fql(text, evaluate, frozenset(parser.paths))


class _Token(NamedTuple):
    kind: str  # a sign or a word of the language, or: path, text, number, end
    value: Any
    position: int


_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_SIGN = re.compile(r"!=|>=|<=|[()\[\],!=<>]")
_PATH = re.compile(r"(?:\\.|[A-Za-z0-9_$@-])+(?:\.(?:\\.|[A-Za-z0-9_$@-])+)*", re.DOTALL)
_PART = re.compile(r"(?:\\.|[^.\\])+", re.DOTALL)
_CONSTANTS = {"true": True, "false": False, "null": None}
_WORDS = ("and", "or", "in")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def path_parts(text: str) -> Path:
    r"""The keys of a path, in which a dot that is part of a key has a backslash before it.

    >>> path_parts(r"properties.a\.b.c")
    ('properties', 'a.b', 'c')
    """
    return tuple(re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in _PART.findall(text))


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while True:
        position = _SPACE.match(text, position).end()  # type: ignore[union-attr]
        if position == len(text):
            yield _Token("end", None, position)
            return
        if text[position] in "\"'":
            value, end = _text(text, position)
            yield _Token("text", value, position)
        elif found := _SIGN.match(text, position):
            yield _Token(found[0], None, position)
            end = found.end()
        elif (found := _NUMBER.match(text, position)) and not _PATH.match(text, found.end()):
            yield _Token("number", number(found[0]), position)
            end = found.end()
        elif found := _PATH.match(text, position):
            word = found[0]
            kind = word if word in _WORDS else "constant" if word in _CONSTANTS else "path"
            yield _Token(kind, _CONSTANTS.get(word, word), position)
            end = found.end()
        else:
            raise FqlError(f"{text[position]!r} has no meaning here", position)
        position = end


def _text(text: str, start: int) -> tuple[str, int]:
    """A text in quotation marks, and where it ends."""
    parts: list[str] = []
    mark, position = text[start], start + 1
    while position < len(text):
        one = text[position]
        if one == mark:
            return "".join(parts), position + 1
        if one == "\\" and position + 1 < len(text):
            position += 1
            one = _ESCAPES.get(text[position], text[position])
        parts.append(one)
        position += 1
    raise FqlError(f"the text that begins here has no {mark} at its end", start)


Evaluate = Callable[[Values], Any]


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0
        self.paths: set[Path] = set()

    def whole(self) -> Evaluate:
        evaluate = self._or()
        if (rest := self._next()).kind != "end":
            raise FqlError("expected and, or, or the end", rest.position)
        return evaluate

    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *kinds: str) -> _Token | None:
        token = self._next()
        if token.kind not in kinds:
            return None
        self._at += 1
        return token

    def _expect(self, kind: str) -> None:
        if not self._take(kind):
            raise FqlError(f"expected {kind}", self._next().position)

    def _or(self) -> Evaluate:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise FqlError(f"more than {_MAX_DEPTH} levels of brackets", self._next().position)
        parts = [self._and()]
        while self._take("or"):
            parts.append(self._and())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else lambda values: _any(part(values) for part in parts)

    def _and(self) -> Evaluate:
        parts = [self._not()]
        while self._take("and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else lambda values: _all(part(values) for part in parts)

    def _not(self) -> Evaluate:
        turns = 0
        while self._take("!"):
            turns += 1
        inner = self._comparison()
        if not turns:
            return inner

        def evaluate(values: Values) -> Any:
            found = inner(values)
            return UNKNOWN if isinstance(found, _Unknown) else (found is True) == (turns % 2 == 0)

        return evaluate

    def _comparison(self) -> Evaluate:
        left = self._operand()
        sign = self._take("=", "!=", ">", ">=", "<", "<=", "in")
        if sign is None:
            return left
        right = self._operand()
        compare, is_equality = COMPARISONS[sign.kind], sign.kind in ("=", "!=", "in")

        def evaluate(values: Values) -> Any:
            one, other = left(values), right(values)
            if one is NO_TEXT and is_equality and _is_text(other):
                return sign.kind == "!="
            return UNKNOWN if isinstance(one, _Unknown) or isinstance(other, _Unknown) else compare(one, other)

        return evaluate

    def _operand(self) -> Evaluate:
        token = self._next()
        if self._take("text", "number", "constant"):
            return lambda _: token.value
        if self._take("("):
            inner = self._or()
            self._expect(")")
            return inner
        if self._take("["):
            return self._listed("]", lambda *found: list(found))
        if self._take("path"):
            if self._take("("):
                return self._call(token)
            path = path_parts(token.value)
            self.paths.add(path)
            return lambda values: plain(values(path))
        what = "nothing comes after it" if token.kind == "end" else f"{token.kind} is not"
        raise FqlError(f"expected a value, and {what}", token.position)

    def _call(self, name: _Token) -> Evaluate:
        known = FUNCTIONS.get(name.value)
        if known is None:
            raise FqlError(f"there is no function {name.value}; there are {', '.join(FUNCTIONS)}", name.position)
        wanted, function = known
        before = self._at
        called = self._listed(")", function)
        given = self._given
        if given != wanted:
            raise FqlError(f"{name.value} takes {wanted} values, and got {given}", self._tokens[before].position)
        return called

    def _listed(self, end: str, function: Callable[..., Any]) -> Evaluate:
        """A function of the values up to a sign."""
        parts: list[Evaluate] = []
        if not self._take(end):
            parts.append(self._or())
            while self._take(","):
                parts.append(self._or())
            self._expect(end)
        self._given = len(parts)

        def evaluate(values: Values) -> Any:
            found = [part(values) for part in parts]
            return UNKNOWN if any(isinstance(one, _Unknown) for one in found) else function(*found)

        return evaluate


def _is_text(value: Any) -> bool:
    """Whether something is a text, or several of them."""
    return all(isinstance(one, str) for one in value) if isinstance(value, list) else isinstance(value, str)


def _any(found: Iterator[Any]) -> Any:
    outcome: Any = False
    for one in found:
        if one is True:
            return True
        outcome = UNKNOWN if isinstance(one, _Unknown) else outcome
    return outcome


def _all(found: Iterator[Any]) -> Any:
    outcome: Any = True
    for one in found:
        if isinstance(one, _Unknown):
            outcome = UNKNOWN
        elif one is not True:
            return False
    return outcome
