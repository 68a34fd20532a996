"""What the HTTP API takes and gives about plans. Names are Segment's."""

from typing import Annotated, Any, Literal

from pydantic import Field

from eventlake.control.plans import KnownPlan, slug_of
from eventlake.web.api.models import MOMENT, Model, moment

RuleType = Literal["COMMON", "TRACK", "IDENTIFY", "GROUP", "PAGE", "SCREEN"]
Key = Annotated[str, Field(max_length=2000, description="The name of the event; empty but for tracks.")]
Number = Annotated[int, Field(ge=1, le=1_000_000_000)]
Most = Field(min_length=1, max_length=200, description="At most 200 at once.")


class WhichRule(Model):
    type: RuleType
    key: Key = ""
    version: Number = 1


class RuleIn(WhichRule):
    jsonSchema: dict[str, Any] = Field(description="Of draft 7, for the whole event.")  # noqa: N815 # as Segment has it


class RuleUpdate(RuleIn):
    newKey: Key = ""  # noqa: N815


class RuleOut(RuleIn):
    createdAt: str | None = None  # noqa: N815
    updatedAt: str | None = None  # noqa: N815
    deprecatedAt: str | None = None  # noqa: N815


_STORED = r"^[^\x00]*$"  # the one character that no database but SQLite takes


class NewPlan(Model):
    name: str = Field(min_length=1, max_length=1000, pattern=_STORED)
    description: str = Field("", max_length=10_000, pattern=_STORED)
    type: Literal["LIVE"] = "LIVE"
    rules: list[RuleIn] = Field([], max_length=200)


class PlanChange(Model):
    name: str | None = Field(None, min_length=1, max_length=1000, pattern=_STORED)
    description: str | None = Field(None, max_length=10_000, pattern=_STORED)


class PlanOut(Model):
    id: str
    name: str
    slug: str
    description: str
    type: Literal["LIVE"] = "LIVE"
    version: int = Field(description="It grows with every change.")
    rules: int
    sources: list[str]
    createdAt: MOMENT  # noqa: N815
    updatedAt: MOMENT  # noqa: N815
    updatedBy: str  # noqa: N815

    @classmethod
    def of(cls, one: KnownPlan, slugs: dict[str, str]) -> "PlanOut":
        return cls(
            id=one.id,
            name=one.name,
            slug=slug_of(one.name),
            description=one.description,
            version=one.version,
            rules=one.rules,
            sources=[slugs[source_id] for source_id in one.source_ids if source_id in slugs],
            createdAt=moment(one.created_at) or "",
            updatedAt=moment(one.saved_at) or "",
            updatedBy=one.saved_by,
        )


class Rules(Model):
    rules: list[RuleIn] = Field(max_length=200)


class RuleUpdates(Model):
    rules: list[RuleUpdate] = Most


class RulesGone(Model):
    rules: list[WhichRule] = Most


class PlanVersionOut(Model):
    version: int
    savedAt: MOMENT  # noqa: N815
    savedBy: str  # noqa: N815


class DifferenceOut(Model):
    change: str
    rule: str
    where: str
    before: str | None
    after: str | None


class SourceId(Model):
    sourceId: str = Field(max_length=200, description="Its id or slug.")  # noqa: N815


class TrackSettings(Model):
    allowUnplannedEvents: bool | None = None  # noqa: N815
    allowUnplannedEventProperties: bool | None = None  # noqa: N815
    allowEventOnViolations: bool | None = None  # noqa: N815
    allowPropertiesOnViolations: bool | None = None  # noqa: N815
    commonEventOnViolations: Literal["ALLOW", "BLOCK", "OMIT_PROPERTIES"] | None = None  # noqa: N815


class TraitSettings(Model):
    allowUnplannedTraits: bool | None = None  # noqa: N815
    allowTraitsOnViolations: bool | None = None  # noqa: N815
    commonEventOnViolations: Literal["ALLOW", "BLOCK", "OMIT_PROPERTIES"] | None = None  # noqa: N815


class SchemaSettings(Model):
    """What becomes of events that are not as planned; what is left out stays as it is."""

    track: TrackSettings = TrackSettings()
    identify: TraitSettings = TraitSettings()
    group: TraitSettings = TraitSettings()
    forwardingViolationsTo: str | None = Field(None, max_length=200)  # noqa: N815
    forwardingBlockedEventsTo: str | None = Field(None, max_length=200)  # noqa: N815
