"""The history of runs."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import sqlalchemy as sa

from eventlake.control import database as db
from eventlake.errors import InternalError, NotFoundError


class Run(NamedTuple):
    run_id: str
    lake: str
    source_id: str
    kind: str  # sync, replay, rebuild, drop
    status: str  # running, finished, failed
    step: str
    started_at: int
    finished_at: int | None
    report: list[dict[str, Any]] | None

    @property
    def outcome(self) -> str:
        """The word that Segment's sync history has for it."""
        if self.status == "running":
            return f"Running: {self.step}"
        if self.status == "failed":
            return "Failed"
        return "Partial Success" if self.report and self.report[0].get("failed_files") else "Success"


class History:
    """The runs that a workspace database knows, of one lake or of all. Their ids are unique over all lakes."""

    def __init__(self, engine: sa.Engine, lake: str | None = None) -> None:
        self._engine = engine
        self._lake = lake

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

    def any_finished(self) -> bool:
        query = sa.select(db.runs.c.run_id).where(*self._here(), db.runs.c.status == "finished").limit(1)
        with self._engine.connect() as connection:
            return connection.execute(query).first() is not None

    def with_id(self, run_id: str) -> list[Run]:
        """The run with this id, if it is known."""
        return self._select(db.runs.c.run_id == run_id)

    def get(self, run_id: str | None) -> Run:
        """One run; without an id, the latest."""
        found = self.with_id(run_id) if run_id else self._select(limit=1)
        if not found:
            problem = f"there is no run {run_id}" if run_id else "there is no run yet"
            raise NotFoundError(problem, fix="see `eventlake runs`, or start one with `eventlake sync`")
        return found[0]

    def _select(self, *conditions: sa.ColumnElement[bool], limit: int | None = None) -> list[Run]:
        query = sa.select(db.runs).where(*self._here(), *conditions).order_by(db.runs.c.run_id.desc())
        with self._engine.connect() as connection:
            return [Run(**row._mapping) for row in connection.execute(query.limit(limit))]

    def _here(self) -> list[sa.ColumnElement[bool]]:
        return [db.runs.c.lake == self._lake] if self._lake else []


class Runs(History):
    """The runs of a lake, and how they go on."""

    def __init__(self, engine: sa.Engine, now: Callable[[], int], lake: str) -> None:
        super().__init__(engine, lake)
        self._now = now

    def start(self, source_id: str, kind: str, now_ns: int) -> str:
        """Note that a run begins; returns its id: the time, or the next free number if the clock went backward."""
        row = {"lake": self._lake, "source_id": source_id, "kind": kind, "status": "running", "step": "discover"}
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
            db.upsert(connection, db.runs, [run._asdict() for run in runs])

    def at_step(self, run_id: str, step: str) -> None:
        self._update(run_id, step=step)

    def finished(self, run_id: str, report: list[dict[str, Any]], at: int) -> None:
        self._update(run_id, status="finished", report=report, finished_at=at)

    def failed(self, run_id: str, report: list[dict[str, Any]]) -> None:
        self._update(run_id, status="failed", report=report, finished_at=self._now())

    def delayed(self, run_id: str, report: list[dict[str, Any]]) -> bool:
        """Note why a run cannot be finished now; False if it is finished, but for some cleaning."""
        unfinished = sa.and_(db.runs.c.run_id == run_id, db.runs.c.status == "running")
        with self._engine.begin() as connection:
            noted = connection.execute(db.runs.update().where(unfinished).values(step="commit", report=report))
            return noted.rowcount == 1

    def _update(self, run_id: str, **values: Any) -> None:
        with self._engine.begin() as connection:
            connection.execute(db.runs.update().where(db.runs.c.run_id == run_id).values(**values))
