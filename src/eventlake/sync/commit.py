"""Making a run's result part of the lake, all or nothing.

The manifest names every file, partition, column and ledger entry of the run, and is written first. A crash before
it leaves the lake as it was; after it, the next start takes every step again. Each step may be repeated: files that
moved stay moved, columns that exist are not added twice, ledger rows replace themselves.
"""

import itertools
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from eventlake.catalog.base import TableChange
from eventlake.control.connections import Connection
from eventlake.control.leases import Lease
from eventlake.control.ledger import Entry
from eventlake.control.runs import Run
from eventlake.errors import ConfigurationError, DamagedError, InternalError, LeaseLostError, StagingLostError
from eventlake.lake.layout import COMMITS, STAGE
from eventlake.reports import report
from eventlake.storage.base import Storage
from eventlake.workspace import Lake

STAGING_KEPT_NS = 14 * 86_400 * 10**9  # run ids are times, in nanoseconds


Form = TypeVar("Form")

VERSION = 2  # of manifests: the first had neither a version nor a connection


class Noted(msgspec.Struct):
    """A connection as a manifest notes it, for a database that has to be built anew from the lake."""

    slug: str
    name: str
    settings: dict[str, Any]

    @classmethod
    def of(cls, connection: Connection) -> "Noted":
        source = connection.source
        return cls(source.slug, source.name, connection.settings.model_dump(mode="json"))


class Manifest(msgspec.Struct):
    """All that a run does to the lake. Manifests stay, and later versions read them."""

    entry: Entry
    moves: list[tuple[str, str]]  # from the staging folder to the final name
    tables: list[TableChange]
    dropped_tables: list[tuple[str, str]] = []
    connection: Noted | None = None
    version: int = 1


def _path(source_id: str, run_id: str) -> str:
    return f"{COMMITS}/source={source_id}/{run_id}.json"


def promise(lake: Lake, manifest: Manifest, lease: Lease) -> None:
    """Write the manifest. Once it is there the run will be in the lake, whatever happens."""
    path = _path(manifest.entry.source_id, manifest.entry.run_id)
    lake.storage.settle()
    lease.confirm()
    if not lake.storage.create(path, msgspec.json.encode(manifest)):
        lake.runs.failed(manifest.entry.run_id, [])  # else the next run would take the other manifest for its own
        raise InternalError(
            f"there is another manifest for run {manifest.entry.run_id}: {lake.storage.full(path)}",
            fix="do not let two workspaces share a lake; run it again: nothing was published",
        )
    try:
        lease.confirm()
    except LeaseLostError:
        # Who took the connection over either found no manifest and gave the run up, or has carried it out.
        if lake.runs.get(manifest.entry.run_id).status == "failed":
            lake.storage.delete(path)
        raise


def recover(lake: Lake, connection: Connection, lease: Lease, *, before: str) -> None:
    """Finish or undo the runs of a source that died before the one that begins. The caller holds the source."""
    for run in lake.runs.unfinished(connection.source.id):
        if run.run_id == before:
            continue
        manifest = _manifest_of(lake, connection, run.run_id)
        if manifest is None:
            _give_up(
                lake, connection, run, "the process ended before the run did; nothing was published", "interrupted"
            )
            continue
        try:
            fulfil(lake, manifest, lease)
        except StagingLostError as error:
            _undo(lake, manifest)
            problem = f"{error.problem}; the run was undone, and a sync loads its raw files again"
            _give_up(lake, connection, run, problem, error.code)
    _write_late_reports(lake, connection, before)
    _sweep(lake, connection)


def _give_up(lake: Lake, connection: Connection, run: Run, problem: str, code: str) -> None:
    ids = lake.workspace_id, connection.source.id, run.run_id
    head = report.RunHead(*ids, connection.settings.database, run.started_at * 1000, where=lake.where)
    save_failure(lake, run.run_id, report.failed(head, lake.clock.now_ns(), problem, code))


def _undo(lake: Lake, manifest: Manifest) -> None:
    """Take back a run of which only some files got their names. Its manifest goes last: till then it is done again."""
    for _, path in manifest.moves:
        lake.storage.delete(path)
    lake.storage.delete(_path(manifest.entry.source_id, manifest.entry.run_id))


def _manifest_of(lake: Lake, connection: Connection, run_id: str) -> Manifest | None:
    path = _path(connection.source.id, run_id)
    if lake.storage.stat(path) is None:
        return None
    manifest = read_manifest(lake, path)
    is_ours = manifest.entry.report[0]["workspace_id"] == lake.workspace_id
    return manifest if is_ours else None


def manifests(lake: Lake, source_id: str) -> Iterator[Manifest]:
    """What the runs of a source did to the lake, oldest first."""
    for path in manifest_paths(lake, source_id):
        yield read_manifest(lake, path)


