"""What a run did, for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventlake.sync.books import Books


@dataclass(frozen=True)
class TableReport:
    """What a run did to one table; `line` is its line of report.json."""

    line: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.line["table_name"])

    @property
    def rows(self) -> int:
        """That were added."""
        return int(self.line["row_count"])

    @property
    def new_columns(self) -> dict[str, str]:
        """The types of the columns that it got, by name."""
        return {column["name"]: column["type"] for column in self.line.get("new_columns", ())}


@dataclass(frozen=True)
class Report:
    """What a run did; `lines` are those of report.json, which docs/reports.md describes."""

    connection: str
    lines: Sequence[Mapping[str, Any]]

    @property
    def run_id(self) -> str:
        return str(self.lines[0]["run_id"])

    @property
    def kind(self) -> str:
        return str(self.lines[0]["kind"])

    @property
    def books(self) -> Books:
        books = self.lines[0]["books"]
        return Books(**{**books, "checksum": int(books["checksum"], 16)})

    @property
    def rows(self) -> int:
        """That were added to the lake."""
        return self.books.loaded

    @property
    def tables(self) -> list[TableReport]:
        return [TableReport(line) for line in self.lines[1:]]

    @property
    def notices(self) -> list[str]:
        """What people would not expect."""
        return list(self.lines[0].get("notices", ()))

    @property
    def failed_files(self) -> dict[str, str]:
        """Raw files that could not be read, and why; the next sync tries again."""
        return {failed["file"]: failed["error"] for failed in self.lines[0].get("failed_files", ())}
