"""What earlier runs left when they died: their manifests are carried out, what has none is given up, and swept away."""

from contextlib import ExitStack

from eventlake.commit.commit import fulfil
from eventlake.commit.manifest import Manifest, path_of, read_manifest
from eventlake.commit.run_reports import save_failure, write_late_reports
from eventlake.control.connections import Connection
from eventlake.control.leases import Hold, Lane, Lease
from eventlake.control.runs import Run
from eventlake.errors import BusyError, OvertakenError, StagingLostError
from eventlake.reports import report
from eventlake.workspace import Lake

STAGING_KEPT_NS = 14 * 86_400 * 10**9  # run ids are times, in nanoseconds
BESIDE_SYNCS = "replay"  # the kind of runs that may go on while the caller holds the lane of syncs


def recover(lake: Lake, connection: Connection, hold: Hold, *, mine: str, replay: Lease | None = None) -> None:
    """Finish or undo the runs of a source that died. The caller holds the lane of syncs, and perhaps that of replays.

    A replay that lives is left alone: it has no manifest, for it would hold the lane of syncs as well.
    """
    for run in lake.runs.unfinished(connection.source.id):
        if run.run_id == mine:
            continue
        manifest = _manifest_of(lake, connection, run.run_id)
        if manifest is None:
            _give_up_dead(lake, connection, run, replay)
            continue
        try:
            fulfil(lake, manifest, hold)
        except (StagingLostError, OvertakenError) as error:
            _undo(lake, manifest)
            what_next = "a sync loads its raw files again" if run.kind == "sync" else "nothing of it is in the lake"
            problem = f"{error.problem}; the run was undone, and {what_next}"
            _give_up(lake, connection, run, problem, error.code, error.fix)
    write_late_reports(lake, connection, mine)
    _sweep(lake, connection)


def give_up_replays(lake: Lake, connection: Connection, *, mine: str) -> None:
    """The same for replays that died before their commit, by a replay that begins: the caller holds their lane only."""
    for run in lake.runs.unfinished(connection.source.id):
        is_another = run.run_id != mine and run.kind == BESIDE_SYNCS
        if is_another and _manifest_of(lake, connection, run.run_id) is None:
            _give_up(lake, connection, run, *_INTERRUPTED)


_INTERRUPTED = (
    "the process ended before the run did; nothing was published",
    "interrupted",
    "run it again; a scheduler does so by itself with syncs",
)


def _give_up_dead(lake: Lake, connection: Connection, run: Run, replay: Lease | None) -> None:
    """Give up a run that has no manifest, unless it is a replay that lives.

    Its lane is taken for that: so one that only stood still cannot go on as if nothing had happened.
    """
    with ExitStack() as lane:
        if run.kind == BESIDE_SYNCS and replay is None:
            try:
                lane.enter_context(lake.leases.held(connection.source.id, Lane.REPLAY))
            except BusyError:
                return
        if lake.runs.get(run.run_id).status == "running":  # else it has just ended
            _give_up(lake, connection, run, *_INTERRUPTED)


def _give_up(lake: Lake, connection: Connection, run: Run, problem: str, code: str, fix: str) -> None:
    ids = lake.workspace_id, connection.source.id, run.run_id
    ran = _where_it_ran(lake, connection, run)
    head = report.RunHead(*ids, connection.database, run.started_at * 1000, where=lake.settings.where, ran=ran)
    save_failure(lake, run.run_id, report.failed(head, lake.clock.now_ns(), problem, code, fix))


def _where_it_ran(lake: Lake, connection: Connection, run: Run) -> dict[str, str]:
    """What is known of where a run was that died; one that is no sync may have had a cluster of its own."""
    runner = lake.settings.runner
    if runner.kind != "emr" or run.kind != "sync":
        return {}
    return {"emr_cluster_id": connection.settings.emr_cluster_id or runner.cluster_id}


def _undo(lake: Lake, manifest: Manifest) -> None:
    """Take back a run of which only some files got their names. Its manifest goes last: till then it is done again."""
    known = lake.ledger.paths(manifest.entry.source_id)
    for _, path in manifest.moves:
        if path not in known:  # which cannot be, and would be a pity
            lake.storage.delete(path)
    lake.storage.delete(path_of(lake, manifest.entry.source_id, manifest.entry.run_id))


def _manifest_of(lake: Lake, connection: Connection, run_id: str) -> Manifest | None:
    path = path_of(lake, connection.source.id, run_id)
    if lake.storage.stat(path) is None:
        return None
    manifest = read_manifest(lake, path)
    is_ours = manifest.entry.report[0]["workspace_id"] == lake.workspace_id
    return manifest if is_ours else None


def _sweep(lake: Lake, connection: Connection) -> None:
    """Remove what runs left in the staging folder: those of this connection, and all old ones; none that is running."""
    ours = lake.runs.ids_of(connection.source.id)
    running = {run.run_id for run in lake.runs.unfinished()}
    for name in lake.storage.folders(lake.folders.stage):
        too_old = name.isdigit() and lake.clock.now_ns() - int(name) > STAGING_KEPT_NS
        if name not in running and (name in ours or too_old):
            lake.storage.delete_folder(lake.folders.of_run(name))
