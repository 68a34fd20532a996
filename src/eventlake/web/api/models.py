"""What the HTTP API takes and gives, as its OpenAPI document tells."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from eventlake.control.alerts import Alert, Delivery, Kind, Subscription
from eventlake.control.audit_log import Entry
from eventlake.control.connections import Connection
from eventlake.control.orders import Order
from eventlake.control.people import Scope
from eventlake.control.runs import RunLine
from eventlake.events import instants
from eventlake.status.connections import ConnectionStatus
from eventlake.status.events import SeenEvent
from eventlake.status.listing import ListedTable

MOMENT = Annotated[str, Field(description="UTC, as 2026-11-17T12:00:00Z.", examples=["2026-11-17T12:00:00Z"])]
Slug = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,99}$", examples=["web"])]


def moment(micros: int | None) -> str | None:
    return None if micros is None else instants.to_text(micros)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Problem(_Model):
    """What went wrong, and what to do."""

    code: str
    problem: str
    fix: str
    fields: dict[str, str] = Field(default_factory=dict, description="What is wrong with which setting.")


class SourceOut(_Model):
    id: str
    slug: str
    name: str
    enabled: bool = Field(description="Else its events are refused.")


class NewSource(_Model):
    slug: Slug
    name: str | None = Field(None, max_length=200)
    lake: str = Field("default", max_length=50)


class SourceWithKey(SourceOut):
    write_key: str = Field(description="Shown once; it cannot be shown again.")


class Switch(_Model):
    enabled: bool


class KeyOut(_Model):
    hash: str
    created_at: MOMENT


class WriteKeyOut(_Model):
    write_key: str = Field(description="Shown once; it cannot be shown again.")


class EventOut(_Model):
    received_at: MOMENT | None
    outcome: Literal["refused", "accepted", "archived", "loaded"]
    detail: str
    type: str
    name: str
    message_id: str
    table: str
    run_id: str
    text: str

    @classmethod
    def of(cls, one: SeenEvent) -> "EventOut":
        return cls(
            received_at=moment(one.received) if one.received else None,
            outcome=one.outcome,
            detail=one.detail,
            type=one.kind,
            name=one.name,
            message_id=one.message_id,
            table=one.table,
            run_id=one.run_id,
            text=one.text,
        )


class RejectOut(_Model):
    time: str
    source: str | None
    code: str
    message: str
    sample: str


class LakeOut(_Model):
    name: str
    root: str
    dialect: str
    catalog: str
    runner: str


class RunOut(_Model):
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
            notices=run.notices or [],
        )


class ConnectionOut(_Model):
    name: str
    source: str
    lake: str
    enabled: bool
    state: Literal["disabled", "running", "waiting", "failed", "partial", "well"]
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


class NewConnection(_Model):
    source: Slug
    lake: str = Field(max_length=50)
    like: str | None = Field(None, max_length=200, description="SOURCE/LAKE whose settings are copied.")
    settings: dict[str, Value] = Field(default_factory=dict)


class ConnectionChange(_Model):
    enabled: bool | None = None
    settings: dict[str, Value] = Field(default_factory=dict)
    like: str | None = Field(None, max_length=200, description="SOURCE/LAKE whose settings are copied.")


class NewReplay(_Model):
    start: MOMENT | None = Field(None, description="Time of receipt; by default the beginning.")
    stop: MOMENT | None = Field(None, description="Not included; by default now.")
    events: list[Annotated[str, Field(max_length=1000)]] = Field(
        default_factory=list, max_length=1000, description="Only these events or calls."
    )
    resume: bool = Field(False, description="Go on with a replay that was interrupted.")


class ReplaySize(_Model):
    """What a replay of a period would read."""

    raw_files: int
    bytes: int
    lines: int


class OrderOut(_Model):
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


class FunnelOut(_Model):
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


class DayOut(_Model):
    day: str
    rows: int


class TableOut(_Model):
    lake: str
    name: str
    columns: int
    files: int
    rows: int
    bytes: int
    last_received_at: MOMENT | None

    @classmethod
    def of(cls, table: ListedTable) -> "TableOut":
        return cls(
            lake=table.lake,
            name=table.full_name,
            columns=table.columns,
            files=table.files,
            rows=table.rows,
            bytes=table.bytes,
            last_received_at=moment(table.last_received),
        )


class TablePage(_Model):
    total: int
    tables: list[TableOut]


class ColumnOut(_Model):
    name: str
    type: str
    pointer: str = Field(description="Where in the event it comes from.")
    added_at: MOMENT | None
    added_run: str | None


class SchemaChangeOut(_Model):
    at: MOMENT
    run_id: str
    column: str
    change: str
    type: str
    old_type: str | None


class TableDetails(_Model):
    lake: str
    name: str
    source: str
    partition_keys: list[str]
    location: str
    columns: list[ColumnOut]


class MisfitOut(_Model):
    column: str
    reason: str
    values: int
    examples: list[str]


class RetypeRequest(_Model):
    column: str = Field(max_length=300)
    type: str = Field(max_length=30, examples=["decimal(38,6)"])


class PreviewOut(_Model):
    """What another type would do to a column, by its newest values."""

    rescued: int
    would_fit: int
    values: int
    would_not: int


class QueryRequest(_Model):
    sql: str = Field(max_length=20_000, examples=["select count(*) from web.page"])
    lake: str = Field("default", max_length=50)
    limit: int = Field(1000, ge=1, le=10_000)


class QueryOut(_Model):
    columns: list[str]
    types: list[str]
    rows: list[list[Any]]
    is_cut: bool = Field(description="Whether there are more rows than the limit.")


class BadLineOut(_Model):
    lake: str
    source: str
    run_id: str
    raw_file: str
    line: int
    reason: str
    detail: str
    size: int
    text: str


class DeliveryOut(_Model):
    channel: str
    attempts: int
    delivered_at: MOMENT | None
    problem: str | None

    @classmethod
    def of(cls, one: Delivery) -> "DeliveryOut":
        return cls(
            channel=one.channel, attempts=one.attempts, delivered_at=moment(one.delivered_at), problem=one.problem
        )


class AlertOut(_Model):
    id: str
    at: MOMENT
    kind: Kind
    source: str | None
    lake: str | None
    subject: str
    body: str
    link: str
    deliveries: list[DeliveryOut]

    @classmethod
    def of(cls, alert: Alert, slugs: dict[str, str], deliveries: list[Delivery]) -> "AlertOut":
        return cls(
            id=alert.id,
            at=instants.to_text(alert.at),
            kind=alert.kind,
            source=slugs.get(alert.source_id or "", alert.source_id),
            lake=alert.lake,
            subject=alert.subject,
            body=alert.body,
            link=alert.link,
            deliveries=[DeliveryOut.of(one) for one in deliveries if one.alert_id == alert.id],
        )


class ChannelOut(_Model):
    name: str
    kind: str


class NewSubscription(_Model):
    kind: Kind
    channel: str = Field(max_length=50)
    source: Slug | None = None
    threshold: float | None = Field(None, gt=0, le=100_000)


class SubscriptionOut(_Model):
    id: str
    kind: Kind
    channel: str
    source: str | None
    threshold: float | None

    @classmethod
    def of(cls, one: Subscription, slugs: dict[str, str]) -> "SubscriptionOut":
        source = slugs.get(one.source_id, one.source_id) if one.source_id else None
        return cls(id=one.id, kind=one.kind, channel=one.channel, source=source, threshold=one.threshold)


class NewToken(_Model):
    name: str = Field(min_length=1, max_length=100)
    scope: Scope


class TokenOut(_Model):
    id: str
    name: str
    scope: Scope
    made_by: str
    created_at: MOMENT
    used_at: MOMENT | None


class TokenWithSecret(TokenOut):
    token: str = Field(description="Shown once; it cannot be shown again.")


class UserOut(_Model):
    name: str
    role: Scope
    created_at: MOMENT


class Invitation(_Model):
    role: Scope


class InvitationOut(_Model):
    link: str = Field(description="By which somebody becomes a user, once, within a day.")


class AuditOut(_Model):
    id: int
    at: MOMENT
    who: str
    action: str
    target: str
    before: Any
    after: Any

    @classmethod
    def of(cls, entry: Entry) -> "AuditOut":
        return cls(**{**entry._asdict(), "at": instants.to_text(entry.at)})


class PartOut(_Model):
    kind: str
    host: str
    pid: int
    since: MOMENT


class HealthOut(_Model):
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


def slugs_of(connections: list[Connection]) -> dict[str, str]:
    return {one.source.id: one.source.slug for one in connections}
