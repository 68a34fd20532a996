"""Does the lake hold what the ledger says, and is it still backed by the raw archive?

Every raw file and every data file is read and compared with what it was when it was written; the message ids of
every partition are compared with the index; catalog, reports and books are compared with the files. The reading is
spread over Spark. What differs is named: which file, which table and hour, how many rows, which messages.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from eventlake.commit.ownership import is_our_file, refuse_unknown
from eventlake.control.conflicts import check_dialect
from eventlake.control.connections import Connection
from eventlake.control.leases import Lane
from eventlake.control.ledger import IndexFile
from eventlake.errors import CancelledError, EventLakeError
from eventlake.lake import ids
from eventlake.lake.routes import Route
from eventlake.reports import report, words
from eventlake.runners.base import Progress, Runner, no_progress
from eventlake.tasks import examine
from eventlake.tasks.examine import ExamineContext, Messages, Nameless, Suspect, TableFile
from eventlake.workspace import Lake, Workspace

Task = TypeVar("Task")
Result = TypeVar("Result")


class TablePartition(NamedTuple):
    """A partition of a table, by its number since 1970."""

    table_key: str
    number: int


class Finding(NamedTuple):
    """Something that is not as it should be; `place` is what a replay would write anew."""

    kind: str
    where: str
    detail: str
    place: TablePartition | None = None


def verify(
    workspace: Workspace, connection: Connection, runner: Runner, progress: Progress = no_progress
) -> list[Finding]:
    """Everything that differs for one connection; an empty list is good news. No run goes on meanwhile."""
    lake = workspace.lake(connection.lake)
    with lake.leases.held(connection.source.id, Lane.REPLAY), lake.leases.held(connection.source.id):
        check_dialect(connection, lake.settings.dialect)
        refuse_unknown(lake, connection)
        checks = _Checks(lake, connection, runner, progress)
        found = (*checks.raw_files(), *checks.data_files(), *checks.partitions(), *checks.messages(), *checks.runs())
    return list(found)


def verified_each(
    workspace: Workspace, names: Sequence[str], attempt: Callable[[Connection], list[Finding]]
) -> dict[str, list[Finding]]:
    """What differs for each of some connections, or for all; one that cannot be verified does not hold up the others.

    It is told as `not_verified`, with the reason. If that is so of all of them, the first reason is raised.
    """
    found: dict[str, list[Finding]] = {}
    reasons: list[EventLakeError] = []

    def tried(name: str, where: str, what: Callable[[], list[Finding]]) -> None:
        try:
            found[name] = what()
        except CancelledError:
            raise
        except EventLakeError as error:
            reasons.append(error)
            found[name] = [Finding("not_verified", where, f"{error.problem}. {error.fix}")]

    def of_connection(connection: Connection) -> list[Finding]:
        refuse_unknown(workspace.lake(connection.lake))  # also of sources that the database does not know
        return attempt(connection)

    connections = workspace.connections.meant(names)
    for one in connections:
        tried(one.name, f"lake {one.lake}", partial(of_connection, one))
    for name in set(workspace.named_lakes) - {one.lake for one in connections} if not names else ():
        tried(f"lake {name}", f"lake {name}", partial(_nothing_unknown, workspace, name))
    if reasons and len(reasons) == len(found):
        raise reasons[0]
    return found


def _nothing_unknown(workspace: Workspace, name: str) -> list[Finding]:
    refuse_unknown(workspace.lake(name))
    return []


class _Checks:
    def __init__(self, lake: Lake, connection: Connection, runner: Runner, progress: Progress) -> None:
        self._lake = lake
        self._connection = connection
        self._runner = runner
        self._progress = progress
        self._context = ExamineContext(lake.storage, lake.whole_archive(connection.source.id), connection.dialect)
        self._files = lake.ledger.data_files(connection.source.id)
        self._raw = lake.ledger.raw_files(connection.source.id)
        self._data_seen: dict[str, Messages] = {}
        self._tables = {table.table_key: table for table in lake.catalog.tables(connection.source.id)}
        self._routes = connection.dialect.routes(frozenset(self._tables))

    def raw_files(self) -> Iterator[Finding]:
        """Raw files that vanished or changed after they were loaded, and entries that do not add up."""
        seen = {
            file.path: file
            for part in self._spread("raw files", examine.examine_raw, _parts(sorted(self._raw)))
            for file in part
        }
        for path, loaded in sorted(self._raw.items()):
            if seen[path].digest is None:
                yield Finding(
                    "raw_file_gone", path, f"{words.either(loaded.loaded, 'row was', 'rows were')} loaded from it"
                )
            elif seen[path].digest != loaded.digest:
                yield Finding("raw_file_changed", path, "its content is not what it was when it was loaded")
            rest = loaded.duplicates + loaded.suppressed + loaded.blocked + loaded.quarantined
            if loaded.lines != loaded.loaded + rest:
                yield Finding(
                    "books", path, f"{loaded.lines} lines, but {loaded.loaded} loaded and {rest} accounted for"
                )

    def data_files(self) -> Iterator[Finding]:
        """Data files that vanished, changed, or are not ours."""
        wanted = _parts([TableFile(file.path, file.table_key) for file in self._files])
        seen = {file.path: file for part in self._spread("data files", examine.examine_data, wanted) for file in part}
        for file in self._files:
            now = seen[file.path]
            place = TablePartition(file.owner or file.table_key, file.first_received // self._context.partition_width)
            if now.digest is None:
                yield Finding("data_file_gone", file.path, words.count(file.rows, "row"), place)
            elif now.messages is None:
                yield Finding("data_file_broken", file.path, str(now.problem), place)
            elif now.digest != file.digest:
                rows = f"{words.count(file.rows, 'row')} when it was written, {now.messages.rows:,} now"
                yield Finding("data_file_changed", file.path, rows, place)
            self._data_seen[file.path] = now.messages or Messages()
        is_adopted = bool(self._lake.runs.adoptions(self._connection.source.id))
        for stored in self._lake.storage.files(self._connection.dialect.data_folder):
            if stored.path not in self._data_seen and not (is_adopted and not is_our_file(stored.path)):
                yield Finding("foreign_file", stored.path, "not written by a run; readers that list the folder see it")

    def partitions(self) -> Iterator[Finding]:
        """Tables and partitions that the catalog lacks, and partitions that it has without data."""
        dialect = self._connection.dialect
        for name in sorted({file.table_key for file in self._files} - self._tables.keys()):
            rows = sum(file.rows for file in self._files if file.table_key == name)
            detail = f"not in the catalog, though it has {words.count(rows, 'row')}"
            yield Finding("table_missing", f"{dialect.database}.{dialect.table_name(name)}", detail)
        for table in self._tables.values():
            known = set(self._lake.catalog.partitions(table.database, table.name))
            of_table = (file for file in self._files if file.table_key == table.table_key)
            filled = {tuple(file.partition) for file in of_table if file.partition}
            for values in sorted(filled - known):
                yield Finding("partition_missing", f"{table.database}.{table.name}", "/".join(values))
            # Values may have found their columns since, or their table was dropped.
            for values in sorted(known - filled) if table.table_key != dialect.discards else ():
                yield Finding("partition_empty", f"{table.database}.{table.name}", "/".join(values))
        for name, problem in self._lake.catalog.not_shown(self._connection.source.id):
            yield Finding(f"not_in_{self._lake.settings.catalog.kind}", name, problem)

    def messages(self) -> Iterator[Finding]:
        """Partitions whose rows are not those of the index, and an index that is not what was loaded."""
        files = self._lake.ledger.index_files(self._connection.source.id)
        expected: dict[tuple[str, int], Messages] = {}
        by_hash = {ids.route_hash(route): route for route in self._routes}
        there = []
        all_seen = self._spread("index", examine.examine_index, [file.path for file in files])
        for file, seen in zip(files, all_seen, strict=True):
            if seen.partitions is None or seen.whole is None:
                kind = "index_file_damaged" if seen.problem else "index_file_gone"
                yield Finding(kind, file.path, "copies of its messages would not be noticed")
                continue
            there.append(file.path)
            for route, number, part in seen.partitions:
                for table_key in by_hash.get(route, ()):
                    key = table_key, number
                    expected[key] = expected.get(key, Messages()).plus(part)
            if seen.whole != Messages(file.messages, int(file.checksum, 16)):
                detail = f"{words.count(file.messages, 'message')} when it was written, {seen.whole.rows:,} now"
                yield Finding("index_file_changed", file.path, detail)
        yield from self._books(files)
        yield from self._suspects(expected, tuple(there))

    def _books(self, index: Sequence[IndexFile]) -> Iterator[Finding]:
        """Runs whose report does not tell what they added to the index."""
        added: dict[str, Messages] = {}
        for file in index:
            added[file.run_id] = added.get(file.run_id, Messages()).plus(
                Messages(file.messages, int(file.checksum, 16))
            )
        for run in self._lake.runs.latest(None, self._connection.source.id):
            # What a drop left of the index is from many runs.
            if run.report and run.run_id in added and run.kind != "drop":
                books = run.report[0]["books"]
                reported = Messages(books["loaded"], int(books["checksum"], 16))
                if again := run.report[0].get("reindexed"):
                    reported = reported.plus(Messages(again["messages"], int(again["checksum"], 16)))
                if reported != added[run.run_id]:
                    loaded, indexed = words.count(reported.rows, "row"), added[run.run_id].rows
                    detail = f"{loaded} loaded by the report, {indexed:,} in the index"
                    yield Finding("books", f"run {run.run_id}", detail)

    def _suspects(self, expected: dict[tuple[str, int], Messages], index: tuple[str, ...]) -> Iterator[Finding]:
        width = self._context.partition_width
        files: dict[tuple[str, int], list[str]] = {}
        found: dict[tuple[str, int], Messages] = {}
        for file in self._files:
            if file.owner:
                continue  # values, not messages
            key = file.table_key, file.first_received // width
            found[key] = found.get(key, Messages()).plus(self._data_seen[file.path])
            if self._data_seen[file.path].rows:
                files.setdefault(key, []).append(file.path)
        wrong = sorted(key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key))
        suspects = [
            Suspect(key, number, tuple(files.get((key, number), ())), index, self._routes_to(key))
            for key, number in wrong
            if key in self._tables
        ]
        apart = self._spread("compare", examine.difference, suspects)
        sent = self._names([digest for part in apart for digest in part.missing_hashes], suspects)
        for suspect, part in zip(suspects, apart, strict=True):
            table = self._tables[suspect.table_key]
            hours = self._connection.dialect.date_partition
            hour = "/".join(hours.values(suspect.number)) or hours.folder(suspect.number)
            detail = f"{words.count(part.missing, 'row')} missing, {part.extra:,} too many"
            if part.missing:
                missing = [sent.get(digest, f"hash {digest.hex()}") for digest in part.missing_hashes]
                detail += f"; missing messages: {_some(missing, part.missing)}"
            if part.extra:
                detail += f"; messages too many: {_some(part.extra_ids, part.extra)}"
            yield Finding(
                "rows",
                f"{table.database}.{table.name} {hour}",
                detail,
                TablePartition(suspect.table_key, suspect.number),
            )

    def _routes_to(self, table_key: str) -> tuple[Route, ...]:
        return tuple(sorted(route for route in self._routes if table_key in route))

    def _names(self, hashes: Sequence[bytes], suspects: Sequence[Suspect]) -> dict[bytes, str]:
        """The message ids that were sent for some hashes, as far as the raw archive still has them."""
        width = self._context.partition_width
        hours = {suspect.number for suspect in suspects}
        paths = [
            path
            for path, file in sorted(self._raw.items())
            if file.first_received is not None
            and file.last_received is not None
            and any(file.first_received // width <= hour <= file.last_received // width for hour in hours)
        ]
        tasks = [Nameless(frozenset(hashes), tuple(part)) for part in _parts(paths)] if hashes else []
        return dict(item for part in self._spread("names", examine.names_of, tasks) for item in part.items())

    def runs(self) -> Iterator[Finding]:
        """Runs whose report is gone or is not what the database has."""
        for run in self._lake.runs.latest(None, self._connection.source.id):
            if run.report:
                path = report.path(self._lake.folders, run.report[0])
                if self._lake.storage.stat(path) is None:
                    yield Finding("report_gone", path, "the report of a run")
                elif self._lake.storage.read(path) != report.encoded(run.report):
                    yield Finding("report_changed", path, "not what the run reported")

    def _spread(
        self, what: str, function: Callable[[ExamineContext, Task], Result], tasks: Sequence[Task]
    ) -> list[Result]:
        if not tasks:
            return []
        self._progress(what, 0, len(tasks))
        results = self._runner.run(function, self._context, tasks, lambda n: self._progress(what, n, len(tasks)))
        self._progress(what, len(tasks), len(tasks))
        return results


def _parts(items: Sequence[Task], size: int = 200) -> list[list[Task]]:
    return [list(items[start : start + size]) for start in range(0, len(items), size)]


def _some(message_ids: Sequence[str], count: int) -> str:
    more = count - len(message_ids)
    return ", ".join(message_ids) + (f" and {more} more" if more > 0 else "")
