"""What the HTTP API gives of the last events of a source."""

from typing import Literal

from pydantic import Field

from eventlake.status.events import InLake, SeenEvent
from eventlake.web.api.models import MOMENT, Model, moment

_Outcome = Literal["loaded", "duplicate", "suppressed", "blocked", "quarantined", "read"]


class InLakeOut(Model):
    lake: str
    table: str = Field(description="That its row is in or will be; empty if its source has transformations.")
    outcome: Literal["waiting"] | _Outcome = Field(
        description="`read` is said where only that is known: the books of its file say how many lines went which way."
    )
    detail: str
    run_id: str

    @classmethod
    def of(cls, one: InLake) -> "InLakeOut":
        return cls(lake=one.lake, table=one.table, **one.fate._asdict())


class EventOut(Model):
    received_at: MOMENT | None
    outcome: Literal["refused", "accepted", "archived"] | _Outcome = Field(
        description="`read` also where lakes differ."
    )
    detail: str
    type: str
    name: str
    message_id: str
    lakes: list[InLakeOut]
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
            lakes=[InLakeOut.of(lake) for lake in one.lakes],
            text=one.text,
        )


class RejectOut(Model):
    time: str
    source: str | None
    code: str
    message: str
    sample: str
