"""`eventlake init`."""

from pathlib import Path
from typing import Annotated

import typer

from eventlake.cli import state
from eventlake.cli.output import talk
from eventlake.workspace import CONFIG, Workspace


def init(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="Folder of the workspace.")] = None,
    dialect: state.DialectOption = "segment",
) -> None:
    """Make a workspace: a settings file and, later, a lake beside it.

    Example: eventlake init my-lake
    """
    workspace = Workspace.create((state.folder() / folder if folder else state.folder()).resolve(), dialect)
    talk.print(f"Made a workspace in {workspace.folder}; its settings are in {CONFIG}.")
    where = f"-C {folder} " if folder else ""
    talk.print(f"Next: eventlake {where}source add web")
