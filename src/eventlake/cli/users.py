"""`eventlake user`: who may use the console. `eventlake stop`: let a run end."""

from typing import Annotated

import typer

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.control.people import Scope
from eventlake.events import instants

app = typer.Typer(no_args_is_help=True, help="Users: who may sign in to the console.")


@app.command()
def invite(
    role: Annotated[Scope, typer.Option(help="read: look; operate: also start and stop runs; admin: everything.")] = (
        Scope.READ
    ),
) -> None:
    """Print a link by which somebody becomes a user of the console, once, within a day."""
    secret = state.changes().invite(role)
    output.out.print(f"{state.workspace().settings.console.url.rstrip('/')}/welcome/{secret}")


@app.command(name="list")
def list_users(as_json: JsonFlag = False) -> None:
    """Show who may sign in."""
    found = state.workspace().people.users()
    shown = [
        {"name": user.name, "role": user.role.value, "created_at": instants.to_text(user.created_at)} for user in found
    ]
    if as_json:
        output.print_json(shown)
    elif not shown:
        output.talk.print("There is no user yet: eventlake user invite --role admin")
    else:
        output.table(None, ("name", "role", "since"), [tuple(one.values()) for one in shown])


@app.command()
def remove(name: Annotated[str, typer.Argument(metavar="NAME", help="The user.")]) -> None:
    """Let somebody sign in no more; whoever is signed in under this name is signed out."""
    state.changes().remove_user(name)
    output.talk.print(output.printable(f"{name} is removed."))


def stop(run_id: Annotated[str, typer.Argument(metavar="RUN", help="See `eventlake runs`.")]) -> None:
    """Let a run end before its commit, wherever it goes on.

    Nothing of it is published.

    Example: eventlake stop 1794916800000000000
    """
    state.changes().stop_run(run_id)
    output.talk.print(f"Run {run_id} will stop in a moment.")
