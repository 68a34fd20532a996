"""`eventlake import`, `sync`, `replay` and `retype`: what changes the lake."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from eventlake.archive.importer import find_raw_files, import_file
from eventlake.cli import output, state
from eventlake.cli.connections import Name, assignments
from eventlake.cli.report_view import show_report
from eventlake.cli.runners import Runners
from eventlake.cli.state import JsonFlag, LakeOption, WaitOption
from eventlake.collector.bring import bring
from eventlake.commit.ownership import refuse_unknown
from eventlake.errors import BusyError, EventLakeError, InvalidSettingsError, NotFoundError
from eventlake.library.times import micros_of
from eventlake.reports.words import count, either, size
from eventlake.settings import DEFAULT_LAKE
from eventlake.sync import jobs, requests
from eventlake.sync.carry_out import carry_out
from eventlake.sync.jobs import Job
from eventlake.sync.not_begun import refuse_wrong_lake
from eventlake.workspace import Workspace

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The source.")]


def import_files(
    slug: Slug,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE…]", help="Raw files, or folders of them.")
    ] = None,
    in_place: Annotated[
        str | None,
        typer.Option(
            "--in-place",
            metavar="ADDRESS",
            help="Copy nothing: read raw files here, in a folder, s3://…, gs://… or abfss://…",
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="With --in-place: every sync looks for more there.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Put raw files into the archive: NDJSON, gzip or plain, or a whole Segment archive.

    A file that is in the archive already, under any name, is not added again. The next `sync` loads them.

    With --in-place they stay where they are, and must stay there for replays: say, the archive that Segment or
    RudderStack wrote, in whatever bucket. Of one that holds several sources, the folder with the source's id is taken.

    Examples: eventlake import web ~/segment-logs/

    eventlake import web --in-place s3://acme-logs/segment-logs --follow
    """
    if (in_place is None) == (not files):
        raise InvalidSettingsError("nothing says where raw files are", fix="name files, or give --in-place ADDRESS")
    if in_place is None and follow:
        raise InvalidSettingsError("--follow is for --in-place", fix="leave it out, or name a place with --in-place")
    if in_place is None:
        _copy(slug, files or [], as_json)
        return
    with output.talk.status("looking for raw files…"):
        found = state.changes().read_in_place(slug, in_place, follow=follow)
    if as_json:
        output.print_json({"source": slug, **found._asdict(), "follow": follow})
        return
    more = ", and syncs look for more" if follow else ""
    there = f"{count(found.files, 'raw file')} ({size(found.bytes)}) in {found.address}"
    output.talk.print(output.printable(f"{there}, read in place{more}. Next: eventlake sync"))


def _copy(slug: str, files: list[Path], as_json: bool) -> None:
    """Copy raw files into the archive."""
    workspace = state.workspace()
    source = workspace.sources.get(slug)
    found = find_raw_files(files)
    added = []
    with output.progress() as report:
        for number, file in enumerate(found, 1):
            done = import_file(workspace.archive, source.id, file, now_micros=workspace.clock.now())
            added += [done.path] if done.is_new else []
            report("import", number, len(found))
    if as_json:
        output.print_json({"source": source.slug, "files": len(found), "added": added})
    else:
        there = len(found) - len(added)
        known = f", {either(there, 'was', 'were')} there already" if there else ""
        output.talk.print(f"{count(len(added), 'file')} added to the archive{known}. Next: eventlake sync")


