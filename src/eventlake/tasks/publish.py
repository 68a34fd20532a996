"""Job 2: staged columns become the rows of tables.

A task takes a share of the tables: drops the rows that lost, casts every column to its planned type, rescues what
does not fit, and writes Parquet. Rows are handled some ten thousand at a time, so memory stays bounded.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, count, islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from eventlake.lake.dialects import Dialect
from eventlake.lake.discards import as_table
from eventlake.lake.parquet import DataFile, FileSizes, PartitionedWriter
from eventlake.lake.routes import Route
from eventlake.lake.segments import Segment, segments_of
from eventlake.lake.staged_rows import StagedRows, joined
from eventlake.lake.staging import read_rows
from eventlake.schema import rescue
from eventlake.schema.cast import NO_ROOM, value_text
from eventlake.schema.cells import Cells, no_cells, one_of
from eventlake.schema.claims import ColumnRules
from eventlake.schema.evolve import Column
from eventlake.schema.kinds import Kind, Place, Typed
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.ranked import Candidate, highest_ranked
from eventlake.schema.rescue import Rescued
from eventlake.schema.types import ColumnType
from eventlake.storage.base import Part, Storage
from eventlake.tasks.carried_over import carried_rows
from eventlake.tasks.dropped import Dropped
from eventlake.tasks.memory import give_back, without_gc
from eventlake.tasks.rescues import Rescues


@dataclass(frozen=True)
class PublishSizes:
    """How much a publish task holds at once."""

    rows_at_once: int = 65_536
    bytes_at_once: int = 96 << 20  # fewer rows, if they are large
    cells_at_once: int = 16 << 20  # fewer rows, if the table has many columns
    carried_at_once: int = 4096  # rows of an old data file
    bytes_fetched_at_once: int = 16 << 20  # of staged files
    files: FileSizes = field(default_factory=FileSizes)


@dataclass(frozen=True)
class PublishContext:
    """What all publish tasks of a run share."""

    run_id: str
    storage: Storage
    dialect: Dialect
    staged_paths: tuple[str, ...]
    dropped: tuple[str, ...]
    carried: tuple[str, ...]
    keep_rounded: bool
    sizes: PublishSizes = field(default_factory=PublishSizes)


class TableShare(NamedTuple):
    """Some rows of one table."""

    table_key: str
    columns: tuple[Column, ...]
    segments: bytes  # where they are, packed: see `lake.segments`
    carry_from: tuple[str, ...] = ()  # data files with rows that only the lake has
    carried_routes: tuple[Route, ...] = ()  # that these rows' messages may take
    rescued_at: int | None = None  # position of `_rescued_data` in the catalog, if the table has it
    is_in_scope: bool = True  # of a replay; else it gets the rows of new messages only


@dataclass
class Published:
    table_key: str
    files: list[DataFile] = field(default_factory=list)
    rows: int = 0
    rescued: Counter[str] = field(default_factory=Counter)  # by column
    discards: list[DataFile] = field(default_factory=list)  # with a row for each of these, if the dialect has such


@without_gc
def publish(context: PublishContext, shares: list[TableShare]) -> list[Published]:
    """Publish some tables, or parts of tables. Every attempt writes files of its own."""
    give_back()
    dropped = Dropped(context.storage, context.dropped)
    attempt = uuid.uuid4().hex
    folder = f"{context.dialect.folders.of_run(context.run_id)}/data/{attempt}"
    # Two tasks with one name would be one file too few: of 16 digits, that does not happen.
    names_of_files = (f"{context.run_id}-{attempt[:16]}-{number}.parquet" for number in count(1))
    segments = [segments_of(share.segments) for share in shares]
    pieces = _pieces(context, chain.from_iterable(segments))
    published = []
    with context.storage.putting() as put:
        for share, own in zip(shares, segments, strict=True):
            place, sizes = (folder, names_of_files), context.sizes.files
            writer = PartitionedWriter(put, context.dialect, share.table_key, *place, sizes=sizes)
            discards = PartitionedWriter(
                put, context.dialect, context.dialect.discards or "", *place, owner=share.table_key, sizes=sizes
            )
            staged = zip(own, pieces, strict=False)
            published.append(_publish_table(context, share, staged, dropped, writer, discards))
    return published


def _pieces(context: PublishContext, segments: Iterable[Segment]) -> Iterator[pa.Buffer]:
    """The bytes of segments, in their order, many of them fetched at once."""
    paths = context.staged_paths
    parts = (Part(paths[segment.file], segment.offset, segment.size) for segment in segments)
    fetched = map(context.storage.read_parts, _batches(parts, context.sizes.bytes_fetched_at_once))
    return chain.from_iterable(context.storage.ahead(fetched))


def _batches(parts: Iterable[Part], bytes_at_once: int) -> Iterator[list[Part]]:
    batch: list[Part] = []
    size = 0
    for part in parts:
        batch.append(part)
        size += part.size
        if size >= bytes_at_once:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _publish_table(
    context: PublishContext,
    share: TableShare,
    staged: Iterable[tuple[Segment, pa.Buffer]],
    dropped: Dropped,
    writer: PartitionedWriter,
    discards: PartitionedWriter,
) -> Published:
    done = Published(share.table_key)
    for rows in _groups(_kept_rows(context, share, staged, dropped), context.sizes):
        done.rows += len(rows)
        rescued = Rescues(done.rescued)
        for table in _typed(rows, share, context, rescued):
            writer.write(table)
            del table  # before the next is made
        if rescued and context.dialect.discards:
            name, constants = context.dialect.table_name(share.table_key), context.dialect.constants(context.run_id)
            discards.write(as_table(rescued.discarded(rows.received), name, constants))
        if len(rows) >= context.sizes.rows_at_once:  # of fewer rows not much is left behind
            give_back()
    done.files, done.discards = writer.close(), discards.close()
    return done


def _kept_rows(
    context: PublishContext, share: TableShare, staged: Iterable[tuple[Segment, pa.Buffer]], dropped: Dropped
) -> Iterator[StagedRows]:
    for segment, piece in staged:
        rows = read_rows(piece, segment, share.table_key)
        kept = dropped.kept(segment.file, segment.first_message, segment.rows, in_scope=share.is_in_scope)
        if kept is not None:
            rows = rows.kept(kept)
        if len(rows):
            yield rows
    yield from carried_rows(
        context.storage,
        context.dialect.columns(share.table_key),
        share.carried_routes,
        share.carry_from,
        share.columns,
        context.carried,
        at_once=context.sizes.carried_at_once,
    )


def _groups(parts: Iterator[StagedRows], sizes: PublishSizes) -> Iterator[StagedRows]:
    """Rows by some ten thousand, or fewer if they are large."""
    group: list[StagedRows] = []
    rows = size = 0
    for part in parts:
        group.append(part)
        rows += len(part)
        size += part.nbytes
        if rows >= sizes.rows_at_once or size >= sizes.bytes_at_once:
            whole, group, rows, size = joined(group), [], 0, 0
            yield whole
    if group:
        yield joined(group)


def _typed(rows: StagedRows, share: TableShare, context: PublishContext, rescued: Rescues) -> Iterator[pa.Table]:
    """Staged rows in the table's columns and their order, in the order in which they were received, some at a time.

    They have `_rescued_data` if the table has it, or if it is needed now.
    """
    rules = context.dialect.columns(share.table_key)
    columns = dict(_columns(rows, share, context, rescued))
    if rows.rescued is not None:
        rescued.add_staged(rows.rescued, rules)
    if rescued and context.dialect.discards:
        rescued.note_ids([columns[name] for name in ("id", rules.message_column) if name in columns], len(rows))
    if rescued or share.rescued_at is not None:
        at = len(columns) if share.rescued_at is None else share.rescued_at
        before, after = (dict(islice(columns.items(), *part)) for part in ((0, at), (at, None)))
        columns = {**before, RESCUED_COLUMN: rescued.cells(), **after}
    order = np.argsort(rows.received, kind="stable")
    if (order[1:] < order[:-1]).any():
        ranks = np.argsort(order)
        for name in columns:
            columns[name] = columns[name].placed(ranks)
    at_once = max(1, context.sizes.cells_at_once // len(columns))
    for start in range(0, len(rows), at_once):
        stop = min(len(rows), start + at_once)
        yield pa.table({name: cells.spread(start, stop) for name, cells in columns.items()})


def _columns(
    rows: StagedRows, share: TableShare, context: PublishContext, rescued: Rescues
) -> Iterator[tuple[str, Cells]]:
    """The columns of the table. What does not fit is rescued.

    Cells are let go of as they are taken, for they are as large as what is made of them.
    """
    rules, constants = context.dialect.columns(share.table_key), context.dialect.constants(context.run_id)
    places: dict[str, list[Place]] = {}
    for place in rows.columns:
        places.setdefault(place.column, []).append(place)
    for column in share.columns:
        found = [Candidate(place, rows.columns.pop(place)) for place in places.pop(column.name, [])]
        chosen, beaten = highest_ranked(found, rules, column.name, len(rows))
        for row, entry in beaten:
            rescued.add(row, entry, column.name)
        made = [_cells(candidate, column, share, context, rescued) for candidate in chosen]
        if column.name == "received_at":  # also where the event does not tell it: see the stage
            made = [Cells(pa.array(rows.received).cast(ColumnType.TIMESTAMP.arrow))]
        elif column.name in constants:
            made = [_repeated(constants[column.name], column, rules, len(rows))]
        yield column.name, one_of(made) if made else no_cells(column.type.arrow)
    for name, refused in places.items():  # columns past the table's limit
        for place in refused:
            cells = rows.columns[place]
            for number, value in enumerate(cells.values.to_pylist()):
                if value is not None:
                    entry = Rescued(place.pointer, value_text(place.kind, value), NO_ROOM, _unlike(rules, place))
                    rescued.add(cells.row(number), entry, name)


def _cells(found: Candidate, column: Column, share: TableShare, context: PublishContext, rescued: Rescues) -> Cells:
    """Values of one place in the type of their column."""
    place, (values, rows) = found
    make = context.dialect.maker(share.table_key, column.name)
    if make and place.kind is Kind.TEXT:
        texts = values.dictionary_encode()
        values = pa.array([make(text) for text in texts.dictionary.to_pylist()], pa.string()).take(texts.indices)
    made = context.dialect.casts.cast(Typed(place.kind, values), column.type, keep_rounded=context.keep_rounded)
    rules = context.dialect.columns(share.table_key)
    for misfit in made.misfits:
        entry = Rescued(place.pointer, misfit.json_text, misfit.reason, _unlike(rules, place))
        rescued.add(found.cells.row(misfit.row), entry, column.name)
    return Cells(made.values, rows)


def _unlike(rules: ColumnRules, place: Place) -> str:
    """The column of a place, if it is not called as one would think: it may have several, or asked for its name."""
    path = tuple(rescue.keys_of(place.pointer))
    return "" if path and rules.column_of(path) == place.column else place.column


def _repeated(value: Any, column: Column, rules: ColumnRules, count: int) -> Cells:
    """The same value in all rows; of a table that was taken over, the column may be of a type that does not hold it."""
    wanted = rules.fixed[column.name]
    if column.type is not wanted and column.type is not ColumnType.STRING:
        return no_cells(column.type.arrow)
    as_sent = pa.int64() if wanted is ColumnType.TIMESTAMP else wanted.arrow
    return Cells(pa.repeat(pa.scalar(value, as_sent), count).cast(wanted.arrow).cast(column.type.arrow))
