"""What the HTTP API takes and gives, as its OpenAPI document tells."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from eventlake.control.orders import Order
from eventlake.control.run_lines import RunLine
from eventlake.events import instants
from eventlake.status.connections import ConnectionStatus
from eventlake.web.checks import Check

MOMENT = Annotated[str, Field(description="UTC, as 2026-11-17T12:00:00Z.", examples=["2026-11-17T12:00:00Z"])]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$", examples=["web"])]


def moment(micros: int | None) -> str | None:
    return None if micros is None else instants.to_text(micros)


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Problem(Model):
    """What went wrong, and what to do."""

    code: str
    problem: str
    fix: str
    fields: dict[str, str] = Field(default_factory=dict, description="What is wrong with which setting.")


class SourceOut(Model):
    id: str
    slug: str
    name: str
    enabled: bool = Field(description="Else its events are refused.")


class NewSource(Model):
    slug: Slug
    name: str | None = Field(None, max_length=200)
    lake: str = Field("default", max_length=50)


class SourceWithKey(SourceOut):
    write_key: str = Field(description="Shown once; it cannot be shown again.")


class Switch(Model):
    enabled: bool


class KeyOut(Model):
    hash: str
    created_at: MOMENT


class WriteKeyOut(Model):
    write_key: str = Field(description="Shown once; it cannot be shown again.")


class LakeOut(Model):
    name: str
    root: str
    dialect: str
    catalog: str
    runner: str


class RunOut(Model):
    run_id: str
    source: str
    lake: str
    kind: str
    status: Literal["running", "finished", "failed"]
    outcome: str = Field(description="Success, Partial Success, Failed, or how far it is.")
    step: str
    steps: list[tuple[str, MOMENT]] = Field(description="Those that were begun, and when.")
    done: int = Field(description="Tasks of the step that are done.")
    tasks: int
    started_at: MOMENT
    finished_at: MOMENT | None
    lines: int | None
    loaded: int | None
    duplicates: int | None
    suppressed: int | None
    blocked: int | None
    quarantined: int | None
    rescued: int | None
    error_code: str | None
    fix: str | None = Field(description="What to do about the error.")
    notices: list[str]

    @classmethod
    def of(cls, run: RunLine, slugs: dict[str, str]) -> "RunOut":
        return cls(
            **run.counts._asdict() if run.lines is not None else dict.fromkeys(run.counts._fields),
            run_id=run.run_id,
            source=slugs.get(run.source_id, run.source_id),
            lake=run.lake,
            kind=run.kind,
            status=run.status,
            outcome=run.outcome,
            step=run.step,
            steps=[(name, instants.to_text(at)) for name, at in run.steps or ()],
            done=run.done,
            tasks=run.tasks,
            started_at=instants.to_text(run.started_at),
            finished_at=moment(run.finished_at),
            error_code=run.error_code,
            fix=run.fix,
            notices=run.notices or [],
        )


class ConnectionOut(Model):
    name: str
    source: str
    lake: str
    enabled: bool
    state: Literal["disabled", "running", "waiting", "stopped", "failed", "partial", "well"]
    failures: int = Field(description="Syncs that failed in a row, until now.")
    last_sync: RunOut | None
    last_finished_at: MOMENT | None
    next_sync_at: MOMENT | None
    settings: dict[str, Any]

    @classmethod
    def of(cls, one: ConnectionStatus) -> "ConnectionOut":
        connection = one.connection
        slugs = {connection.source.id: connection.source.slug}
        return cls(
            name=connection.full_name,
            source=connection.source.slug,
            lake=connection.lake,
            enabled=connection.enabled,
            state=one.state,
            failures=one.failures,
            last_sync=RunOut.of(one.last, slugs) if one.last else None,
            last_finished_at=moment(one.last_finished.finished_at) if one.last_finished else None,
            next_sync_at=moment(one.next_at),
            settings=connection.settings.model_dump(mode="json"),
        )


Value = str | int | float | bool | None


class NewConnection(Model):
    source: Slug
    lake: str = Field(max_length=50)
    like: str | None = Field(None, max_length=200, description="SOURCE/LAKE whose settings are copied.")
    settings: dict[str, Value] = Field(default_factory=dict)


class ConnectionChange(Model):
    enabled: bool | None = None
    settings: dict[str, Value] = Field(default_factory=dict)
    like: str | None = Field(None, max_length=200, description="SOURCE/LAKE whose settings are copied.")


class NewReplay(Model):
    start: MOMENT | None = Field(None, description="Time of receipt; by default the beginning.")
    stop: MOMENT | None = Field(None, description="Not included; by default now.")
    events: list[Annotated[str, Field(max_length=1000)]] = Field(
        default_factory=list, max_length=1000, description="Only these events or calls."
    )
    resume: bool = Field(False, description="Go on with a replay that was interrupted.")


class ReplaySize(Model):
    """What a replay of a period would read."""

    raw_files: int
    bytes: int
    lines: int


class OrderOut(Model):
    id: str
    source: str
    lake: str
    kind: str
    status: Literal["waiting", "running", "done", "failed", "cancelled"]
    asked_by: str
    asked_at: MOMENT
    finished_at: MOMENT | None
    run_id: str | None
    problem: str | None
    fix: str | None

    @classmethod
    def of(cls, order: Order, slugs: dict[str, str]) -> "OrderOut":
        return cls(
            id=order.id,
            source=slugs.get(order.source_id, order.source_id),
            lake=order.lake,
            kind=order.kind,
            status=order.status,
            asked_by=order.asked_by,
            asked_at=instants.to_text(order.asked_at),
            finished_at=moment(order.finished_at),
            run_id=order.run_id,
            problem=order.problem,
            fix=order.fix,
        )


class FunnelOut(Model):
    """What came, and what became of the lines that syncs read: lines = loaded + … + quarantined."""

    received: int
    accepted: int
    refused: int
    copies: int
    lines: int
    loaded: int
    duplicates: int
    suppressed: int
    blocked: int
    quarantined: int
    rescued: int


class DayOut(Model):
    day: str
    rows: int


class PartOut(Model):
    kind: str
    host: str
    pid: int
    since: MOMENT


class HealthOut(Model):
    status: Literal["well", "needs attention"]
    version: str
    parts: list[PartOut]
    matters: list[str] = Field(description="What somebody should look at.")


def settings_given(values: dict[str, Value]) -> dict[str, str]:
    """Settings as the command line would give them."""
    return {key: _text(value) for key, value in values.items()}


def _text(value: Value) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


class CheckStepOut(Model):
    step: str
    status: Literal["passed", "failed", "skipped"]
    detail: str
    fix: str


class CheckOut(Model):
    status: Literal["running", "passed", "failed"]
    steps: list[CheckStepOut] = Field(description="Those that have ended.")
    waiting: list[str] = Field(description="Those that have not; the first is being tried.")

    @classmethod
    def of(cls, check: Check) -> "CheckOut":
        status = "running" if not check.is_over else "passed" if check.has_passed else "failed"
        steps = [CheckStepOut(**{name: step[name] for name in CheckStepOut.model_fields}) for step in check.steps]
        return cls(status=status, steps=steps, waiting=check.waiting)
