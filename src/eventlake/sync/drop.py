"""Taking a table out of the lake: its files, its place in the catalog and its message ids, in one commit.

The raw archive stays as it is. A rule keeps the table out from then on. As the index has none of its message ids any
more, the events are loaded like new ones when the rule is taken away.
"""

from typing import Any, NamedTuple

import numpy as np

from eventlake.control.admission import Decisions, DroppedTable
from eventlake.control.ledger import Entry, IndexFile
from eventlake.errors import NotFoundError
from eventlake.lake import ids
from eventlake.reports import report
from eventlake.reports.words import count
from eventlake.sync.books import Books
from eventlake.sync.commit import VERSION, Manifest, Noted
from eventlake.sync.discover import index_of
from eventlake.sync.index import IdWriter, Index, Reindexed, named
from eventlake.sync.notices import lost_index
from eventlake.sync.steps import Steps


def manifest_of_drop(steps: Steps, segment_type: str, head: report.RunHead) -> Manifest:
    """All that dropping a table does to the lake."""
    lake, connection = steps.lake, steps.job.connection
    tables = [table for table in lake.catalog.tables(connection.source.id) if table.segment_type == segment_type]
    if not tables:
        raise NotFoundError(f"{connection.name} has no table {segment_type!r}", fix="see `eventlake tables`")
    found = index_of(lake, connection)
    index = steps.with_index(found, lambda sound, made: _index_without(steps, segment_type, sound, made))
    finish_ns = lake.clock.now_ns()
    files = lake.ledger.data_files(connection.source.id, segment_type)
    rows = sum(file.rows for file in files)
    nothing = {"files": 0, "bytes": 0, "dropped_rows": rows}
    books = {"staged": 0, **Books().as_report()}
    line = report.TableLine(
        table_name=tables[0].name,
        row_count=0,
        is_new=False,
        extra={"books": {name: books[name] for name in ("staged", "loaded", "duplicates", "checksum")}, **nothing},
    )
    told = f"{count(rows, 'row')} of {tables[0].name} dropped; `eventlake allow` loads them from the archive"
    extra: dict[str, Any] = {
        "kind": "drop",
        "books": Books().as_report(),
        "files_read": 0,
        "rescued": 0,
        "data_files": 0,
        "bytes": 0,
        "dropped_rows": rows,
        "notices": [told, *lost_index(index.made)],
    }
    if index.made.replaced:
        extra["reindexed"] = index.made.as_report
    entry = Entry(
        run_id=head.run_id,
        source_id=connection.source.id,
        at=finish_ns // 1000,
        report=report.finished(head, finish_ns, [line], extra),
        removed_data_files=[file.path for file in files],
        index_files=[*index.gained.values(), *index.taken],
        removed_index_files=index.removed,
        decisions=Decisions(dropped=[DroppedTable(segment_type, rows, head.run_id, finish_ns // 1000)]),
    )
    dropped = [(table.database, table.name) for table in tables]
    moves = [(written, file.path) for written, file in index.gained.items()]
    return Manifest(entry, moves, [], dropped, Noted.of(connection), VERSION)


class _Index(NamedTuple):
    """What a drop does to the index."""

    gained: dict[str, IndexFile]  # by the names that they have in the staging folder
    taken: list[IndexFile]  # over from runs whose other files changed
    removed: list[str]
    made: Reindexed


def _index_without(steps: Steps, table: str, index: Index, made: Reindexed) -> _Index:
    """The index without the messages of a table. A file keeps its time, by which copies are looked for."""
    storage, key = steps.lake.storage, np.uint64(ids.table_key(table))
    parts = [(part, made.synced_at) for part in made.parts]
    whole, changed = [], list(made.replaced)
    for file in index.sound:
        with ids.opened(storage, file.path) as stored:
            messages = stored.read(ids.ALL, ids.INDEX_FIELDS)
            stays = messages["table"] != key
            if stays.all():
                whole.append(file)
                continue
            rest = IdWriter(storage, steps.run_id).index(messages.take(stays))
        changed.append(file)
        parts += [(rest, file.synced_at)] if rest else []
    # What is left of a run's index is no longer what the run reported: all of it belongs to the drop.
    runs = {file.run_id for file in changed}
    return _Index(
        named(parts, steps.job.connection.source.id, steps.run_id),
        [file for file in whole if file.run_id in runs],
        [file.path for file in changed],
        made,
    )
