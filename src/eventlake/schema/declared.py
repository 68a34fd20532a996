"""Types that people give to columns before the first value comes: the settings `types` and `numbers` of a source.

    track_order_completed:properties.total=decimal, properties.*_id=string

A declaration names a place in the event, or the column, and may be for one table only. `*` stands for any characters.
The first that fits a new column gives it its type; what does not fit that type is rescued, as always.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from eventlake.schema import names
from eventlake.schema.rudder_columns import STANDARD_COLUMNS
from eventlake.schema.tallies import Tallies, why_text
from eventlake.schema.types import ENVELOPE_TYPES, RUDDER_TYPES, SEGMENT_TYPES, ColumnType, Seen, infer

_SEPARATOR = re.compile(r",(?![^(]*\))")  # not the comma of decimal(38,6)
_STAR = "anycharacters"  # stands for a star while a name is brought into the form of column names


class Declared(NamedTuple):
    """One declaration; patterns are written as columns and tables are called."""

    table: str  # its key; empty for all
    column: str
    type: ColumnType

    def fits(self, table: str, column: str) -> bool:
        return self.table in ("", table) and matches(self.column, column)

    def __str__(self) -> str:
        return f"{self.table}:{self.column}={self.type.value}" if self.table else f"{self.column}={self.type.value}"


class Dialect(NamedTuple):
    """How a dialect calls columns, and which types they may have."""

    column: Callable[[str], str]
    types: tuple[ColumnType, ...]


def parse(text: str, dialect: Dialect | None = None) -> tuple[Declared, ...]:
    """The declarations that a setting holds. Raises ValueError that says what is wrong."""
    return tuple(_one(part.strip(), dialect or SEGMENT) for part in _SEPARATOR.split(text) if part.strip())


def written(declarations: Iterable[Declared]) -> str:
    return ", ".join(map(str, declarations))


def _one(text: str, dialect: Dialect) -> Declared:
    place, equals, type_name = text.rpartition("=")
    table, _, path = place.rpartition(":")
    kind = ColumnType.named(type_name.strip())
    if not equals or not path.strip() or "=" in place:
        raise ValueError(f"{text!r} is not of the form PLACE=TYPE or TABLE:PLACE=TYPE")
    if kind not in dialect.types:
        known = ", ".join(kind.value for kind in dialect.types)
        raise ValueError(f"{type_name.strip()!r} is not a column type: use one of {known}")
    column = dialect.column(path.strip())
    if path.strip() == names.RESCUED_COLUMN:
        raise ValueError(f"{path.strip()} is a column of eventlake's own")
    if not re.fullmatch(r"[a-z0-9_]*", table.strip()):
        raise ValueError(f"{table.strip()!r} is not a table: write its name as its folder has it (`page`), without *")
    return Declared(table.strip(), column, kind)


def _column(path: str) -> str:
    column = pattern(path)
    if column in ENVELOPE_TYPES:
        raise ValueError(f"{column} is of the envelope, and always made as {ENVELOPE_TYPES[column].value}")
    if column in names.PARTITION_KEYS:
        raise ValueError(f"{path} is a column of eventlake's own")
    return column


def pattern(path: str) -> str:
    """A place of the event, or a column, as a pattern for columns.

    >>> pattern("properties.orderTotal"), pattern("properties.*Id"), pattern("context_*")
    ('properties_order_total', 'properties_*_id', 'context_*')
    """
    keys = path.split(".")
    if not all(key.strip() for key in keys):
        raise ValueError(f"{path!r} has an empty part: write properties.total")
    return names.column_name(*(re.sub(r"\*+", _STAR, key.strip()) for key in keys)).replace(_STAR, "*")


def _rudder_column(path: str) -> str:
    if not re.fullmatch(r"[a-z0-9_*]+", path):
        raise ValueError(f"{path!r} is not a column: write it as in the lake, say order_total or context_*")
    if path in STANDARD_COLUMNS - {"name"}:  # which only pages and screens have
        raise ValueError(f"{path} is a standard column, whose type is always the same")
    return path


SEGMENT = Dialect(_column, SEGMENT_TYPES)
RUDDERSTACK = Dialect(_rudder_column, RUDDER_TYPES)


def matches(star: str, name: str) -> bool:
    """Whether a name fits a pattern, in which `*` stands for any characters."""
    return re.fullmatch(".*".join(map(re.escape, star.split("*"))), name) is not None


@dataclass(frozen=True)
class TypeRules:
    """What decides about the type of a new column."""

    declared: tuple[Declared, ...] = ()
    whole_numbers_too: bool = False  # are of the type of numbers with fractions
    numbers: ColumnType = ColumnType.DECIMAL  # with fractions
    fixed: Mapping[str, ColumnType] = field(default_factory=lambda: ENVELOPE_TYPES)  # whatever comes

    def decide(self, table: str, column: str, seen: Seen, tallies: Tallies) -> tuple[ColumnType, str | None]:
        """The type of a new column, and the reason where it is not what its values let expect."""
        if column in self.fixed:
            return self.fixed[column], None
        for declaration in self.declared:
            if declaration.fits(table, column):
                return declaration.type, f"declared: {declaration}"
        kind = infer(seen, self.numbers)
        if kind is ColumnType.BIGINT and self.whole_numbers_too:
            return self.numbers, None
        return kind, why_text(tallies, self.numbers) if kind is ColumnType.STRING else None


INFERRED = TypeRules()