def sync(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SOURCE[/LAKE]…]",
            help="Sources, into all their lakes, or into one; by default all that are enabled.",
        ),
    ] = None,
    own_cluster: Annotated[
        bool, typer.Option("--own-cluster", help="On EMR: on a cluster made for it, as replays are. For a first sync.")
    ] = False,
    wait: WaitOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Load what is new into the lake.

    Takes every raw file that was not loaded before, and ends in a report. May be run at any time and as often as
    you like. With --json the lines of the reports are printed.
    """
    workspace = state.workspace()
    work = requests.syncs(workspace.connections, names or ())
    if not work:
        for lake in workspace.lakes.values():
            refuse_unknown(lake)  # a database that was lost knows no source
        raise NotFoundError(
            "no source is connected to a lake, or all connections are disabled",
            fix="`eventlake source add SLUG`, or `eventlake connection enable SOURCE`",
        )
    if own_cluster:
        _refuse_unless_on_emr(workspace, work)
    waiting = bring(workspace)
    try:
        run_all(workspace, work, as_json, wait, own_cluster=own_cluster)
    finally:  # also after a sync that failed: what was acknowledged must not seem lost
        for source in {job.connection.source.id: job.connection.source for job in work}.values():
            if held := waiting.notice(source.id):
                output.talk.print(output.printable(f"{source.slug}: {held}"))
        for job in work:
            here = workspace.lakes.get(job.connection.lake)  # it may be gone from the settings
            if here is not None and (left := requests.unfinished_replay(here, job.connection)):
                output.talk.print(output.printable(f"{job.connection.name}: {left}"))


def _refuse_unless_on_emr(workspace: Workspace, work: list[Job]) -> None:
    elsewhere = [name for job in work if workspace.lake(name := job.connection.lake).settings.runner.kind != "emr"]
    if elsewhere:
        raise InvalidSettingsError(
            f"--own-cluster is for lakes whose runner is emr, which the lake {elsewhere[0]} is not",
            fix="leave it out, or name the connections that it is for: SOURCE/LAKE",
        )


def replay(
    name: Name,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="From this time of receipt (UTC).")
    ] = None,
    stop: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="Up to, not including, this time; by default now.")
    ] = None,
    events: Annotated[
        list[str] | None,
        typer.Option("--event", metavar="NAME", help="Only this event or call; may be repeated."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The whole archive.")] = False,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With --all: write all tables anew with this setting."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a replay that was interrupted.")] = False,
    wait: WaitOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Load a period again from the raw archive.

    Whole partitions are written anew. What is loaded already is not added again: a replay of what is in the lake
    changes nothing but brings rescued values into columns whose type was corrected, and lost files back. Syncs may go
    on meanwhile. A long period is loaded in parts of several days, each with a report.

    Example: eventlake replay web --from 2026-11-01 --to 2026-11-03 --event "Order Completed"
    """
    workspace = state.workspace()
    connection = workspace.connections.get(name)
    if resume:
        if everything or start or stop or events or settings:
            raise InvalidSettingsError(
                "--resume continues the replay that was interrupted", fix="leave out the period, the events and --set"
            )
        run_all(workspace, [requests.rest_of_replay(workspace.lake(connection.lake), connection)], as_json, wait)
        return
    if everything and (start or stop):
        raise InvalidSettingsError("--all and a period exclude each other", fix="give --all, or --from")
    if settings:
        if not everything or events:
            raise InvalidSettingsError("--set concerns all tables", fix="give --all with it, and no --event")
        job = jobs.rebuild(workspace.connections.preview(name, assignments(settings)))
    elif everything:
        job = requests.replay(workspace.lake(connection.lake), connection, None, None, events)
    elif start:
        begin, end = micros_of(start) or 0, micros_of(stop) or workspace.clock.now()
        job = requests.replay(workspace.lake(connection.lake), connection, begin, end, events)
    else:
        raise InvalidSettingsError("a replay needs a period", fix="give --from, or --from and --to, or --all")
    run_all(workspace, [job], as_json, wait)


def retype(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The table, as <database>.<table>.")],
    column: Annotated[str, typer.Argument(help="The column.")],
    new_type: Annotated[
        str, typer.Argument(metavar="TYPE", help="bigint, boolean, decimal(38,6) or double, string, timestamp.")
    ],
    name: LakeOption = DEFAULT_LAKE,
    wait: WaitOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Correct the type of a column, over its whole history.

    The table is replayed from the archive with the new type in the same step: values that had been rescued come into
    the column, values that do not fit the new type are rescued, and no reader sees two types.

    Example: eventlake retype web.track_order_completed properties_revenue "decimal(38,6)"
    """
    workspace = state.workspace()
    job = requests.retype(workspace.lake(name), table, column, new_type)
    if job is None:
        output.talk.print(f"{table}: {column} is {new_type} already; there is nothing to do.")
        return
    run_all(workspace, [job], as_json, wait)


def run_all(
    workspace: Workspace, work: list[Job], as_json: bool, wait: float = 0, *, own_cluster: bool = False
) -> None:
    """Carry out jobs one after the other; one that fails does not stop the others."""
    attempts, is_partly = state.Attempts(len(work)), False
    with Runners(workspace, transient=own_cluster or any(job.is_replay for job in work)) as runners:
        for job in work:
            with attempts.one(job.connection.name):
                is_partly |= _carried_out(workspace, job, runners, as_json, wait)
    attempts.end(is_partly=is_partly)


def _carried_out(workspace: Workspace, job: Job, runners: Runners, as_json: bool, wait: float) -> bool:
    """Carry out a job; whether it was done in part only."""
    try:
        reports = state.patiently(wait, job.connection.name, partial(_run, workspace, job, runners, as_json))
    except BusyError:  # the latest run is another's
        raise
    except EventLakeError:
        if as_json:
            _print_failure(workspace, job)
        raise
    return any("failed_files" in lines[0] for lines in reports)


def _print_failure(workspace: Workspace, job: Job) -> None:
    latest = workspace.runs.latest(100, job.connection.source.id)
    # A sync may have begun beside a replay, and another lake's run beside either.
    ended = next((run for run in latest if (run.kind, run.lake) == (job.kind, job.connection.lake)), None)
    for line in (ended and ended.report) or ():
        output.print_json(line)


def _run(workspace: Workspace, job: Job, runners: Runners, as_json: bool) -> list[list[dict[str, Any]]]:
    """The reports of a job, each shown as soon as its run has ended."""
    reports: list[list[dict[str, Any]]] = []

    def watch(step: str, done: int, tasks: int) -> None:
        bars(step, done, tasks)  # those of the run that is going on

    refuse_wrong_lake(workspace, job)
    with runners.of(job.connection.lake, job.connection.settings.emr_cluster_id) as runner:
        runs = carry_out(workspace, job, runner, watch)
        while True:
            with output.progress() as bars:
                lines = next(runs, None)
            if lines is None:
                return reports
            reports.append(lines)
            if as_json:
                for line in lines:
                    output.print_json(line)
            else:
                show_report(job.connection.name, lines)
