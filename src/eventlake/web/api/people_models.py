"""What the HTTP API takes and gives about alerts and people."""

from typing import Any

from pydantic import Field

from eventlake.control.alerts import Alert, Delivery, Kind, Subscription
from eventlake.control.audit_log import Entry
from eventlake.control.people import Scope
from eventlake.events import instants
from eventlake.web.api.models import MOMENT, Model, Slug, moment


class DeliveryOut(Model):
    channel: str
    attempts: int
    delivered_at: MOMENT | None
    problem: str | None

    @classmethod
    def of(cls, one: Delivery) -> "DeliveryOut":
        return cls(
            channel=one.channel, attempts=one.attempts, delivered_at=moment(one.delivered_at), problem=one.problem
        )


class AlertOut(Model):
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


class ChannelOut(Model):
    name: str
    kind: str


class NewSubscription(Model):
    kind: Kind
    channel: str = Field(max_length=50)
    source: Slug | None = None
    threshold: float | None = Field(None, gt=0, le=100_000)


class SubscriptionOut(Model):
    id: str
    kind: Kind
    channel: str
    source: str | None
    threshold: float | None

    @classmethod
    def of(cls, one: Subscription, slugs: dict[str, str]) -> "SubscriptionOut":
        source = slugs.get(one.source_id, one.source_id) if one.source_id else None
        return cls(id=one.id, kind=one.kind, channel=one.channel, source=source, threshold=one.threshold)


class NewToken(Model):
    name: str = Field(min_length=1, max_length=100)
    scope: Scope


class TokenOut(Model):
    id: str
    name: str
    scope: Scope
    made_by: str
    created_at: MOMENT
    used_at: MOMENT | None


class TokenWithSecret(TokenOut):
    token: str = Field(description="Shown once; it cannot be shown again.")


class UserOut(Model):
    name: str
    role: Scope
    created_at: MOMENT


class Invitation(Model):
    role: Scope


class InvitationOut(Model):
    link: str = Field(description="By which somebody becomes a user, once, within a day.")


class AuditOut(Model):
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
