"""What results of tasks must look like, whoever wrote them: they come through a folder that others may write to.

A result tells the driver which files to move, which tables to make and what to enter in the ledger. So each is held
against what was asked: paths are in the run's staging folder or where the lake's layout puts them, names are names that
tasks make, numbers are numbers that the ledger can hold. Whether the counts are right is for the books to tell.

Every function gives what cannot be true of a result, or None.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ParamSpec

from eventlake.lake.dialects import Dialect
from eventlake.lake.ids import Share
from eventlake.lake.parquet import DataFile
from eventlake.lake.segments import unpacked
from eventlake.tasks.counts import largest
from eventlake.tasks.dedupe import DedupeContext, DedupeResult
from eventlake.tasks.examine import Difference, ExamineContext, FileSeen, IndexSeen, Nameless, Suspect, TableFile
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.policies import BLOCKED_FOR
from eventlake.tasks.publish import PublishContext, Published, TableShare
from eventlake.tasks.reindex import ReindexContext, Unindexed
from eventlake.tasks.staged import RawFile, StageContext, StageResult

P = ParamSpec("P")

_LARGEST = (1 << 63) - 1  # that a database holds
_CHECKSUMS = 1 << 128
_DIGEST = re.compile(r"[0-9a-f]{32}")
_NAME = re.compile(r"[a-z0-9_]+")  # of a table or a column
_STAGED = re.compile(r"[a-z]+-[0-9a-f]{32}(\.parquet)?")
_DATA = re.compile(r"data/[0-9a-f]{32}/(?P<name>(?P<run>[0-9]+)-[0-9a-f]{16}-[0-9]{1,9}\.parquet)")


def is_staged(path: str, folder: str) -> bool:
    """Whether a path is one that tasks of the run with this folder give to what they write between the steps."""
    place, _, name = path.rpartition("/")
    return place == folder and _STAGED.fullmatch(name) is not None


def is_data_file(file: DataFile, run_id: str, dialect: Dialect) -> bool:
    """Whether a data file is in the run's staging folder, and will be where the layout puts what it holds."""
    prefix = f"{dialect.folders.of_run(run_id)}/"
    written = _DATA.fullmatch(file.written.removeprefix(prefix)) if file.written.startswith(prefix) else None
    if written is None or written["run"] != run_id:
        return False
    layout = dialect.date_partition
    number = file.first_received // layout.width
    try:
        values, folder = layout.values(number), layout.folder(number)
    except OverflowError:  # no such year
        return False
    place = f"{dialect.location(file.table_key)}/{folder}/{written['name']}"
    return file.partition == values and file.path == place and file.first_received <= file.last_received


def _first(problems: Callable[P, Iterator[str]]) -> Callable[P, str | None]:
    def first(*args: P.args, **kwargs: P.kwargs) -> str | None:
        return next(problems(*args, **kwargs), None)

    return first


@_first
def stage(context: StageContext, files: Sequence[RawFile], result: StageResult) -> Iterator[str]:
    if sorted(count.file for count in result.files) != sorted(files):
        yield "it is not about the raw files that were asked for"
    for count in result.files:
        yield from _counts(
            count.lines, count.staged, count.quarantined, count.blocked, count.suppressed, count.violated, count.changed
        )
        yield from _instants(count.first_received, count.last_received, count.first_blocked, count.last_blocked)
        if count.digest and not _DIGEST.fullmatch(count.digest):
            yield f"no digest: {count.digest[:100]!r}"
    try:
        tables = unpacked(result.tables).tables
    except ValueError as error:
        yield f"no segments: {error}"
        return
    if not result.news.keys() <= set(tables):
        yield "it tells of tables of which it has no rows"
    yield from _names((*tables, *result.refused_tables), context.dialect.longest_table)
    yield from _counts(*result.refused_tables.values(), *result.blocked_by.values())
    if not result.blocked_by.keys() <= BLOCKED_FOR:
        yield "lines were left out for a reason that there is not"
    for table in result.news.values():
        yield from _names(table.evidence, context.dialect.longest_column)
        yield from _counts(*(sighting.values for sighting in table.evidence.values()))
        yield from _counts(*(tally.values for sighting in table.evidence.values() for tally in sighting.tallies))
        yield from _instants(*table.hours)
    others = (result.quarantine, result.withheld, result.violations, *result.forwarded.values())
    paths = [result.staged, *(path for path in others if path is not None)]
    if not context.rules and (result.violations or result.forwarded):
        yield "it tells of a plan that there is not"
    for ids in result.id_segments:
        paths.append(ids.path)
        yield from _counts(*ids[1:])
    yield from _staged(paths, context.folder)


