"""A workspace with all that can be done with it."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any, Self

import pyarrow as pa

from eventlake import workspace as opened
from eventlake.audit.repair import mended
from eventlake.audit.verify import Finding, verified_each, verify
from eventlake.catalog.base import CatalogTable
from eventlake.clock import Clock
from eventlake.collector.bring import bring
from eventlake.control.alerts import SAMPLE, Message
from eventlake.control.connections import Connection
from eventlake.errors import CancelledError, EventLakeError, InvalidSettingsError, TransientError
from eventlake.library.report import Report
from eventlake.library.runners import Runners, SessionRunners, giving_way, logged
from eventlake.library.spark_tables import spark_tables
from eventlake.query import query
from eventlake.runners.base import Progress, Runner, no_progress
from eventlake.runners.connect_session import is_of_connect
from eventlake.runners.spark import SparkRunner
from eventlake.runners.spark_tables import register
from eventlake.settings import DEFAULT_LAKE, Settings
from eventlake.sync import jobs, requests
from eventlake.sync.carry_out import carry_out
from eventlake.sync.jobs import Job
from eventlake.sync.not_begun import refuse_wrong_lake

_SAMPLE_WORDS = ("a sample", "This is what an alert looks like. Nothing is wrong.")


class Workspace(opened.Workspace):
    """A workspace: `sources`, `connections`, `lakes` and `runs` to look at, and what can be done with them.

    May be used from several threads: one sync of a connection at a time, and one replay beside it.
    """

    def __init__(self, folder: Path, settings: Settings, clock: Clock | None = None) -> None:
        super().__init__(folder, settings, clock)
        self._runners: Runners | SessionRunners = Runners(self)
        self._given: Runner | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop what was started for this workspace. A Spark that was there before goes on."""
        self._runners.close()
        super().close()

    def keep_spark_log(self, *, gives_way: bool = False) -> None:
        """Let a Spark of this machine write its log to `logs/spark.log` in the workspace's folder.

        If it `gives_way`, it leaves the cores to whatever else on this machine wants them.
        """
        self._runners = Runners(self, giving_way if gives_way else logged)

    def use_spark(self, session: Any) -> None:
        """Run on this SparkSession, also one of Spark Connect. It is never stopped from here."""
        if is_of_connect(session):
            self._runners = SessionRunners(self, session)
        elif hasattr(session, "sparkContext"):
            self._given = SparkRunner.on(session.sparkContext)
        else:
            raise InvalidSettingsError(f"{session!r} is not a SparkSession", fix="give one, or leave it out")

    def sync(self, *names: str, progress: Progress = no_progress, cancel: Event | None = None) -> list[Report]:
        """Load what is new: of these sources (`web`) or connections (`web/aws`), or of all that are enabled.

        What a collector of this workspace holds comes to the archive first, if it comes soon. If one fails, the others
        are still loaded; then the first error is raised.
        """
        work = requests.syncs(self.connections, names)
        bring(self)
        return self._run(work, _heeding(cancel, progress))

    def sync_due(
        self, connection: Connection, due_since: int, *, progress: Progress = no_progress, cancel: Event | None = None
    ) -> list[Report]:
        """Load what is new of a connection, unless a sync of it was begun since; for schedulers.

        Raises NotDueError if one was, BusyError if one is going on.
        """
        bring(self)
        return self._run([jobs.sync(connection, due_since=due_since)], _heeding(cancel, progress))

    def replay(
        self,
        name: str,
        start: datetime | None = None,
        stop: datetime | None = None,
        events: Sequence[str] = (),
        *,
        progress: Progress = no_progress,
        cancel: Event | None = None,
    ) -> list[Report]:
        """Load what was received in [start, stop) again from the raw archive; without bounds everything.

        Much of it is loaded in parts of some days, each with a report. Syncs may go on meanwhile.
        """
        connection = self.connections.get(name)
        job = requests.replay(self.lake(connection.lake), connection, _micros(start), _micros(stop), events)
        return self._run([job], _heeding(cancel, progress))

    def resume_replay(
        self, name: str, *, progress: Progress = no_progress, cancel: Event | None = None
    ) -> list[Report]:
        """Go on with a replay of a connection that was interrupted or cancelled."""
        connection = self.connections.get(name)
        job = requests.rest_of_replay(self.lake(connection.lake), connection)
        return self._run([job], _heeding(cancel, progress))

    def rebuild(
        self, name: str, settings: Mapping[str, str], *, progress: Progress = no_progress, cancel: Event | None = None
    ) -> Report:
        """Write all tables of a connection anew with other settings."""
        return self._run([jobs.rebuild(self.connections.preview(name, dict(settings)))], _heeding(cancel, progress))[0]

    def retype(
        self,
        table: str,
        column: str,
        new_type: str,
        *,
        lake: str = DEFAULT_LAKE,
        progress: Progress = no_progress,
        cancel: Event | None = None,
    ) -> Report | None:
        """Give a column another type, over its whole history; None if it has that type already."""
        job = requests.retype(self.lake(lake), table, column, new_type)
        return self._run([job], _heeding(cancel, progress))[0] if job else None

    def adopt(self, name: str) -> Report:
        """Take over the tables of a Segment or RudderStack lake that are where a connection would make its own."""
        connection = self.connections.get(name)
        return self._run([requests.adopt(self.lake(connection.lake), connection)], no_progress)[0]

    def verify(
        self, *names: str, mend: bool = False, progress: Progress = no_progress, cancel: Event | None = None
    ) -> dict[str, list[Finding]]:
        """What differs between archive, files, catalog and books, by connection; empty lists are good news."""
        heed = _heeding(cancel, progress)

        def attempt(connection: Connection) -> list[Finding]:
            with self._runner(connection) as runner:
                return mended(self, connection, runner, heed) if mend else verify(self, connection, runner, heed)

        return verified_each(self, names, attempt)

    def query(self, sql: str, *, lake: str = DEFAULT_LAKE, timeout: float | None = None) -> pa.Table:
        """The rows that a query gives. Tables are called `<database>.<table>`."""
        return query(self.lake(lake), sql, timeout=timeout)

    def send_sample(self, channel: str) -> None:
        """Let a channel deliver something that looks like an alert, now; its kind says that it is none."""
        from eventlake.alerts import channels  # noqa: PLC0415 - what speaks to mail servers takes its time to load

        sample = Message(uuid.uuid4().hex, self.clock.now(), SAMPLE, None, None, *_SAMPLE_WORDS, link="/alerts")
        try:
            channels.send(self.settings.channels[channel], sample, self.settings.console.url)
        except channels.NotDeliveredError as error:
            raise TransientError(
                f"{channel} did not take it: {error}", fix=f"check [channels.{channel}] in eventlake.toml"
            ) from error

    def stop(self, run_id: str) -> bool:
        """Let a run end before its commit, wherever it goes on; False if it has ended."""
        return self.runs.ask_to_stop(run_id)

    def tables(self, lake: str = DEFAULT_LAKE) -> list[CatalogTable]:
        return self.lake(lake).catalog.tables()

    def spark_views(self, session: Any, *, lake: str = DEFAULT_LAKE) -> list[str]:
        """Let a SparkSession see the tables of a lake as `<database>.<table>`, as they are now; their names.

        Native Parquet tables over exactly the files that the ledger knows, and views over them where connections ask
        for those of a warehouse. Call it again to see what came since.
        """
        return register(session, *spark_tables(self.lake(lake)))

    def _runner(self, connection: Connection) -> AbstractContextManager[Runner]:
        cluster_id = connection.settings.emr_cluster_id
        return nullcontext(self._given) if self._given else self._runners.of(connection.lake, cluster_id)

    def _run(self, work: Iterable[Job], progress: Progress) -> list[Report]:
        reports, failed = [], []
        for job in work:
            try:
                refuse_wrong_lake(self, job)
                with self._runner(job.connection) as runner:
                    for lines in carry_out(self, job, runner, progress):
                        reports.append(Report(job.connection.name, lines))
            except CancelledError:
                raise  # it was meant for all
            except EventLakeError as error:
                failed.append(error)
        if failed:
            raise failed[0]
        return reports


