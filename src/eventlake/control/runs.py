"""The history of runs."""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.control.run_lines import RunLine, RunLines, no_run, told_by
from eventlake.errors import InternalError


class Run(NamedTuple):
    run_id: str
    lake: str
    source_id: str
    kind: str
    status: str
    step: str
    started_at: int
    finished_at: int | None
    report: list[dict[str, Any]] | None

    @property
    def line(self) -> RunLine:
        """What lists tell of it."""
        return RunLine(*self[:-1], **told_by(self.report))

    @property
    def outcome(self) -> str:
        return self.line.outcome


_RUN = [db.runs.c[name] for name in Run._fields]


class History(RunLines):
    """The runs that a workspace database knows, of one lake or of all. Their ids are unique over all lakes."""

    def unfinished(self, source_id: str | None = None) -> list[Run]:
        of_source = [db.runs.c.source_id == source_id] if source_id else []
        return self._select(db.runs.c.status == "running", *of_source)

    def latest(self, limit: int | None, source_id: str | None = None) -> list[Run]:
        """The newest runs, newest first; all of them if there is no limit."""
        return self._select(*([db.runs.c.source_id == source_id] if source_id else []), limit=limit)

    def failed_last(self, source_id: str) -> list[Run]:
        """The runs of a source that failed since the last one that finished."""
        of_source = db.runs.c.source_id == source_id
        query = sa.select(sa.func.max(db.runs.c.run_id)).where(*self._here(), of_source, db.runs.c.status == "finished")
        later = db.runs.c.run_id > sa.func.coalesce(query.scalar_subquery(), "")
        return self._select(of_source, db.runs.c.status == "failed", later)

    def ids_of(self, source_id: str) -> set[str]:
        """The ids of all runs of a source."""
        query = sa.select(db.runs.c.run_id).where(*self._here(), db.runs.c.source_id == source_id)
        with self._engine.connect() as connection:
            return set(connection.execute(query).scalars())

    def adoptions(self, source_id: str) -> set[str]:
        """The ids of the runs that took tables over for a source."""
        is_one = sa.and_(db.runs.c.source_id == source_id, db.runs.c.kind == "adopt", db.runs.c.status == "finished")
        with self._engine.connect() as connection:
            return set(connection.scalars(sa.select(db.runs.c.run_id).where(*self._here(), is_one)))

    def any_finished(self) -> bool:
        query = sa.select(db.runs.c.run_id).where(*self._here(), db.runs.c.status == "finished").limit(1)
        with self._engine.connect() as connection:
            return connection.execute(query).first() is not None

    def with_id(self, run_id: str) -> list[Run]:
        """The run with this id, if it is known."""
        return self._select(db.runs.c.run_id == run_id)

    def with_ids(self, run_ids: Collection[str]) -> list[Run]:
        """Those of these runs that are known, newest first."""
        return self._select(db.runs.c.run_id.in_(run_ids))

    def get(self, run_id: str | None) -> Run:
        """One run; without an id, the latest."""
        found = self.with_id(run_id) if run_id else self._select(limit=1)
        if not found:
            raise no_run(run_id)
        return found[0]

    def begun_between(self, source_id: str, start: int, stop: int) -> list[Run]:
        """The runs of a source that began in [start, stop), with their reports, newest first."""
        table = db.runs.c
        return self._select(table.source_id == source_id, table.started_at >= start, table.started_at < stop)

    def _select(self, *conditions: sa.ColumnElement[bool], limit: int | None = None) -> list[Run]:
        query = sa.select(*_RUN).where(*self._here(), *conditions).order_by(db.runs.c.run_id.desc())
        with self._engine.connect() as connection:
            return [Run(*row) for row in connection.execute(query.limit(limit))]


class Runs(History):
    """The runs of a lake, and how they go on."""

    def __init__(self, engine: sa.Engine, now: Callable[[], int], lake: str) -> None:
        super().__init__(engine, lake)
        self._now = now

    def start(self, source_id: str, kind: str, now_ns: int) -> str:
        """Note that a run begins; returns its id: the time, or the next free number if the clock went backward."""
        row: dict[str, Any] = {"lake": self._lake, "source_id": source_id, "kind": kind}
        row |= {"status": "running", "step": "discover", "steps": [["discover", now_ns // 1000]]}
        for _ in range(100):
            with suppress(sa.exc.IntegrityError), self._engine.begin() as connection:  # another run was quicker
                newest = connection.execute(sa.select(sa.func.max(db.runs.c.run_id))).scalar()
                run_id = f"{max(now_ns, int(newest or 0) + 1):019d}"  # ids are compared as text
                connection.execute(db.runs.insert().values(**row, run_id=run_id, started_at=now_ns // 1000))
                return run_id
        raise InternalError(f"no free id for a run of {source_id}", fix="check the workspace database")

    def restore(self, runs: Iterable[Run]) -> None:
        """Put runs back that the database had lost, all at once."""
        with self._engine.begin() as connection:
            db.upsert(connection, db.runs, [run._asdict() | told_by(run.report) for run in runs])

    def at_step(self, run_id: str, step: str) -> None:
        """Note that a step begins."""
        here = db.runs.c.run_id == run_id
        with self._engine.begin() as connection:
            steps = connection.execute(sa.select(db.runs.c.steps).where(here)).scalar() or []
            begun = [*steps, [step, self._now()]]
            connection.execute(db.runs.update().where(here).values(step=step, steps=begun, done=0, tasks=0))

    def progress(self, run_id: str, done: int, tasks: int) -> bool:
        """Note how far the step is; whether somebody wants the run to end."""
        here = db.runs.c.run_id == run_id
        with self._engine.begin() as connection:
            connection.execute(db.runs.update().where(here).values(done=done, tasks=tasks))
            return bool(connection.execute(sa.select(db.runs.c.stop_asked).where(here)).scalar())

    def finished(self, run_id: str, report: list[dict[str, Any]], at: int) -> None:
        self._update(run_id, status="finished", report=report, finished_at=at, **told_by(report))

    def failed(self, run_id: str, report: list[dict[str, Any]]) -> None:
        self._update(run_id, status="failed", report=report, finished_at=self._now(), **told_by(report))

    def delayed(self, run_id: str, report: list[dict[str, Any]]) -> bool:
        """Note why a run cannot be finished now; False if it is finished, but for some cleaning."""
        unfinished = sa.and_(db.runs.c.run_id == run_id, db.runs.c.status == "running")
        with self._engine.begin() as connection:
            noted = connection.execute(db.runs.update().where(unfinished).values(step="commit", report=report))
            return noted.rowcount == 1

    def _update(self, run_id: str, **values: Any) -> None:
        with self._engine.begin() as connection:
            connection.execute(db.runs.update().where(db.runs.c.run_id == run_id).values(**values))