@_first
def dedupe(context: DedupeContext, _: Share, result: DedupeResult) -> Iterator[str]:
    paths = [path for path in (result.dropped, result.carried, result.removed) if path is not None]
    if result.new_ids is not None:
        paths.append(result.new_ids.path)
        yield from _counts(result.new_ids.messages)
        yield from _checksums(result.new_ids.checksum)
    yield from _staged(paths, context.folder)
    try:
        yield from _counts(largest(result.files), largest(result.routes))
    except ValueError as error:
        yield f"no counts: {error}"
    yield from _counts(*result.carried_routes.values(), *result.removed_routes.values())


@_first
def publish(context: PublishContext, shares: Sequence[TableShare], result: Sequence[Published]) -> Iterator[str]:
    if [part.table_key for part in result] != [share.table_key for share in shares]:
        yield "it is not about the tables that were asked for"
    for part in result:
        yield from _counts(part.rows, *part.rescued.values())
        yield from _names(part.rescued, context.dialect.longest_column)
        wanted = [(file, part.table_key, "") for file in part.files]
        wanted += [(file, context.dialect.discards or "", part.table_key) for file in part.discards]
        for file, table_key, owner in wanted:
            yield from _counts(file.rows, file.size)
            yield from _instants(file.first_received, file.last_received)
            is_asked_for = (file.table_key, file.owner) == (table_key, owner)
            if not is_asked_for or not is_data_file(file, context.run_id, context.dialect):
                yield f"no data file of this run: {file.written[:200]!r} for {file.path[:200]!r}"
            if not _DIGEST.fullmatch(file.digest):
                yield f"no digest: {file.digest[:100]!r}"


@_first
def examine_raw(_: ExamineContext, paths: Sequence[str], result: Sequence[FileSeen]) -> Iterator[str]:
    yield from _seen(paths, result)


@_first
def examine_data(_: ExamineContext, files: Sequence[TableFile], result: Sequence[FileSeen]) -> Iterator[str]:
    yield from _seen([file.path for file in files], result)


def _seen(paths: Sequence[str], result: Sequence[FileSeen]) -> Iterator[str]:
    if [file.path for file in result] != list(paths):
        yield "it is not about the files that were asked for"
    for file in result:
        if file.messages is not None:
            yield from _counts(file.messages.rows)
            yield from _checksums(file.messages.checksum)


@_first
def reindex(context: ReindexContext, _: Sequence[Unindexed], result: NewIds | None) -> Iterator[str]:
    if result is not None:
        yield from _staged([result.path], context.folder)
        yield from _counts(result.messages)
        yield from _checksums(result.checksum)


@_first
def examine_index(_: ExamineContext, __: str, result: IndexSeen) -> Iterator[str]:
    for partition in result.partitions or ():
        yield from _counts(partition.messages.rows)
        yield from _checksums(partition.messages.checksum)


@_first
def difference(_: ExamineContext, __: Suspect, result: Difference) -> Iterator[str]:
    yield from _counts(result.missing, result.extra)


@_first
def names_of(_: ExamineContext, nameless: Nameless, result: dict[bytes, str]) -> Iterator[str]:
    if not result.keys() <= nameless.hashes:
        yield "it is not about the messages that were asked for"


def _staged(paths: Iterable[str], folder: str) -> Iterator[str]:
    for path in paths:
        if not is_staged(path, folder):
            yield f"no file of this run's staging folder: {path[:200]!r}"


def _names(names: Iterable[str], longest: int) -> Iterator[str]:
    for name in names:
        if len(name) > longest or not _NAME.fullmatch(name):
            yield f"no name that a table or column gets: {name[:200]!r}"


def _counts(*numbers: int) -> Iterator[str]:
    for number in numbers:
        if not 0 <= number <= _LARGEST:
            yield f"no count: {number}"


def _instants(*instants: int | None) -> Iterator[str]:
    for instant in instants:
        if instant is not None and abs(instant) > _LARGEST:
            yield f"no instant: {instant}"


def _checksums(*checksums: int) -> Iterator[str]:
    for checksum in checksums:
        if not 0 <= checksum < _CHECKSUMS:
            yield f"no checksum: {checksum}"
