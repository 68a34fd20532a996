"""Taking a table out of the lake: its files, its place in the catalog and its message ids, in one commit.

The raw archive stays as it is. A rule keeps the table out from then on. As the index has none of its message ids any
more, the events are loaded like new ones when the rule is taken away.
"""

from typing import Any, NamedTuple

import numpy as np

from eventlake.commit.manifest import Manifest, Noted
from eventlake.control.admission import Decisions, DroppedTable
from eventlake.control.ledger import Entry, IndexFile, TableFiles
from eventlake.errors import NotFoundError
from eventlake.lake import ids
from eventlake.reports import report
from eventlake.reports.words import count
from eventlake.sync.books import Books
from eventlake.sync.index import Index, Reindexed, named, with_index
from eventlake.sync.notices import lost_index
from eventlake.sync.state import LakeState
from eventlake.sync.work import Work
from eventlake.tasks.id_files import IdWriter, NewIds


def manifest_of_drop(work: Work, state: LakeState, table_key: str, head: report.RunHead) -> Manifest:
    """All that dropping a table does to the lake."""
    lake, connection = work.lake, work.job.connection
    table = state.tables.get(table_key)
    if table is None:
        raise NotFoundError(f"{connection.name} has no table {table_key!r}", fix="see `eventlake tables`")
    index = with_index(
        work, state.index, state.data_files, lambda sound, made: _index_without(work, state, table_key, sound, made)
    )
    finish_ns = lake.clock.now_ns()
    files = [file for file in state.data_files if file.table_key == table_key]
    discards = [file.path for file in state.data_files if file.owner == table_key]
    rows = sum(file.rows for file in files)
    nothing = {"files": 0, "bytes": 0, "dropped_rows": rows}
    books = {"staged": 0, **Books().as_report()}
    line = report.TableLine(
        table_name=table.name,
        row_count=0,
        is_new=False,
        extra={"books": {name: books[name] for name in ("staged", "loaded", "duplicates", "checksum")}, **nothing},
    )
    notice = f"{count(rows, 'row')} of {table.name} dropped; `eventlake allow` loads them from the archive"
    extra: dict[str, Any] = {
        "kind": "drop",
        "books": Books().as_report(),
        "files_read": 0,
        "rescued": 0,
        "data_files": 0,
        "bytes": 0,
        "dropped_rows": rows,
        "notices": [notice, *lost_index(index.made)],
    }
    if index.made.replaced:
        extra["reindexed"] = index.made.as_report
    entry = Entry(
        run_id=head.run_id,
        source_id=connection.source.id,
        at=finish_ns // 1000,
        report=report.finished(head, finish_ns, [line], extra),
        files=[
            TableFiles(table_key, removed=[file.path for file in files]),
            *([TableFiles(str(connection.dialect.discards), removed=discards)] if discards else ()),
        ],
        index_files=[*index.gained.values(), *index.taken],
        removed_index_files=index.removed,
        decisions=Decisions(dropped=[DroppedTable(table_key, rows, head.run_id, finish_ns // 1000)]),
        base=state.last_run,
    )
    moves = [(written, file.path) for written, file in index.gained.items()]
    return Manifest(entry, moves, [], [(table.database, table.name)], Noted.of(connection))


class _Index(NamedTuple):
    """What a drop does to the index."""

    gained: dict[str, IndexFile]  # by the names that they have in the staging folder
    taken: list[IndexFile]  # over from runs whose other files changed
    removed: list[str]
    made: Reindexed


def _index_without(work: Work, state: LakeState, table_key: str, index: Index, made: Reindexed) -> _Index:
    """The index without the rows of a table: its messages are gone from it, or take one table less.

    A file keeps its time, by which copies are looked for.
    """
    storage, writer = work.lake.storage, IdWriter(work.lake.storage, work.folder)
    shorter = {
        ids.route_hash(route): tuple(key for key in route if key != table_key)
        for route in work.job.connection.dialect.routes(frozenset(state.tables))
        if table_key in route
    }

    def without(path: str) -> tuple[bool, NewIds | None]:
        """Whether a file changes, and what is left of it then."""
        with ids.opened(storage, path) as stored:
            messages = stored.read(ids.ALL, ids.INDEX_FIELDS)
            leads_there = np.isin(messages["route"], np.array(list(shorter), "<u8"))
            if not leads_there.any():
                return False, None
            routes, stays = messages["route"].copy(), ~leads_there
            for before, after in shorter.items():
                if after:
                    stays |= messages["route"] == before
                    routes[messages["route"] == before] = ids.route_hash(after)
            return True, writer.index(ids.Ids({**messages.arrays, "route": routes}).take(stays))

    anew: list[NewIds] = []
    for part in made.parts:
        is_changed, rest = without(part.path)
        left = rest if is_changed else part
        anew += [left] if left else []
    made = made._replace(parts=tuple(anew))
    parts: list[tuple[NewIds | None, int]] = [(part, made.synced_at) for part in made.parts]
    whole, changed = [], list(made.replaced)
    for file in index.sound:
        is_changed, rest = without(file.path)
        if is_changed:
            changed.append(file)
            parts.append((rest, file.synced_at))
        else:
            whole.append(file)
    # What is left of a run's index is no longer what the run reported: all of it belongs to the drop.
    runs = {file.run_id for file in changed}
    return _Index(
        named(
            [(part, at) for part, at in parts if part],
            f"{work.lake.folders.index}/source={work.job.connection.source.id}",
            work.run_id,
        ),
        [file for file in whole if file.run_id in runs],
        [file.path for file in changed],
        made,
    )
