"""The command line."""

import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from eventlake import __version__
from eventlake.cli import state
from eventlake.cli.lazy import Lazy, group_of
from eventlake.cli.output import printable, talk
from eventlake.errors import EventLakeError

COMMANDS = {
    "init": Lazy("init:init", "Make a workspace: a settings file and, later, a lake beside it."),
    "demo": Lazy(
        "demo:demo",
        "A tour in a scratch folder: make events, send some over HTTP, sync them on Spark, look at what became of "
        "them.",
    ),
    "serve": Lazy(
        "serve:serve",
        "Run everything: collect events, sync on schedule, tell when something is wrong, and show it in a browser.",
    ),
    "import": Lazy(
        "load:import_files", "Put raw files into the archive: NDJSON, gzip or plain, or a whole Segment archive."
    ),
    "collect": Lazy(
        "collect:collect", "Run the tracking API: SDKs of Segment and RudderStack can send to it unchanged."
    ),
    "rejects": Lazy("collect:rejects", "Show events and requests that the collector refused, with the reason."),
    "sync": Lazy("load:sync", "Load what is new into the lake."),
    "replay": Lazy("load:replay", "Load a period again from the raw archive."),
    "retype": Lazy("load:retype", "Correct the type of a column, over its whole history."),
    "adopt": Lazy(
        "admit:adopt",
        "Begin with the tables of a lake that Segment or RudderStack made: their columns and types stay as they are.",
    ),
    "drop": Lazy("admit:drop", "Take a table out of the lake and keep its events out; the raw archive is not touched."),
    "allow": Lazy(
        "admit:allow",
        "Let events in that were left out: those of dropped tables, and those for whose tables there was no room.",
    ),
    "tables": Lazy("look:tables", "Show the tables of the lake."),
    "describe": Lazy(
        "look:describe",
        "Show the columns of a table: their types, where in the event they come from, and since when.",
    ),
    "query": Lazy("ask:query", "Ask the lake in SQL (DuckDB, or Athena). Tables are called <database>.<table>."),
    "runs": Lazy("look:runs", "Show the history of runs, also those under way."),
    "stop": Lazy("users:stop", "Let a run end before its commit, wherever it goes on."),
    "report": Lazy("look:report", "Show the report of a run; of one that is under way, how far it is."),
    "connect": Lazy(
        "connections:connect",
        "Connect a source to a lake. The next sync loads all that is in the source's raw archive.",
    ),
    "disconnect": Lazy(
        "connections:disconnect", "Stop loading a source into a lake. Its tables and its raw archive stay as they are."
    ),
    "package": Lazy(
        "emr:package",
        "Build what a cluster needs and upload it, once per version: to the lake for EMR, to a volume for Databricks.",
    ),
    "parity": Lazy(
        "parity:parity",
        "Compare a lake that Segment wrote with this one: rows, messages and cells; exit code 1 if rows are missing.",
    ),
    "verify": Lazy("verify:verify", "Recount the raw archive against the lake; exit code 1 if anything differs."),
    "restore": Lazy(
        "restore:restore", "Build the workspace database anew from the lake, if it was lost or is an old copy."
    ),
    "doctor": Lazy(
        "doctor:doctor",
        "Check settings, storage, catalog, database, Java and Spark, step by step, each with its fix.",
    ),
    "schedule": Lazy(
        "serve:schedule",
        "Sync connections by their schedules, carry out what was ordered in the console, and send alerts.",
    ),
    "console": Lazy("serve:console", "Run the console and the HTTP API alone."),
    "alerts": Lazy("alerts:app", "Alerts: who is told when something is wrong."),
    "user": Lazy("users:app", "Users: who may sign in to the console."),
    "source": Lazy("sources:app", "Sources: the apps that send events, and their write keys."),
    "lake": Lazy("lakes:app", "Lakes: the places where tables live, as eventlake.toml names them."),
    "connection": Lazy("connections:app", "Connections: sources in lakes, and how their events become tables there."),
    "plan": Lazy("plans:app", "Tracking plans: what events sources are to send."),
    "transform": Lazy("transform:app", "Transformations: how events are changed before they have tables."),
    "suppress": Lazy("suppress:app", "People of whom nothing gets into the lake."),
    "catalog": Lazy("catalog:app", "Tables in the Glue Data Catalog or a Hive metastore."),
}

app = typer.Typer(
    name="eventlake",
    cls=group_of(COMMANDS),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="""Segment-spec events in, clean Parquet tables out.

    A first tour: [bold]eventlake demo[/bold]

    Your own events: [bold]eventlake init lake[/bold], then in that folder [bold]eventlake source add web[/bold],
    [bold]eventlake import web events.json.gz[/bold], [bold]eventlake sync[/bold],
    [bold]eventlake query "select * from web.page limit 5"[/bold].

    Data goes to stdout, talk and progress to stderr. Exit codes: 0 done, 1 failed, 2 wrong use, 3 partly done,
    4 busy (another run holds the connection), 130 stopped.""",
)
_verbose = False


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"eventlake {__version__}\n")
        raise typer.Exit


@app.callback()
def settings(
    folder: Annotated[
        Path, typer.Option("-C", metavar="DIR", help="The workspace; by default the current folder.")
    ] = Path(),
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the stack trace of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    global _verbose  # noqa: PLW0603
    del version
    _verbose = verbose
    state.use_folder(folder)


def main() -> None:
    """Run a command and turn errors into a sentence and an exit code."""
    try:
        with state.at_the_end:
            app()
    except EventLakeError as error:
        _show_error(error.problem, error.fix, error.code)
        sys.exit(state.exit_code(error))
    except OSError as error:
        _show_error(str(error), "check that the folder is there, that you may write to it, and that the disk has room")
        sys.exit(1)
    except KeyboardInterrupt:
        talk.print("Stopped. Nothing is published by halves: what was committed is finished by the next run.")
        sys.exit(130)


def _show_error(problem: str, fix: str, code: str = "") -> None:
    if _verbose:
        traceback.print_exc()
    talk.print(Text.assemble(("Error: ", "bold red"), printable(problem)))
    talk.print(Text.assemble(("Fix:   ", "bold"), printable(fix)))
    if "." in code:  # one of several that this kind of error has
        talk.print(Text.assemble(("Code:  ", "bold"), code))
