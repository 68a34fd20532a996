"""Job 2: staged columns become the rows of tables.

A task takes a share of the tables: drops the rows that lost, casts every column to its planned type, rescues what
does not fit, and writes Parquet. Rows are handled some ten thousand at a time, so memory stays bounded.
"""

import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from eventlake.lake.dialects import Dialect, Route
from eventlake.lake.layout import STAGE
from eventlake.lake.parquet import DataFile, FileSizes, PartitionedWriter
from eventlake.lake.staging import RECEIVED, RESCUED, Segment, place_of, read_segment
from eventlake.reading.exact_json import rescued_in
from eventlake.schema import names, rescue
from eventlake.schema.cast import NO_ROOM, cast, value_text
from eventlake.schema.evolve import Column
from eventlake.schema.kinds import Place, Typed, joined
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.rescue import Rescued
from eventlake.schema.types import ColumnType
from eventlake.storage.base import Storage
from eventlake.tasks.carried_over import carried_rows
from eventlake.tasks.dropped import Dropped
from eventlake.tasks.memory import give_back, without_gc


@dataclass(frozen=True)
class PublishSizes:
    """How much a publish task holds at once."""

    rows_at_once: int = 65_536
    carried_at_once: int = 4096  # rows of an old data file
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
    segments: tuple[Segment, ...]
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


@without_gc
def publish(context: PublishContext, shares: list[TableShare]) -> list[Published]:
    """Publish some tables, or parts of tables. Every attempt writes files of its own."""
    give_back()
    dropped = Dropped(context.storage, context.dropped)
    return [_publish_table(context, share, dropped) for share in shares]


def _publish_table(context: PublishContext, share: TableShare, dropped: Dropped) -> Published:
    attempt = uuid.uuid4().hex
    writer = PartitionedWriter(
        context.storage,
        context.dialect,
        share.table_key,
        folder=f"{STAGE}/{context.run_id}/data/{attempt}",
        stem=f"{context.run_id}-{attempt[:8]}",
        sizes=context.sizes.files,
    )
    done = Published(share.table_key)
    for rows in _groups(_kept_rows(context, share, dropped), context.sizes.rows_at_once):
        count = sum(batch.num_rows for batch in rows)
        writer.write(_typed(rows, share, context.keep_rounded, done.rescued))
        done.rows += count
        if count >= context.sizes.rows_at_once:  # of fewer rows not much is left behind
            give_back()
    done.files = writer.close()
    return done


def _kept_rows(context: PublishContext, share: TableShare, dropped: Dropped) -> Iterator[pa.RecordBatch]:
    number = {path: position for position, path in enumerate(context.staged_paths)}
    path, source = None, None  # one at a time: what is mapped into memory counts as the worker's
    for segment in share.segments:
        if segment.path != path:
            path, source = segment.path, context.storage.open_input(segment.path)
        rows = read_segment(source, segment)
        kept = dropped.kept(number[path], segment.first_message, segment.rows, in_scope=share.is_in_scope)
        if kept is not None:
            rows = rows.filter(pa.array(kept))
        if rows.num_rows:
            yield rows
    yield from carried_rows(
        context.storage,
        share.carried_routes,
        share.carry_from,
        share.columns,
        context.carried,
        at_once=context.sizes.carried_at_once,
    )


def _groups(batches: Iterator[pa.RecordBatch], rows_at_once: int) -> Iterator[list[pa.RecordBatch]]:
    group: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        group.append(batch)
        size += batch.num_rows
        if size >= rows_at_once:
            yield group
            group, size = [], 0
    if group:
        yield group


def _typed(group: list[pa.RecordBatch], share: TableShare, keep_rounded: bool, counts: Counter[str]) -> pa.Table:
    """Staged rows in the table's columns and their order, with `_rescued_data` if the table has or now needs it.

    The rows are let go of as they are taken, for they are as large as what is made of them.
    """
    staged = joined([(rows.num_rows, dict(zip(rows.schema.names, rows.columns, strict=True))) for rows in group])
    group.clear()
    received = staged.pop(RECEIVED)
    rescued_before = staged.pop(RESCUED, None)
    rescued = _Rescues(counts)
    places: dict[str, list[tuple[Place, pa.Array]]] = {}
    for name, values in staged.items():
        place = place_of(name)
        places.setdefault(place.column, []).append((place, values))
    staged.clear()
    arrays = {}
    for column in share.columns:
        casts = []
        for place, values in places.pop(column.name, []):
            made = cast(Typed(place.kind, values), column.type, keep_rounded=keep_rounded)
            for misfit in made.misfits:
                rescued.add(misfit.row, Rescued(place.pointer, misfit.json_text, misfit.reason), column.name)
            casts.append(made.values)
        arrays[column.name] = _one_of(casts) if casts else pa.nulls(len(received), column.type.arrow)
    # Also where the event does not tell it: see the stage.
    arrays["received_at"] = received.cast(ColumnType.TIMESTAMP.arrow)
    for name, refused in places.items():  # columns past the table's limit
        for place, values in refused:
            for row, value in enumerate(values.to_pylist()):
                if value is not None:
                    text = value_text(place.kind, value)
                    rescued.add(row, Rescued(place.pointer, text, NO_ROOM), name)
    if rescued_before is not None:
        rescued.add_staged(rescued_before)
    order = list(arrays)
    if rescued or share.rescued_at is not None:
        arrays[RESCUED_COLUMN] = rescued.column(len(received))
        order.insert(len(order) if share.rescued_at is None else share.rescued_at, RESCUED_COLUMN)
    return pa.table({name: arrays[name] for name in order})


def _one_of(arrays: list[pa.Array]) -> pa.Array:
    """A column found at several places; no row has it at more than one."""
    return arrays[0] if len(arrays) == 1 else pc.coalesce(*arrays)


class _Rescues:
    """The rescued values of some rows."""

    def __init__(self, counts: Counter[str]) -> None:
        self._entries: dict[int, list[Rescued]] = {}
        self._counts = counts

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, row: int, entry: Rescued, column: str) -> None:
        self._entries.setdefault(row, []).append(entry)
        self._counts[column] += 1

    def add_staged(self, texts: pa.Array) -> None:
        """What flattening rescued already."""
        for row, text in enumerate(texts.to_pylist()):
            if text is not None:
                for entry in rescued_in(text):
                    self.add(row, entry, names.column_name(*rescue.keys_of(entry.pointer)))

    def column(self, rows: int) -> pa.Array:
        texts = [rescue.to_json(self._entries[row]) if row in self._entries else None for row in range(rows)]
        return pa.array(texts, pa.string())
