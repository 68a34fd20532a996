"""Transformations, as in Segment's API, and what they would make of the last events."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query
from pydantic import ConfigDict, Field

from eventlake.control.transformations import decoded
from eventlake.library.plans import events_sent
from eventlake.library.preview import previewed
from eventlake.policies.transformations import Transformation, shown
from eventlake.web.access import Admin, TheWorkspace, reader
from eventlake.web.api.models import Model

router = APIRouter(tags=["plans"])
looking = [Depends(reader)]

_MOST_EVENTS = 1000


class TransformationChange(Model):
    """As in Segment's API; docs/plans.md says what each key does."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: str | None = Field(None, max_length=1000)
    if_: str | None = Field(None, alias="if", max_length=5000, examples=["event = 'Purchase'"])
    enabled: bool | None = None
    drop: bool | None = None
    newEventName: str | None = Field(None, max_length=2000)  # noqa: N815 # as Segment has it, like the others
    propertyRenames: list[dict[str, Any]] | None = None  # noqa: N815
    propertyValueTransformations: list[dict[str, Any]] | None = None  # noqa: N815
    fqlDefinedProperties: list[dict[str, Any]] | None = None  # noqa: N815
    allowProperties: list[str] | None = None  # noqa: N815
    hashPropertiesConfiguration: dict[str, Any] | None = None  # noqa: N815
    destinationMetadataId: str | None = Field(None, max_length=200, description="Left aside.")  # noqa: N815

    def given(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True, exclude_none=True, exclude={"sourceId"})


class NewTransformation(TransformationChange):
    sourceId: str = Field(max_length=200, description="Its id or slug.")  # noqa: N815


class PreviewOut(Model):
    events: int = Field(description="How many of the last events were looked at.")
    changed: int
    dropped: int
    samples: list[dict[str, str | None]] = Field(description="Places that would change, with before and after.")


@router.get("/transformations", dependencies=looking)
def list_transformations(
    workspace: TheWorkspace, source: Annotated[str, Query(max_length=200)] = ""
) -> list[dict[str, Any]]:
    """Those of a source, or of all, in the order in which they are applied."""
    sources = [workspace.sources.get(source)] if source else workspace.sources.all()
    return [_shown(of.id, one) for of in sources for one in workspace.plans.transformations.of_source(of.id)]


@router.post("/transformations", status_code=201)
def add_transformation(new: NewTransformation, changes: Admin, workspace: TheWorkspace) -> dict[str, Any]:
    """A new one, behind the others of its source; or another in place of the one with its name."""
    source = workspace.sources.get(new.sourceId)
    return _shown(source.id, changes.rules.save_transformation(source.slug, new.given()))


@router.post("/transformations/preview", dependencies=looking)
def preview(new: NewTransformation, workspace: TheWorkspace) -> PreviewOut:
    """What it would make of the last events of its source; nothing is changed."""
    source = workspace.sources.get(new.sourceId)
    sent = events_sent(workspace, source.id, None, None, _MOST_EVENTS)
    return PreviewOut(**previewed([decoded(new.given())], (one.event for one in sent))._asdict())


@router.get("/transformations/{transformation}", dependencies=looking)
def get_transformation(transformation: str, workspace: TheWorkspace) -> dict[str, Any]:
    """One of them. A key by which it hashes is not shown."""
    return _shown(*workspace.plans.transformations.find(transformation))


@router.patch("/transformations/{transformation}")
def change_transformation(
    transformation: str, change: TransformationChange, changes: Admin, workspace: TheWorkspace
) -> dict[str, Any]:
    """Change what is given; the rest stays."""
    source_id, known = workspace.plans.transformations.find(transformation)
    return _shown(source_id, changes.rules.save_transformation(source_id, msgspec.to_builtins(known) | change.given()))


@router.delete("/transformations/{transformation}", status_code=204)
def remove_transformation(transformation: str, changes: Admin, workspace: TheWorkspace) -> None:
    """Remove it; a replay brings events back as they were sent."""
    source_id, known = workspace.plans.transformations.find(transformation)
    changes.rules.remove_transformation(source_id, known.id)


def _shown(source_id: str, one: Transformation) -> dict[str, Any]:
    return {**shown(one), "enabled": one.enabled, "sourceId": source_id}
