"""Runs without their reports: lists of them, sums over many, and what the last ones came to."""

from collections.abc import Collection
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.errors import CancelledError, GivenUpError, NotFoundError


class Counts(NamedTuple):
    """What became of lines, and how many values were rescued: of one run, or the sum over some."""

    lines: int = 0
    loaded: int = 0
    duplicates: int = 0
    suppressed: int = 0
    blocked: int = 0
    quarantined: int = 0
    rescued: int = 0


class RunLine(NamedTuple):
    """A run without its report, for lists."""

    run_id: str
    lake: str
    source_id: str
    kind: str  # sync, replay, rebuild, drop
    status: str  # running, finished, failed
    step: str
    started_at: int
    finished_at: int | None
    lines: int | None = None
    loaded: int | None = None
    duplicates: int | None = None
    suppressed: int | None = None
    blocked: int | None = None
    quarantined: int | None = None
    rescued: int | None = None
    partial: bool = False  # some raw files could not be read
    error_code: str | None = None
    fix: str | None = None  # what to do about the error
    notices: list[str] | None = None  # and, of a run that failed, the error
    steps: list[list[Any]] | None = None  # those that were begun: name, and when
    done: int = 0  # tasks of the step
    tasks: int = 0
    stop_asked: bool = False

    @property
    def outcome(self) -> str:
        """The word that Segment's sync history has for it."""
        if self.status == "running":
            return f"Running: {self.step}"
        if self.status == "failed":
            return "Stopped" if self.error_code in STOPPED else "Failed"
        return "Partial Success" if self.partial else "Success"

    @property
    def counts(self) -> Counts:
        return Counts(*(getattr(self, name) or 0 for name in Counts._fields))


class LastLoaded(NamedTuple):
    """When the last sync ended that loaded something; or, if none ever did, when the connection was made."""

    at: int
    ever: bool


def told_by(report: list[dict[str, Any]] | None) -> dict[str, Any]:
    """What is kept of a report beside it, for lists and sums over many runs."""
    head = report[0] if report else {}
    books = {**head.get("books", {}), "rescued": head.get("rescued")}
    notices = [*head.get("notices", ()), *([head["error"]] if "error" in head else ())]
    return {
        **{name: books.get(name) for name in db.COUNTS},
        "partial": bool(head.get("failed_files")),
        "error_code": head.get("error_code"),
        "fix": head.get("fix"),
        "notices": notices or None,
    }


Connections = Collection[tuple[str, str]]
"""By source id and lake."""

_LINE = [db.runs.c[name] for name in RunLine._fields]
STOPPED = (CancelledError.code, GivenUpError.code)  # the codes of runs that did not fail by themselves
_NOT_STOPPED = sa.func.coalesce(db.runs.c.error_code, "").not_in(STOPPED)


def _of(source_id: str, lake: str) -> tuple[sa.ColumnElement[bool], ...]:
    return db.runs.c.source_id == source_id, db.runs.c.lake == lake


def _among(connections: Connections | None) -> list[sa.ColumnElement[bool]]:
    here = sa.tuple_(db.connections.c.source_id, db.connections.c.lake)
    return [] if connections is None else [here.in_(list(connections))]


