"""The books of a run: every line that was read is accounted for, or nothing is published.

Lines are messages, and a message has a row in each table of its route: messages are counted by file and by route, rows
by table.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from eventlake.errors import InternalError
from eventlake.lake import ids
from eventlake.sync.dedupe import Kept
from eventlake.sync.stage import Staged
from eventlake.tasks.counts import Count
from eventlake.tasks.publish import Published
from eventlake.tasks.staged import RawFile


class Books(NamedTuple):
    """What became of some lines. `lines` is the sum of all the others but the checksum."""

    lines: int = 0
    loaded: int = 0
    duplicates: int = 0
    suppressed: int = 0
    blocked: int = 0
    quarantined: int = 0
    checksum: int = 0

    @property
    def balance(self) -> bool:
        return self.lines == self.loaded + self.duplicates + self.suppressed + self.blocked + self.quarantined

    def plus(self, other: "Books") -> "Books":
        return Books(
            self.lines + other.lines,
            self.loaded + other.loaded,
            self.duplicates + other.duplicates,
            self.suppressed + other.suppressed,
            self.blocked + other.blocked,
            self.quarantined + other.quarantined,
            ids.add_checksums(self.checksum, other.checksum),
        )

    def as_report(self) -> dict[str, int | str]:
        return {**self._asdict(), "checksum": f"{self.checksum:032x}"}


def total(parts: Iterable[Books]) -> Books:
    whole = Books()
    for part in parts:
        whole = whole.plus(part)
    return whole


class Accounts(NamedTuple):
    """The books of a run: by raw file, and by table."""

    files: dict[RawFile, Books]  # messages
    tables: dict[str, Count]  # rows
    written: dict[str, int]  # rows, by table

    @property
    def whole(self) -> Books:
        return total(self.files.values())


def close(staged: Staged, kept: Kept, published: Iterable[Published], *, has_discards: bool = False) -> Accounts:
    """Close the books. Raises InternalError unless lines, files and rows all add up, and with each other.

    Where a dialect has a table of discarded values, each value that was rescued has a row in it.
    """
    files = {}
    for count in staged.files:
        if count.error is None:
            rows = kept.files.get(count.file.number, Count())
            files[count.file] = Books(
                lines=count.lines,
                loaded=rows.loaded,
                duplicates=rows.duplicates,
                suppressed=count.suppressed,
                blocked=count.blocked,
                quarantined=count.quarantined,
                checksum=rows.checksum,
            )
    written: dict[str, int] = {}
    parts = list(published)
    for part in parts:
        written[part.table_key] = written.get(part.table_key, 0) + part.rows
    accounts = Accounts(files, kept.tables, written)
    wrong = [*_errors(accounts, kept), *(_discard_errors(parts) if has_discards else ())]
    if wrong:
        raise InternalError(
            "the books of this run do not balance, so nothing was published: " + "; ".join(wrong[:5]),
            fix="run it again; if it happens twice, report it with this message",
        )
    return accounts


def _discard_errors(published: Iterable[Published]) -> Iterator[str]:
    for part in published:
        rows = sum(file.rows for file in part.discards)
        if rows != part.rescued.total():
            yield f"table {part.table_key}: {part.rescued.total()} values rescued, but {rows} discards written"


def _errors(accounts: Accounts, kept: Kept) -> Iterator[str]:
    for file, books in accounts.files.items():
        if not books.balance:
            yield f"{file.path}: {books}"
    carried = kept.carried_tables
    for name in sorted(accounts.tables.keys() | accounts.written.keys() | carried.keys()):
        count, written = accounts.tables.get(name, Count()), accounts.written.get(name, 0)
        expected = count.loaded + count.rewritten + carried.get(name, 0)
        if written != expected:
            yield f"table {name}: {written} rows written, {expected} expected"
    by_file, by_route = accounts.whole, kept.messages
    if (by_file.loaded, by_file.duplicates, by_file.checksum) != (
        by_route.loaded,
        by_route.duplicates,
        by_route.checksum,
    ):
        yield f"files and tables disagree: {by_file} and {by_route}"
    if kept.indexed != (by_route.loaded, by_route.checksum):
        yield f"{by_route.loaded} messages loaded, but the index got {kept.indexed[0]}, or others"