def manifest_paths(lake: Lake, source_id: str) -> list[str]:
    """Where the manifests of a source are, oldest first."""
    files = (file.path for file in lake.storage.files(f"{COMMITS}/source={source_id}"))
    return sorted(path for path in files if run_of(path).isdigit())


def run_of(path: str) -> str:
    """The id of the run whose manifest this is."""
    return path.rpartition("/")[2].removesuffix(".json")


def read_manifest(lake: Lake, path: str) -> Manifest:
    content = lake.storage.read(path)
    version = _decoded(lake, path, content, _Versioned).version
    if version > VERSION:
        raise ConfigurationError(
            f"{lake.storage.full(path)} was written by a newer version of eventlake: its form is {version}, and this "
            f"version knows {VERSION}",
            fix="install that version or a newer one: pip install --upgrade eventlake",
        )
    return _decoded(lake, path, content, Manifest)


def part_of_manifest(lake: Lake, path: str, kind: type[Form]) -> Form:
    """As much of a manifest as somebody wants to know, whatever its version."""
    return _decoded(lake, path, lake.storage.read(path), kind)


def _decoded(lake: Lake, path: str, content: bytes, kind: type[Form]) -> Form:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise DamagedError(
            f"the manifest {lake.storage.full(path)} cannot be read: {error}",
            fix="put it back from a backup or an older version of the object",
        ) from error


class _Versioned(msgspec.Struct):
    version: int = 1


def _write_late_reports(lake: Lake, connection: Connection, before: str) -> None:
    """Write the reports of the last failures that had no place to go, as on a full disk."""
    earlier = (run for run in lake.runs.latest(1000, connection.source.id) if run.run_id != before)
    for run in itertools.takewhile(lambda run: run.status == "failed", earlier):
        if run.report and lake.storage.stat(report.path(run.report[0])) is None:
            _save_report(lake, run.report)


def _sweep(lake: Lake, connection: Connection) -> None:
    """Remove what runs left in the staging folder: those of this connection, and all old ones that are not running."""
    ours = lake.runs.ids_of(connection.source.id)
    running = {run.run_id for run in lake.runs.unfinished()}
    for name in lake.storage.folders(STAGE):
        too_old = name.isdigit() and lake.clock.now_ns() - int(name) > STAGING_KEPT_NS
        if name in ours or (too_old and name not in running):
            lake.storage.delete_folder(f"{STAGE}/{name}")


def save_failure(lake: Lake, run_id: str, lines: list[dict[str, Any]]) -> None:
    """Report a run that published nothing, and clean up after it."""
    try:
        lake.storage.delete_folder(f"{STAGE}/{run_id}")
        _save_report(lake, lines)
    finally:  # a lake that cannot be written to must not leave a run that seems to go on
        lake.runs.failed(run_id, lines)


def save_delay(lake: Lake, run_id: str, lines: list[dict[str, Any]]) -> None:
    """Report that a run waits to be finished; that will write its own report over this one."""
    if lake.runs.delayed(run_id, lines):
        _save_report(lake, lines)


def _save_report(lake: Lake, lines: list[dict[str, Any]]) -> None:
    report.save(lake.storage, lines)
    lake.catalog.register_report(lines[0]["source_id"], report.day(lines[0]))


def _move(storage: Storage, manifest: Manifest) -> None:
    try:
        storage.move_all(manifest.moves)
    except FileNotFoundError as error:
        raise StagingLostError(
            f"run {manifest.entry.run_id} cannot be finished: files are gone that it left in {storage.full(STAGE)}",
            fix="run it again: this run is undone, and its raw files are loaded by the next",
        ) from error


def fulfil(lake: Lake, manifest: Manifest, lease: Lease) -> None:
    """Do what the manifest says. May be done again."""
    entry, storage = manifest.entry, lake.storage
    if not lake.ledger.has_recorded(entry.run_id):  # else every file got its name, whatever became of it since
        _move(storage, manifest)
    lease.confirm()  # else another may have changed the same tables since
    lake.catalog.apply(manifest.tables, run_id=entry.run_id, at=entry.at)
    storage.settle()
    lake.ledger.record(entry, lease)
    for database, table in manifest.dropped_tables:  # their rows are elsewhere now, or wanted no more
        lake.catalog.drop(database, table)
    for path in (*entry.removed_data_files, *entry.removed_index_files):  # nobody is told of them any more
        storage.delete(path)
    _save_report(lake, entry.report)
    lake.runs.finished(entry.run_id, entry.report, entry.at)
    storage.delete_folder(f"{STAGE}/{entry.run_id}")
