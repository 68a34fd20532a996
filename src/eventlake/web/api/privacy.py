"""People who must not be in the lake, in the words of Segment's API."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import Field, StringConstraints

from eventlake.control.regulations import MOST_SUBJECTS, Regulation, Regulations, RegulationType, Status, SubjectType
from eventlake.control.suppressions import ALL_SOURCES
from eventlake.web.access import Admin, TheWorkspace, admin_looks, reader
from eventlake.web.api.models import MOMENT, Model, moment

router = APIRouter(tags=["privacy"])
looking = [Depends(reader)]

Subject = Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")]


class NewRegulation(Model):
    regulationType: RegulationType  # noqa: N815 # as Segment has it, like the others
    subjectType: SubjectType = SubjectType.USER_ID  # noqa: N815
    subjectIds: list[Subject] = Field(min_length=1, max_length=MOST_SUBJECTS)  # noqa: N815


class RegulationOut(Model):
    id: str
    workspaceId: str  # noqa: N815
    regulationType: RegulationType  # noqa: N815
    subjectType: SubjectType  # noqa: N815
    subjects: int = Field(description="How many. Who they are is not told.")
    overallStatus: Status = Field(  # noqa: N815
        description="PARTIAL_SUCCESS: they are suppressed, but nothing was deleted; NOT_SUPPORTED: nothing was deleted."
    )
    createdAt: MOMENT  # noqa: N815
    finishedAt: MOMENT | None  # noqa: N815
    streamStatus: list[dict[str, Any]]  # noqa: N815


class SuppressionOut(Model):
    id: str | None = Field(description="None if only its hash is known.")
    path: str
    source: str | None = Field(description="None for all sources.")
    createdAt: MOMENT  # noqa: N815


@router.post("/regulations", status_code=201)
def regulate(new: NewRegulation, changes: Admin, workspace: TheWorkspace) -> RegulationOut:
    """Suppress people in all sources, or let them in again."""
    made = changes.regulate(new.regulationType, new.subjectType, new.subjectIds)
    return _shown(made, workspace.settings.workspace_id)


@router.post("/regulations/sources/{source}", status_code=201)
def regulate_source(source: str, new: NewRegulation, changes: Admin, workspace: TheWorkspace) -> RegulationOut:
    """The same for one source."""
    made = changes.regulate(new.regulationType, new.subjectType, new.subjectIds, source=source)
    return _shown(made, workspace.settings.workspace_id)


@router.get("/regulations", dependencies=looking)
def list_regulations(workspace: TheWorkspace, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[RegulationOut]:
    """What was asked for, newest first."""
    return [
        _shown(one, workspace.settings.workspace_id)
        for one in Regulations(workspace.engine, workspace.clock.now).latest(limit)
    ]


@router.get("/regulations/{regulation}", dependencies=looking)
def get_regulation(regulation: str, workspace: TheWorkspace) -> RegulationOut:
    """One of them, and what came of it."""
    return _shown(Regulations(workspace.engine, workspace.clock.now).get(regulation), workspace.settings.workspace_id)


@router.get("/suppressions", dependencies=[Depends(admin_looks)])
def list_suppressions(
    workspace: TheWorkspace,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000_000)] = 0,
) -> list[SuppressionOut]:
    """Who is suppressed, newest first."""
    slugs = workspace.sources.slugs()
    return [
        SuppressionOut(
            id=one.subject,
            path=one.path,
            source=None if one.source_id == ALL_SOURCES else slugs.get(one.source_id, one.source_id),
            createdAt=moment(one.added_at) or "",
        )
        for one in workspace.suppressions.latest(limit, skip=offset)
    ]


def _shown(one: Regulation, workspace_id: str) -> RegulationOut:
    stream = [{"id": one.source_id, "destinationStatus": []}] if one.source_id else []
    return RegulationOut(
        id=one.id,
        workspaceId=workspace_id,
        regulationType=one.type,
        subjectType=one.subject_type,
        subjects=one.subjects,
        overallStatus=one.status,
        createdAt=moment(one.created_at) or "",
        finishedAt=moment(one.finished_at),
        streamStatus=stream,
    )
