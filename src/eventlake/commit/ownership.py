"""Does the workspace database know what is in the lake?

A database that was lost, or put back from an old backup, does not know which raw files were loaded: a sync would load
everything again, beside the old files. The lake tells: each run leaves a manifest there and puts its id into the names
of its files. As long as the database does not know one of these runs, nothing is written.
"""

import re
from collections.abc import Iterator

import msgspec

from eventlake.commit.manifest import manifest_paths, part_of_manifest, run_of
from eventlake.control.connections import Connection
from eventlake.errors import UnknownLakeError
from eventlake.workspace import Lake

_OUR_FILE = re.compile(r".*/(?P<run>\d{19})-[0-9a-f]{8,16}-\d+\.parquet")


def is_our_file(path: str) -> bool:
    """Whether a data file is called like those of a run."""
    return _OUR_FILE.fullmatch(path) is not None


class _Written(msgspec.Struct):
    """As much of a manifest as tells who wrote it."""

    class Entry(msgspec.Struct):
        report: list[dict[str, object]]

    entry: Entry


def refuse_unknown(lake: Lake, connection: Connection | None = None) -> None:
    """Raise UnknownLakeError if the lake holds runs that the database does not know: of one source, or of any."""
    unknown = next(_unknown(lake, connection), None)
    if unknown:
        raise UnknownLakeError(
            f"the lake in {lake.storage.root} holds what the workspace database does not know: {unknown}. The "
            "database was lost, is an older copy, or another workspace writes to this lake; everything would be "
            "loaded a second time",
            fix="put the database back from its latest backup, or let `eventlake restore` build it from the lake; or "
            "give this workspace a lake of its own (lake.root)",
        )


def _unknown(lake: Lake, connection: Connection | None) -> Iterator[str]:
    if connection is not None:
        yield from _unknown_of(lake, connection)
    if connection is None or not lake.runs.any_finished():  # a database that finished a run was not lost since
        ids = {known.source.id for known in lake.connections}
        for name in lake.storage.folders(lake.folders.commits):
            source_id = name.removeprefix("source=")
            if source_id not in ids and written_by(lake, source_id) == lake.workspace_id:
                yield f"tables of a source with the id {source_id}"
    if connection is None:
        for known in lake.connections:
            yield from _unknown_of(lake, known)


def written_by(lake: Lake, source_id: str) -> str | None:
    """The id of the workspace that wrote the manifests of a source, as several may share a bucket; None without any."""
    for file in lake.storage.files(f"{lake.folders.commits}/source={source_id}"):
        report = part_of_manifest(lake, file.path, _Written).entry.report
        return str(report[0].get("workspace_id"))
    return None


def _unknown_of(lake: Lake, connection: Connection) -> Iterator[str]:
    written = [run_of(path) for path in manifest_paths(lake, connection.source.id)]
    runs = lake.runs.ids_of(connection.source.id)  # read last: a run is known before it leaves anything
    for run_id in written:
        if run_id not in runs:
            yield f"the manifest of run {run_id} of {connection.name}"
    if not lake.ledger.has_data(connection.source.id):
        found = [_OUR_FILE.fullmatch(file.path) for file in lake.storage.files(connection.dialect.data_folder)]
        runs = lake.runs.ids_of(connection.source.id)
        for ours in found:
            if ours and ours["run"] not in runs:
                yield f"data files of run {ours['run']} of {connection.name}"