class RunLines:
    """What a workspace database knows of runs, of one lake or of all, without reading reports."""

    def __init__(self, engine: sa.Engine, lake: str | None = None) -> None:
        self._engine = engine
        self._lake = lake

    def lines(
        self,
        limit: int | None,
        source_id: str | None = None,
        *,
        before: str | None = None,
        status: str | None = None,
        kinds: Collection[str] = (),
        begun: tuple[int, int] | None = None,
        having: str | None = None,
    ) -> list[RunLine]:
        """The newest runs without their reports, newest first; those before a run.

        Of those, the ones that began in a period, or that counted something, like `duplicates`.
        """
        wanted = [db.runs.c.source_id == source_id] if source_id else []
        wanted += [db.runs.c.run_id < before] if before else []
        wanted += [db.runs.c.status == status] if status else []
        wanted += [db.runs.c.kind.in_(kinds)] if kinds else []
        wanted += [db.runs.c.started_at >= begun[0], db.runs.c.started_at < begun[1]] if begun else []
        wanted += [db.runs.c[having] > 0] if having else []
        return self._lines(limit, *wanted)

    def _lines(self, limit: int | None, *conditions: sa.ColumnElement[bool]) -> list[RunLine]:
        query = sa.select(*_LINE).where(*self._here(), *conditions).order_by(db.runs.c.run_id.desc())
        with self._engine.connect() as connection:
            return [RunLine(*row) for row in connection.execute(query.limit(limit))]

    def line(self, run_id: str) -> RunLine:
        """One run without its report."""
        with self._engine.connect() as connection:
            found = connection.execute(sa.select(*_LINE).where(*self._here(), db.runs.c.run_id == run_id)).first()
        if found is None:
            raise no_run(run_id)
        return RunLine(*found)

    def counts(
        self, start: int, stop: int, *, per: int, source_id: str | None = None, kinds: Collection[str] = ("sync",)
    ) -> dict[tuple[int, str, str], Counts]:
        """What runs that began in [start, stop) came to: (beginning of the period, source, lake) → sums.

        Periods are of `per` microseconds each.
        """
        table = db.runs.c
        period = (table.started_at // per * per).label("period")
        conditions = [table.started_at >= start, table.started_at < stop, table.kind.in_(kinds)]
        conditions += [table.source_id == source_id] if source_id else []
        sums = [sa.func.coalesce(sa.func.sum(table[name]), 0) for name in Counts._fields]
        query = sa.select(period, table.source_id, table.lake, *sums).where(*self._here(), *conditions)
        with self._engine.connect() as connection:
            rows = connection.execute(query.group_by(period, table.source_id, table.lake)).all()
        return {(int(row[0]), row[1], row[2]): Counts(*map(int, row[3:])) for row in rows}

    def rows(self, start: int, stop: int, *, per: int, source_id: str | None = None) -> dict[int, int]:
        """Rows that syncs loaded which began in [start, stop): beginning of each period → how many."""
        table = db.runs.c
        period = (table.started_at // per * per).label("period")
        conditions = [table.started_at >= start, table.started_at < stop, table.kind == "sync"]
        conditions += [table.source_id == source_id] if source_id else []
        query = sa.select(period, sa.func.coalesce(sa.func.sum(table.loaded), 0)).where(*self._here(), *conditions)
        with self._engine.connect() as connection:
            return {int(row[0]): int(row[1]) for row in connection.execute(query.group_by(period))}

    def last_sync(self, source_id: str, lake: str) -> RunLine | None:
        """The sync that was begun last."""
        return next(iter(self._lines(1, *_of(source_id, lake), db.runs.c.kind == "sync")), None)

    def last_of_each(
        self, *, status: str | None = None, among: Connections | None = None
    ) -> dict[tuple[str, str], RunLine]:
        """The sync of each connection that was begun last, or the last with a status: (source id, lake) → run.

        Of all connections, or of some. To find that one has no run with a status, all its runs are looked at.
        """
        table, of = db.runs.c, db.connections.c
        wanted = [table.kind == "sync", table.source_id == of.source_id, table.lake == of.lake]
        wanted += [table.status == status] if status else []
        newest = sa.select(table.run_id).where(*self._here(), *wanted).order_by(table.run_id.desc()).limit(1)
        with self._engine.connect() as connection:  # one look at an index for each connection, however many runs
            of_each = sa.select(newest.correlate(db.connections).scalar_subquery()).select_from(db.connections)
            rows = connection.execute(of_each.where(*_among(among))).scalars()
            ids = [run_id for run_id in rows if run_id is not None]
        found = [
            run
            for start in range(0, len(ids), 500)
            for run in self._lines(None, table.run_id.in_(ids[start : start + 500]))
        ]
        return {(run.source_id, run.lake): run for run in found}

    def failures_of_each(self, *, among: Connections | None = None) -> dict[tuple[str, str], int]:
        """How many of the last syncs of each connection failed in a row, without those that somebody stopped."""
        of, table = db.connections.c, db.runs.c
        syncs = (table.source_id == of.source_id, table.lake == of.lake, table.kind == "sync")
        finished = sa.select(table.run_id).where(*syncs, table.status == "finished").order_by(table.run_id.desc())
        since = sa.func.coalesce(finished.limit(1).correlate(db.connections).scalar_subquery(), "")
        failed = sa.select(sa.func.count()).where(*syncs, table.run_id > since, table.status == "failed", _NOT_STOPPED)
        query = sa.select(of.source_id, of.lake, failed.correlate(db.connections).scalar_subquery())
        with self._engine.connect() as connection:
            rows = connection.execute(query.select_from(db.connections).where(*_among(among))).all()
        return {(row[0], row[1]): int(row[2]) for row in rows}

    def failures_until(self, run: RunLine) -> int:
        """How many syncs before a run failed one after the other; those that somebody stopped do not count."""
        before = (*_of(run.source_id, run.lake), db.runs.c.kind == "sync", db.runs.c.run_id < run.run_id)
        finished = sa.select(sa.func.max(db.runs.c.run_id)).where(*before, db.runs.c.status == "finished")
        later = db.runs.c.run_id > sa.func.coalesce(finished.scalar_subquery(), "")
        query = sa.select(sa.func.count()).where(*before, later, db.runs.c.status == "failed", _NOT_STOPPED)
        with self._engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def ended_after(self, moment: int) -> list[RunLine]:
        """The runs that ended later than this, the first that ended first."""
        found = self._lines(None, db.runs.c.finished_at > moment)
        return sorted(found, key=lambda run: (run.finished_at or 0, run.run_id))

    def last_loaded(self) -> dict[tuple[str, str], LastLoaded]:
        """When something of each connection was last loaded: (source id, lake) → that."""
        table, of = db.runs.c, db.connections.c
        on = sa.and_(table.source_id == of.source_id, table.lake == of.lake, table.kind == "sync", table.loaded > 0)
        query = sa.select(of.source_id, of.lake, of.created_at, sa.func.max(table.finished_at)).where(*self._here())
        query = query.select_from(sa.outerjoin(db.connections, db.runs, on))
        with self._engine.connect() as connection:
            rows = connection.execute(query.group_by(of.source_id, of.lake, of.created_at)).all()
        return {(row[0], row[1]): LastLoaded(row[3] or row[2], row[3] is not None) for row in rows}

    def ask_to_stop(self, run_id: str) -> bool:
        """Let a run end when it next tells how far it is; False if it has ended."""
        going = sa.and_(db.runs.c.run_id == run_id, db.runs.c.status == "running")
        with self._engine.begin() as connection:
            return connection.execute(db.runs.update().where(going).values(stop_asked=True)).rowcount == 1

    def _here(self) -> list[sa.ColumnElement[bool]]:
        return [db.runs.c.lake == self._lake] if self._lake else []


def no_run(run_id: str | None) -> NotFoundError:
    problem = f"there is no run {run_id}" if run_id else "there is no run yet"
    return NotFoundError(problem, fix="see `eventlake runs`, or start one with `eventlake sync`")
