"""How a table's columns grow: `evolve(schema, evidence)` decides, and touches no data.

Columns are only appended, and a column keeps its type for good (an explicit command changes it). Evidence is joined
by union, count and minimum, so the result does not depend on how events were split over tasks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from eventlake.schema.declared import INFERRED, TypeRules
from eventlake.schema.tallies import Tallies, union
from eventlake.schema.tallies import joined as joined_tallies
from eventlake.schema.types import ColumnType, Seen


class Column(NamedTuple):
    name: str
    type: ColumnType
    pointer: str  # where in the event its first value was found


@dataclass(frozen=True)
class TableSchema:
    """The columns of a table, in order."""

    columns: tuple[Column, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        return frozenset(column.name for column in self.columns)

    def with_type(self, name: str, new_type: ColumnType) -> "TableSchema":
        return TableSchema(tuple(c._replace(type=new_type) if c.name == name else c for c in self.columns))


class Sighting(NamedTuple):
    """What was seen of one column."""

    seen: Seen
    values: int
    pointer: str
    tallies: Tallies = ()

    @classmethod
    def of(cls, tallies: Tallies, pointer: str) -> "Sighting":
        return cls(union(tallies), sum(tally.values for tally in tallies), pointer, tallies)

    def joined(self, other: "Sighting") -> "Sighting":
        return Sighting(
            self.seen | other.seen,
            self.values + other.values,
            min(self.pointer, other.pointer),
            joined_tallies(self.tallies, other.tallies),
        )


Evidence = dict[str, Sighting]


def join(parts: Iterable[Mapping[str, Sighting]]) -> Evidence:
    """All evidence of a table, from any number of tasks in any order."""
    whole: Evidence = {}
    for part in parts:
        for name, sighting in part.items():
            whole[name] = whole[name].joined(sighting) if name in whole else sighting
    return whole


class SchemaChange(NamedTuple):
    added: tuple[Column, ...]
    refused: tuple[str, ...]  # columns past the limit; their values are rescued
    reasons: Mapping[str, str] = MappingProxyType({})  # of types that the values do not let expect


def evolve(
    schema: TableSchema,
    evidence: Mapping[str, Sighting],
    *,
    column_limit: int = 2000,
    table: str = "",
    rules: TypeRules = INFERRED,
) -> SchemaChange:
    """The columns to append. Past the limit, those of fixed types and then the most used columns come first."""
    order = {name: position for position, name in enumerate(rules.fixed)}
    new = sorted(
        (name for name in evidence if name not in schema.names),
        key=lambda name: (name not in order, -evidence[name].values, name),
    )
    room = max(0, column_limit - len(schema.columns))
    in_order = sorted(new[:room], key=lambda name: (order.get(name, len(order)), name))
    added, reasons = [], {}
    for name in in_order:
        seen = evidence[name]
        kind, reason = rules.decide(table, name, seen.seen, seen.tallies)
        added.append(Column(name, kind, seen.pointer))
        if reason:
            reasons[name] = reason
    return SchemaChange(tuple(added), tuple(sorted(new[room:])), reasons)