def open(  # noqa: A001 - it is called eventlake.open
    folder: str | Path | None = None, *, settings: Mapping[str, Any] | None = None, spark: Any = None
) -> Workspace:
    """Open the workspace in a folder, or one that has these settings and no folder.

    A folder that has no workspace is refused: `eventlake.create` makes one. With `spark`, a SparkSession, all runs use
    it. Paths in settings that are given begin at the current folder; with a database on a server and a lake in a bucket
    nothing is written here.
    """
    if (folder is None) == (settings is None):
        raise InvalidSettingsError("a workspace has a folder, or settings that are given", fix="give one of them")
    if settings is not None:
        found = Workspace(Path.cwd(), opened.read_settings(settings, "settings"))
        found.has_folder = False  # what another workspace's collector holds there is not its own
        if DEFAULT_LAKE in found.settings.wrong_lakes:
            raise found.connections.no_lake(DEFAULT_LAKE)
    else:
        found = Workspace.open(Path(str(folder)))
    if spark is not None:
        found.use_spark(spark)
    return found


def create(folder: str | Path) -> Workspace:
    """Make a workspace in a folder, with the embedded defaults, and open it."""
    return Workspace.create(Path(folder))


def _heeding(cancel: Event | None, progress: Progress) -> Progress:
    """Progress that ends the run, before its commit, when somebody wants that."""

    def heed(step: str, done: int, of: int) -> None:
        if cancel and cancel.is_set():
            raise CancelledError("the run was cancelled; nothing of it was published", fix="run it again at any time")
        progress(step, done, of)

    return heed


def _micros(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime):
        raise InvalidSettingsError(f"{moment!r} is not a time", fix="give a datetime.datetime with a time zone")
    if moment.tzinfo is None:
        raise InvalidSettingsError(f"{moment} has no time zone", fix="give one, for example tzinfo=datetime.UTC")
    return round(moment.timestamp() * 1_000_000)
