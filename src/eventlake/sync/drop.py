"""Taking a table out of the lake: its files, its place in the catalog and its message ids, in one commit.

The raw archive stays as it is. A rule keeps the table out from then on. As the index has none of its message ids any
more, the events are loaded like new ones when the rule is taken away.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from eventlake.commit.manifest import Manifest, Noted
from eventlake.control.admission import Decisions, DroppedTable
from eventlake.control.ledger import Entry, TableFiles
from eventlake.errors import NotFoundError
from eventlake.lake import ids
from eventlake.reports import report
from eventlake.reports.words import count
from eventlake.sync.books import Books
from eventlake.sync.index import named, with_index
from eventlake.sync.notices import lost_index
from eventlake.sync.state import LakeState
from eventlake.sync.thinned import thinned
from eventlake.sync.work import Work


def manifest_of_drop(work: Work, state: LakeState, table_key: str, head: report.RunHead) -> Manifest:
    """All that dropping a table does to the lake."""
    lake, connection = work.lake, work.job.connection
    table = state.tables.get(table_key)
    if table is None:
        raise NotFoundError(f"{connection.name} has no table {table_key!r}", fix="see `eventlake tables`")
    change = _shorter(work, state, table_key)
    index = with_index(work, state.index, state.data_files, lambda sound, made: thinned(work, sound, made, change))
    gained = named(index.parts, f"{lake.folders.index}/source={connection.source.id}", head.run_id)
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
        index_files=[*gained.values(), *index.taken],
        removed_index_files=[file.path for file in index.replaced],
        decisions=Decisions(dropped=[DroppedTable(table_key, rows, head.run_id, finish_ns // 1000)]),
        base=state.last_run,
    )
    moves = [(written, file.path) for written, file in gained.items()]
    return Manifest(entry, moves, [], [(table.database, table.name)], Noted.of(connection))


def _shorter(work: Work, state: LakeState, table_key: str) -> Callable[[ids.Ids], ids.Ids | None]:
    """What a file of the index is without a table: its messages are gone from it, or take one table less."""
    routes = work.job.connection.dialect.routes(frozenset(state.tables))
    shorter = {
        ids.route_hash(route): tuple(key for key in route if key != table_key) for route in routes if table_key in route
    }

    def without(messages: ids.Ids) -> ids.Ids | None:
        leads_there = np.isin(messages["route"], np.array(list(shorter), "<u8"))
        if not leads_there.any():
            return None
        routes, stays = messages["route"].copy(), ~leads_there
        for before, after in shorter.items():
            if after:
                stays |= messages["route"] == before
                routes[messages["route"] == before] = ids.route_hash(after)
        return ids.Ids({**messages.arrays, "route": routes}).take(stays)

    return without
