"""`eventlake suppress`: people of whom nothing gets into the lake."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import click
import typer

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.errors import InvalidSettingsError
from eventlake.events import instants
from eventlake.reports.words import count

app = typer.Typer(no_args_is_help=True, help="People of whom nothing gets into the lake.")

Subjects = Annotated[list[str], typer.Argument(metavar="SUBJECT…", help="Ids of users, or what --path leads to.")]
By = Annotated[
    str,
    typer.Option("--path", metavar="PATH", help="Where events name them: anonymousId, traits.email, …"),
]
Of = Annotated[str | None, typer.Option("--source", metavar="SLUG", help="Only in this source; else in all.")]


@app.command()
def add(subjects: Subjects, path: By = "userId", source: Of = None) -> None:
    """Let nothing of some people in from now on.

    The collector refuses their events within two seconds, quietly, and syncs leave out what is in the raw archive.
    Rows that are in the lake already go with a replay of their period.

    Example: eventlake suppress add --path traits.email ann@example.com
    """
    _tell_added(subjects, path, source)


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One subject a line; - for standard input.")],
    path: By = "userId",
    source: Of = None,
) -> None:
    """The same for a list in a file: one subject a line, blank lines and copies do not matter.

    Example: eventlake suppress import opted-out.txt
    """
    with click.open_file(str(file), encoding="utf-8") as lines:
        try:
            _tell_added(_of_lines(lines), path, source)
        except UnicodeDecodeError as error:
            raise InvalidSettingsError(f"{file} is not text in UTF-8: nobody was added", fix="convert it") from error


def _of_lines(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        subject = line.strip().removeprefix("\ufeff")
        if "\0" in subject or len(subject.encode()) > 4096:
            raise InvalidSettingsError(
                f"line {number} is no id: nobody was added", fix="give one subject a line, of up to 4,096 bytes"
            )
        if subject:
            yield subject


def _tell_added(subjects: Iterable[str], path: str, source: str | None) -> None:
    workspace = state.workspace()
    with output.talk.status("writing the list…"):
        added = state.changes().suppress(subjects, path, source=source)
    output.say(f"{count(added, 'subject')} added; {workspace.suppressions.count():,} on the list")
    if added:
        output.talk.print("What is in the lake of them goes with `eventlake replay SOURCE`, for all or for a period.")


@app.command()
def remove(subjects: Subjects, path: By = "userId", source: Of = None) -> None:
    """Let some people in again; a replay loads what the raw archive has of them.

    Example: eventlake suppress remove u-4711
    """
    workspace = state.workspace()
    removed = state.changes().unsuppress(subjects, path, source=source)
    output.say(f"{count(removed, 'subject')} removed; {workspace.suppressions.count():,} on the list")


@app.command("list")
def list_(
    limit: Annotated[int, typer.Option("--limit", min=1, help="So many, newest first.")] = 100,
    as_json: JsonFlag = False,
) -> None:
    """Who is on the list. This shows their ids: mind who sees your screen."""
    workspace = state.workspace()
    slugs = workspace.sources.slugs()
    rows = [
        {
            "subject": one.subject,
            "path": one.path,
            "source": slugs.get(one.source_id, one.source_id) or None,
            "added_at": instants.to_text(one.added_at),
            "added_by": one.added_by,
        }
        for one in workspace.suppressions.latest(limit)
    ]
    if as_json:
        output.print_json(rows)
        return
    unknown = {"subject": "(only its hash is known)", "source": "all"}
    shown = [tuple(value or unknown.get(name) for name, value in row.items()) for row in rows]
    output.table(None, ("subject", "path", "source", "since", "by"), shown)
    if workspace.suppressions.count() > limit:
        output.talk.print(f"{workspace.suppressions.count() - limit:,} more; --limit shows more of them")
