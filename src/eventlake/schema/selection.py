"""Selective sync: which tables and columns of a source a lake has.

    page, track_order_*, -track_debug_*, -properties.card_number, -track_order_completed:context.*

A part without a dot or colon is about tables, by their keys; any other about columns, of one table or of all. Parts
with a minus are left out. If some tables are named without one, all others are left out, too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from eventlake.schema import names
from eventlake.schema.claims import Claims, ColumnRules, Path
from eventlake.schema.declared import matches, pattern
from eventlake.schema.types import ColumnType

_TABLE = re.compile(r"[a-z0-9_*]+")


class Columns(NamedTuple):
    """Columns by patterns: of tables, and of columns."""

    table: str
    column: str

    def fits(self, table: str, column: str) -> bool:
        return matches(self.table, table) and matches(self.column, column)


class Selection(NamedTuple):
    wanted: tuple[str, ...] = ()  # tables; all if none is named
    unwanted: tuple[str, ...] = ()
    left_out: tuple[Columns, ...] = ()

    def has_table(self, key: str) -> bool:
        is_wanted = not self.wanted or any(matches(one, key) for one in self.wanted)
        return is_wanted and not any(matches(one, key) for one in self.unwanted)

    def has_column(self, table: str, column: str) -> bool:
        return not any(one.fits(table, column) for one in self.left_out)


EVERYTHING = Selection()


def parse(text: str) -> Selection:
    """The selection that a setting holds. Raises ValueError that says what is wrong.

    >>> parse("page, -track_debug_*")
    Selection(wanted=('page',), unwanted=('track_debug_*',), left_out=())
    >>> parse("-properties.cardNumber").left_out
    (Columns(table='*', column='properties_card_number'),)
    """
    tables: dict[bool, list[str]] = {True: [], False: []}
    columns = []
    for part in filter(None, map(str.strip, text.split(","))):
        is_out, place = part.startswith("-"), part.removeprefix("-").strip()
        if _TABLE.fullmatch(place):
            tables[not is_out].append(place)
        else:
            columns.append(_columns(part, place, is_out=is_out))
    return Selection(tuple(tables[True]), tuple(tables[False]), tuple(columns))


def _columns(part: str, place: str, *, is_out: bool) -> Columns:
    table, _, path = place.rpartition(":")
    table = table.strip() or "*"
    if not is_out:
        raise ValueError(f"{part!r}: columns can only be left out, with a minus: -properties.card_number")
    if not _TABLE.fullmatch(table) or not path.strip():
        raise ValueError(f"{part!r} is neither a table nor -TABLE:PATH: write the name of a table as its folder has it")
    column = pattern(path.strip())
    if column in names.OWNED_COLUMNS:
        raise ValueError(f"{part!r}: every row has the column {column}")
    return Columns(table, column)


def written(selection: Selection) -> str:
    """As the setting is kept.

    >>> written(parse(" -a:b.c ,x,- y"))
    'x, -y, -a:b_c'
    """
    parts = [*selection.wanted, *(f"-{one}" for one in selection.unwanted)]
    return ", ".join([*parts, *(f"-{one.table}:{one.column}" for one in selection.left_out)])


@dataclass(frozen=True)
class SelectedColumns:
    """The columns of one table, without those that are left out."""

    rules: ColumnRules
    table: str
    selection: Selection

    @property
    def message_column(self) -> str:
        return self.rules.message_column

    @property
    def always(self) -> Mapping[str, str]:
        return self.rules.always

    @property
    def fixed(self) -> Mapping[str, ColumnType]:
        return self.rules.fixed

    def claims(self, path: Path) -> Claims | str:
        wanted = self.rules.claims(path)
        if isinstance(wanted, str):
            return wanted if self.selection.has_column(self.table, self.column_of(path)) else ()
        return tuple(
            claim
            for claim in wanted
            if claim.column in self.rules.always or self.selection.has_column(self.table, claim.column)
        )

    def column_of(self, path: Path) -> str:
        return self.rules.column_of(path)
