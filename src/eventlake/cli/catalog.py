"""`eventlake catalog`: the tables as other engines see them."""

from contextlib import ExitStack
from typing import Annotated

import typer

from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag, LakeOption
from eventlake.commit.commit import show_views
from eventlake.errors import InvalidSettingsError
from eventlake.reports import words
from eventlake.settings import DEFAULT_LAKE
from eventlake.workspace import Lake

app = typer.Typer(no_args_is_help=True, help="Tables in the Glue Data Catalog or a Hive metastore.")


@app.command()
def publish(name: LakeOption = DEFAULT_LAKE, as_json: JsonFlag = False) -> None:
    """Show all tables in Glue or a Hive metastore, with all their columns and partitions.

    Every sync does that for the tables that it writes to. This does it for all: when another catalog is set for a lake
    that has tables already, or when tables or partitions were deleted there. What people added there stays.
    """
    lake = state.lake(name)
    catalog = _mirrored(lake)
    with ExitStack() as held:
        for connection in lake.connections:  # a run that ends meanwhile would be overtaken
            held.enter_context(lake.leases.held(connection.source.id))
        count, refused = catalog.publish(run_id="publish", at=lake.clock.now())
        refused += [told for connection in lake.connections for told in show_views(lake, connection.source.id)]
    if as_json:
        output.print_json({"tables": count, "not_shown": refused})
    else:
        output.talk.print(f"{words.either(count, 'table is', 'tables are')} shown in {catalog.title}.")
        for told in refused:
            output.talk.print(f"Not shown: {told}")


@app.command()
def trim(
    keep: Annotated[int, typer.Option(help="How many versions of each table stay.")] = 10,
    name: LakeOption = DEFAULT_LAKE,
    as_json: JsonFlag = False,
) -> None:
    """Delete old versions of tables in Glue.

    Glue keeps a version each time a type changes or somebody edits a table, up to a limit of the account.
    """
    lake = state.lake(name)
    catalog = _mirrored(lake)
    if lake.settings.catalog.kind != "glue":
        raise InvalidSettingsError(f"{catalog.title} keeps no versions of tables", fix="nothing is to be done")
    deleted = {}
    with output.progress() as report:
        tables = lake.catalog.tables()
        for number, table in enumerate(tables, 1):
            deleted[f"{table.database}.{table.name}"] = lake.glue.trim_versions(table.database, table.name, keep=keep)
            report("trim", number, len(tables))
    if as_json:
        output.print_json({"deleted": deleted})
    else:
        output.talk.print(
            f"{words.count(sum(deleted.values()), 'old version')} of {words.count(len(deleted), 'table')} deleted."
        )


def _mirrored(lake: Lake) -> MirroredCatalog:
    if not isinstance(lake.catalog, MirroredCatalog):
        raise InvalidSettingsError(
            f"the lake {lake.name!r} shows its tables in no other catalog",
            fix='set kind = "glue" or kind = "hive" below [catalog]',
        )
    return lake.catalog
