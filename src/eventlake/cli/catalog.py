"""`eventlake catalog`: the tables as other engines see them."""

from contextlib import ExitStack
from typing import Annotated

import typer

from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.errors import InvalidSettingsError
from eventlake.reports import words
from eventlake.workspace import Workspace

app = typer.Typer(no_args_is_help=True, help="Tables in the Glue Data Catalog.")


@app.command()
def publish(as_json: JsonFlag = False) -> None:
    """Show all tables in Glue, with all their columns and partitions.

    Every sync does that for the tables that it writes to. This does it for all: when Glue is set for a lake that has
    tables already, or when tables or partitions were deleted there. What people added in Glue stays.
    """
    place = state.workspace()
    catalog = _mirrored(place)
    with ExitStack() as held:
        for source in place.sources.all():  # a run that ends meanwhile would be overtaken
            held.enter_context(place.leases.held(source.id))
        count = catalog.publish(run_id="publish", at=place.clock.now())
    if as_json:
        output.print_json({"tables": count})
    else:
        output.talk.print(f"{words.either(count, 'table is', 'tables are')} shown in Glue.")


@app.command()
def trim(
    keep: Annotated[int, typer.Option(help="How many versions of each table stay.")] = 10,
    as_json: JsonFlag = False,
) -> None:
    """Delete old versions of tables in Glue.

    Glue keeps a version each time a type changes or somebody edits a table, up to a limit of the account.
    """
    place = state.workspace()
    _mirrored(place)
    deleted = {}
    with output.progress() as report:
        tables = place.catalog.tables()
        for number, table in enumerate(tables, 1):
            deleted[f"{table.database}.{table.name}"] = place.glue.trim_versions(table.database, table.name, keep=keep)
            report("trim", number, len(tables))
    if as_json:
        output.print_json({"deleted": deleted})
    else:
        output.talk.print(
            f"{words.count(sum(deleted.values()), 'old version')} of {words.count(len(deleted), 'table')} deleted."
        )


def _mirrored(place: Workspace) -> MirroredCatalog:
    if not isinstance(place.catalog, MirroredCatalog):
        raise InvalidSettingsError(
            "this workspace shows its tables in no other catalog", fix='set kind = "glue" below [catalog]'
        )
    return place.catalog
