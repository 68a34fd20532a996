"""`eventlake describe --set`: the types of columns that are still to come."""

from collections.abc import Iterable

from eventlake.catalog.base import CatalogTable
from eventlake.control.connections import Connection
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.schema import declared
from eventlake.workspace import Lake


def declare(lake: Lake, table: CatalogTable | None, texts: list[str]) -> None:
    """Put declarations for one table before all others of its source. One for a column that exists is refused."""
    if table is None:
        raise NotFoundError(
            "there is no such table of events yet",
            fix="for tables to come: `eventlake connection set SOURCE types=track_order:properties.total=decimal`",
        )
    connection = _connection_of(lake, table)
    name = f"{table.database}.{table.name}"
    new: list[declared.Declared] = []
    for text in texts:
        try:
            one = declared.parse(f"{table.table_key}:{text}")
        except ValueError as error:
            raise InvalidSettingsError(str(error), fix="for example --set properties.total=decimal") from error
        if len(one) != 1:
            raise InvalidSettingsError(f"{text!r} is not of the form COLUMN=TYPE", fix="repeat --set for each column")
        (declaration,) = one
        if declaration.column in table.schema.names:
            raise InvalidSettingsError(
                f"{name} has the column {declaration.column} already",
                fix=f'`eventlake retype {name} {declaration.column} "{declaration.type.value}"` changes its type',
            )
        new.append(declaration)
    again = {(one.table, one.column) for one in new}
    kept = [one for one in connection.settings.type_rules.declared if (one.table, one.column) not in again]
    lake.workspace.connections.change(
        f"{connection.source.slug}/{connection.lake}", {"types": declared.written([*new, *kept])}
    )


def type_reasons(lake: Lake, table: CatalogTable, runs: Iterable[str]) -> dict[str, str]:
    """Why columns have types that their values do not let expect, as the runs that added them reported it."""
    reasons: dict[str, str] = {}
    for run_id in runs:
        for run in lake.runs.with_id(run_id):
            for line in run.report or ():
                if line["table_name"] == table.name:
                    reasons |= line.get("type_reasons", {})
    return reasons


def declarations_for(lake: Lake, table: CatalogTable) -> list[str]:
    """What is declared for columns that the table may get."""
    rules = _connection_of(lake, table).settings.type_rules
    return [str(one) for one in rules.declared if one.table in ("", table.table_key)]


def _connection_of(lake: Lake, table: CatalogTable) -> Connection:
    return lake.workspace.connections.of_table(lake.name, table.source_id)
