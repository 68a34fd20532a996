"""Commands whose modules are loaded when they are called: `--help`, and what only looks, shall answer at once."""

import importlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup


class Lazy(NamedTuple):
    """Where a command is, and the first line of its help."""

    place: str  # module:function, or module:app for a group of commands
    help: str


class _Loading(Mapping[str, Any]):
    """Commands by name: who asks for a name that is like another one does not wait for any."""

    def __init__(self, commands: Mapping[str, Lazy]) -> None:
        self._commands = commands

    def __getitem__(self, name: str) -> Any:
        return loaded(name, self._commands[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)


def group_of(commands: Mapping[str, Lazy]) -> type[TyperGroup]:
    """A group that shows commands without loading them."""

    class Group(TyperGroup):
        @property
        def commands(self) -> Any:
            return _Loading(commands)

        @commands.setter
        def commands(self, none: object) -> None:
            """The base class would set what was registered, which nothing was."""

        def list_commands(self, ctx: Any) -> list[str]:
            del ctx
            return list(commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            del ctx
            lazy = commands.get(cmd_name)
            return TyperCommand(cmd_name, help=lazy.help) if lazy else None

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, shown, rest = super().resolve_command(ctx, args)
            return name, loaded(name, commands[name]) if name else shown, rest

    return Group


def loaded(name: str, lazy: Lazy) -> Any:
    """The command itself."""
    module, _, attribute = lazy.place.partition(":")
    app = getattr(importlib.import_module(f"eventlake.cli.{module}"), attribute)
    if not isinstance(app, typer.Typer):
        function, app = app, typer.Typer(add_completion=False, rich_markup_mode="rich")
        app.command()(function)
    command = typer.main.get_command(app)
    command.name = name
    return command
