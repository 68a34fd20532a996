"""The command line."""

import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from eventlake import __version__
from eventlake.cli import (
    admit,
    catalog,
    collect,
    connections,
    demo,
    doctor,
    emr,
    lakes,
    load,
    look,
    restore,
    sources,
    state,
    verify,
)
from eventlake.cli.output import printable, talk
from eventlake.errors import EventLakeError
from eventlake.workspace import CONFIG, Workspace

app = typer.Typer(
    name="eventlake",
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


@app.command()
def init(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="Folder of the workspace.")] = None,
) -> None:
    """Make a workspace: a settings file and, later, a lake beside it.

    Example: eventlake init my-lake
    """
    place = Workspace.create((state.folder() / folder if folder else state.folder()).resolve())
    talk.print(f"Made a workspace in {place.folder}; its settings are in {CONFIG}.")
    where = f"-C {folder} " if folder else ""
    talk.print(f"Next: eventlake {where}source add web")


app.command(name="demo")(demo.demo)
app.add_typer(sources.app, name="source")
app.command(name="import")(load.import_files)
app.command()(collect.collect)
app.command()(collect.rejects)
app.command()(load.sync)
app.command()(load.replay)
app.command()(load.retype)
app.command()(admit.drop)
app.command()(admit.allow)
app.command()(look.tables)
app.command()(look.describe)
app.command()(look.query)
app.command()(look.runs)
app.command()(look.report)
app.add_typer(lakes.app, name="lake")
app.command()(connections.connect)
app.command()(connections.disconnect)
app.add_typer(connections.app, name="connection")
app.add_typer(catalog.app, name="catalog")
app.command()(emr.package)
app.command(name="verify")(verify.verify)
app.command(name="restore")(restore.restore)
app.command(name="doctor")(doctor.doctor)


def main() -> None:
    """Run a command and turn errors into a sentence and an exit code."""
    try:
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
