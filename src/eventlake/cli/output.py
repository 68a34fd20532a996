"""How commands speak: data on stdout, talk on stderr, JSON for scripts."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from rich.console import Console, JustifyMethod
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

# No markup: names of folders and events may hold square brackets.
out = Console(highlight=False, markup=False)
if not out.is_terminal and "COLUMNS" not in os.environ:
    out.width = 10_000  # a pipe has no width: a folded name could not be searched for
talk = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=str)
_BARS = " ▁▂▃▄▅▆▇█"


def print_json(value: Any) -> None:
    """One JSON value on a line of its own."""
    sys.stdout.write(_encoder.encode(value).decode() + "\n")


def table(
    title: str | None, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, numbers: Sequence[str] = ()
) -> None:
    """A table for people; `numbers` names the columns that are aligned to the right."""
    shown = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for name in columns:
        is_number = name in numbers
        side: JustifyMethod = "right" if is_number else "left"
        shown.add_column(Text(printable(name)), justify=side, overflow="fold", no_wrap=is_number)
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(text(cell)) for cell in row))
    out.print(shown)


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
    """Text with its control characters spelt out: what an event holds must not drive the reader's terminal."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in words)


def moment(micros: int | None) -> str:
    if micros is None:
        return ""
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros):%Y-%m-%d %H:%M:%S}"


def size(number: int) -> str:
    amount = float(number)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


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
    steps: dict[str, Any] = {}
    words = (
        SpinnerColumn(),
        TextColumn("{task.description:10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*words, console=talk, transient=False) as bars:

        def report(step: str, done: int, total: int) -> None:
            if step not in steps:
                steps[step] = bars.add_task(step, total=total)
            bars.update(steps[step], completed=done, total=total)

        yield report


def pairs(values: Mapping[str, Any]) -> None:
    """Names and values, one per line."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="dim")
    shown.add_column(overflow="fold")
    for name, value in values.items():
        shown.add_row(name, value if isinstance(value, Text) else Text(text(value)))
    out.print(shown)
