"""How commands speak: data on stdout, talk on stderr, JSON for scripts."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

# No markup: names of folders and events may hold square brackets.
out = Console(highlight=False, markup=False)
if not out.is_terminal and "COLUMNS" not in os.environ:
    out.width = 10_000  # a pipe has no width: a folded name could not be searched for
talk = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=str)
GAP = 2  # blanks between the columns of a table
_BARS = " ▁▂▃▄▅▆▇█"


def print_json(value: Any) -> None:
    """One JSON value on a line of its own. Nothing in it can drive a terminal: what is not printable is escaped."""
    line = _encoder.encode(value).decode()
    if not line.isprintable():  # beyond ASCII JSON would let anything stand, and only in texts
        line = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
    sys.stdout.write(line + "\n")


def table(
    title: str | None,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    numbers: Sequence[str] = (),
    widths: Sequence[int] = (),
    spare: Sequence[str] = (),
) -> None:
    """A table for people.

    `numbers` names the columns that are aligned to the right, `spare` those that a narrow screen does without, first
    the first; `widths` is how narrow each column may get.
    """
    cells = [[cell if isinstance(cell, Text) else Text(text(cell)) for cell in row] for row in rows]
    left_out = _left_out(columns, cells, spare)
    shown = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for place, name in enumerate(columns):
        if name not in left_out:
            is_number = name in numbers
            side: JustifyMethod = "right" if is_number else "left"
            least = widths[place] if widths else None
            shown.add_column(Text(printable(name)), justify=side, overflow="fold", no_wrap=is_number, min_width=least)
    for row in cells:
        shown.add_row(*(cell for cell, name in zip(row, columns, strict=True) if name not in left_out))
    out.print(shown)


def _left_out(columns: Sequence[str], cells: Sequence[Sequence[Text]], spare: Sequence[str]) -> set[str]:
    needed = [
        max(cell_len(name), *(cell_len(row[place].plain) for row in cells), 0) for place, name in enumerate(columns)
    ]
    excess = sum(needed) + GAP * (len(columns) - 1) - out.width
    left_out: set[str] = set()
    for name in spare:
        if excess > 0:
            left_out.add(name)
            excess -= needed[columns.index(name)] + GAP
    return left_out


def lines(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    numbers: Sequence[str] = (),
    below: Sequence[Sequence[str]] = (),
) -> None:
    """A table whose rows are one line each, however long; `below` are notes to each row, on lines of their own."""
    cells = [
        [printable(name) for name in columns],
        *([text(cell).replace("\n", "\\n") for cell in row] for row in rows),
    ]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    for number, row in enumerate(cells):
        padded = [
            " " * (width - cell_len(cell)) + cell if name in numbers else cell + " " * (width - cell_len(cell))
            for cell, width, name in zip(row, widths, columns, strict=True)
        ]
        say(((" " * GAP).join(padded).rstrip(), "" if number else "dim"))
        for note in below[number - 1] if below and number else ():
            out.print(Padding(Text.assemble(("! ", "yellow"), printable(note)), (0, 0, 0, 2), expand=False))


def say(*parts: str | tuple[str, str]) -> None:
    """A line for people on stdout: texts, or texts with a style."""
    out.print(Text.assemble(*parts), soft_wrap=True)


def text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}" + (f".{value.microsecond:06d}".rstrip("0") if value.microsecond else "")
    if isinstance(value, bytes):
        value = value[:200].decode("utf-8", "backslashreplace")
    return printable(str(value))


def printable(words: str) -> str:
    """Text with what is not printable spelt out: what an event holds must not drive or mislead the reader's terminal.

    That is C0 and C1 control characters, and those that turn the direction of writing or cannot be seen.
    """
    return "".join(c if c.isprintable() or c == "\n" else _spelt_out(ord(c)) for c in words)


def _spelt_out(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def moment(micros: int | None) -> str:
    if micros is None:
        return ""
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros):%Y-%m-%d %H:%M:%S}"


def bar(share: float, width: int = 20) -> Text:
    """A horizontal bar, full at 1."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    blocks = "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
    return Text(blocks or "▏", style="cyan")


def columns_chart(values: Sequence[int], height: int = 6) -> str:
    """A small chart of columns, as lines of text."""
    top = max(values, default=0) or 1
    lines = []
    for row in range(height - 1, -1, -1):
        cells = (max(0, min(8, round((value / top * height - row) * 8))) for value in values)
        lines.append("".join(_BARS[cell] * 2 for cell in cells))
    return "\n".join(lines)


@contextmanager
def progress() -> Iterator[Any]:
    """Progress bars on stderr; yields `report(step, done, total)`."""
    from rich.progress import (  # noqa: PLC0415 - takes its time to load, and most commands show none
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    steps: dict[str, Any] = {}
    words = (
        SpinnerColumn(),
        TextColumn("{task.description:10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bars = Progress(*words, console=talk, transient=False)

    def report(step: str, done: int, total: int) -> None:
        bars.start()  # with the first step: a run without any leaves no empty line
        if step not in steps:
            steps[step] = bars.add_task(step, total=total)
        bars.update(steps[step], completed=done, total=total)

    try:
        yield report
    finally:
        if steps:
            bars.stop()


def pairs(values: Mapping[str, Any]) -> None:
    """Names and values, one per line."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="dim")
    shown.add_column(overflow="fold")
    for name, value in values.items():
        shown.add_row(Text(printable(name)), value if isinstance(value, Text) else Text(text(value)))
    out.print(shown)
