"""What was asked about people over the HTTP API, in the words of Segment's."""

import secrets
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

import sqlalchemy as sa

from eventlake.control import policy_tables as tables
from eventlake.control.suppressions import Suppressions
from eventlake.errors import NotFoundError

MOST_SUBJECTS = 5000  # of one request, as Segment has it


class RegulationType(StrEnum):
    SUPPRESS_ONLY = "SUPPRESS_ONLY"
    UNSUPPRESS = "UNSUPPRESS"
    SUPPRESS_WITH_DELETE = "SUPPRESS_WITH_DELETE"
    SUPPRESS_WITH_DELETE_INTERNAL = "SUPPRESS_WITH_DELETE_INTERNAL"
    DELETE_ONLY = "DELETE_ONLY"
    DELETE_INTERNAL = "DELETE_INTERNAL"
    DELETE_ARCHIVE_ONLY = "DELETE_ARCHIVE_ONLY"


class SubjectType(StrEnum):
    USER_ID = "USER_ID"
    ANONYMOUS_ID = "ANONYMOUS_ID"
    OBJECT_ID = "OBJECT_ID"


class Status(StrEnum):
    INITIALIZED = "INITIALIZED"
    INVALID = "INVALID"
    NOT_SUPPORTED = "NOT_SUPPORTED"
    RUNNING = "RUNNING"
    PARTIAL_SUCCESS = "PARTIAL_SUCCESS"
    FAILED = "FAILED"
    FINISHED = "FINISHED"


_PATHS = {SubjectType.USER_ID: "userId", SubjectType.ANONYMOUS_ID: "anonymousId"}
_SUPPRESSING = {
    RegulationType.SUPPRESS_ONLY,
    RegulationType.SUPPRESS_WITH_DELETE,
    RegulationType.SUPPRESS_WITH_DELETE_INTERNAL,
}


class Regulation(NamedTuple):
    id: str
    type: RegulationType
    subject_type: SubjectType
    subjects: int
    source_id: str  # empty for all
    status: Status
    created_at: int
    finished_at: int | None
    asked_by: str


class Regulations:
    def __init__(self, engine: sa.Engine, now: Callable[[], int]) -> None:
        self._engine = engine
        self._suppressions = Suppressions(engine, now)
        self._now = now

    def ask(
        self, kind: RegulationType, subject_type: SubjectType, subjects: Sequence[str], source_id: str, by: str
    ) -> Regulation:
        """Do what is asked for, at once. Nothing is deleted: what is in the lake goes with a replay."""
        begun = self._now()
        with self._engine.begin() as connection:  # nobody is suppressed of whom nothing was asked, nor the other way
            status = self._carried_out(connection, kind, subject_type, subjects, source_id, by)
            asked = (f"reg_{secrets.token_hex(12)}", kind, subject_type, len(subjects), source_id)
            made = Regulation(*asked, status, begun, self._now(), by)
            connection.execute(tables.regulations.insert().values(**made._asdict()))
        return made

    def _carried_out(
        self,
        connection: sa.Connection,
        kind: RegulationType,
        subject_type: SubjectType,
        subjects: Sequence[str],
        source_id: str,
        by: str,
    ) -> Status:
        path = _PATHS.get(subject_type)
        if path is None:
            return Status.INVALID  # there are no objects in a lake of events
        if kind is RegulationType.UNSUPPRESS:
            self._suppressions.remove_within(connection, subjects, path, source_id)
            return Status.FINISHED
        if kind not in _SUPPRESSING:
            return Status.NOT_SUPPORTED
        self._suppressions.add_within(connection, subjects, path, source_id, by)
        return Status.FINISHED if kind is RegulationType.SUPPRESS_ONLY else Status.PARTIAL_SUCCESS

    def latest(self, limit: int = 100) -> list[Regulation]:
        """Newest first."""
        table = tables.regulations
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(table).order_by(table.c.created_at.desc(), table.c.id).limit(limit))
            return [_regulation(row) for row in rows]

    def get(self, regulation_id: str) -> Regulation:
        table = tables.regulations
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(table).where(table.c.id == regulation_id)).one_or_none()
        if row is None:
            raise NotFoundError(f"there is no regulation {regulation_id!r}", fix="see GET /regulations")
        return _regulation(row)


def _regulation(row: "sa.Row[tuple[object, ...]]") -> Regulation:
    fields = dict(row._mapping)
    return Regulation(
        **fields
        | {
            "type": RegulationType(fields["type"]),
            "subject_type": SubjectType(fields["subject_type"]),
            "status": Status(fields["status"]),
        }
    )
