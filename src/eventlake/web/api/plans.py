"""Tracking plans, as in Segment's API: rules, the sources that have them, and what becomes of violations."""

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Depends, Query

from eventlake.library.workspace import Workspace
from eventlake.policies.plan import Plan
from eventlake.policies.plan_diff import differences
from eventlake.web.access import Admin, Operator, TheWorkspace, reader
from eventlake.web.api.models import OrderOut, SourceOut, moment
from eventlake.web.api.plan_models import (
    DifferenceOut,
    NewPlan,
    Number,
    PlanChange,
    PlanOut,
    PlanVersionOut,
    RuleOut,
    Rules,
    RulesGone,
    RuleUpdates,
    SchemaSettings,
    SourceId,
)

router = APIRouter(tags=["plans"])
looking = [Depends(reader)]


@router.get("/tracking-plans", dependencies=looking)
def list_plans(workspace: TheWorkspace) -> list[PlanOut]:
    """All plans."""
    slugs = workspace.sources.slugs()
    return [PlanOut.of(one, slugs) for one in workspace.plans.all()]


@router.post("/tracking-plans", status_code=201)
def add_plan(new: NewPlan, changes: Admin, workspace: TheWorkspace) -> PlanOut:
    """A new plan."""
    rules = [rule.model_dump() for rule in new.rules]
    return _known(workspace, changes.rules.new_plan(new.name, rules, new.description))


@router.get("/tracking-plans/{plan}", dependencies=looking)
def get_plan(plan: str, workspace: TheWorkspace) -> PlanOut:
    """One plan, by its id or name."""
    return _known(workspace, workspace.plans.get(plan))


@router.patch("/tracking-plans/{plan}")
def change_plan(plan: str, change: PlanChange, changes: Admin, workspace: TheWorkspace) -> PlanOut:
    """Give a plan another name or description."""
    return _known(workspace, changes.rules.describe_plan(plan, change.name, change.description))


@router.delete("/tracking-plans/{plan}", status_code=204)
def delete_plan(plan: str, changes: Admin) -> None:
    """Forget a plan and all its versions; no source may have it."""
    changes.rules.delete_plan(plan)


@router.get("/tracking-plans/{plan}/rules", dependencies=looking)
def list_rules(plan: str, workspace: TheWorkspace, version: Annotated[Number | None, Query()] = None) -> list[RuleOut]:
    """The rules of a plan, as they are or were in a version of it."""
    return _rules(workspace.plans.get(plan, version))


@router.put("/tracking-plans/{plan}/rules")
def replace_rules(plan: str, told: Rules, changes: Admin) -> list[RuleOut]:
    """Other rules in place of all that a plan has."""
    return _rules(changes.rules.replace_rules(plan, [rule.model_dump() for rule in told.rules]))


@router.patch("/tracking-plans/{plan}/rules")
def update_rules(plan: str, told: RuleUpdates, changes: Admin) -> list[RuleOut]:
    """Change rules, or add them; the others stay."""
    return _rules(changes.rules.update_rules(plan, [rule.model_dump() for rule in told.rules]))


@router.delete("/tracking-plans/{plan}/rules")
def remove_rules(plan: str, told: RulesGone, changes: Admin) -> list[RuleOut]:
    """Remove rules; the others stay."""
    return _rules(changes.rules.remove_rules(plan, [(one.type, one.key, one.version) for one in told.rules]))


@router.get("/tracking-plans/{plan}/versions", dependencies=looking)
def list_versions(plan: str, workspace: TheWorkspace) -> list[PlanVersionOut]:
    """All versions of a plan, newest first."""
    return [
        PlanVersionOut(version=one.version, savedAt=moment(one.saved_at) or "", savedBy=one.saved_by)
        for one in workspace.plans.versions(plan)
    ]


@router.get("/tracking-plans/{plan}/differences", dependencies=looking)
def list_differences(
    plan: str, workspace: TheWorkspace, old: Annotated[Number, Query()], new: Annotated[Number | None, Query()] = None
) -> list[DifferenceOut]:
    """What changed between two versions of a plan; the newest, if only one is told."""
    found = differences(workspace.plans.get(plan, old), workspace.plans.get(plan, new))
    return [DifferenceOut(**one._asdict()) for one in found]


@router.get("/tracking-plans/{plan}/sources", dependencies=looking)
def list_plan_sources(plan: str, workspace: TheWorkspace) -> list[SourceOut]:
    """The sources that have a plan."""
    found = _known(workspace, workspace.plans.get(plan)).sources
    return [SourceOut(**source._asdict()) for source in workspace.sources.all() if source.slug in found]


@router.post("/tracking-plans/{plan}/sources", status_code=201)
def connect_plan(plan: str, told: SourceId, changes: Admin) -> SourceOut:
    """Give a source a plan, in place of the one it has."""
    return SourceOut(**changes.rules.connect_plan(plan, told.sourceId)._asdict())


@router.delete("/tracking-plans/{plan}/sources", status_code=204)
def disconnect_plan(
    plan: str,
    changes: Admin,
    workspace: TheWorkspace,
    source_id: Annotated[str, Query(alias="sourceId", max_length=200, description="Its id or slug.")],
) -> None:
    """Take a plan away from a source."""
    source = workspace.sources.get(source_id)
    if source.slug in _known(workspace, workspace.plans.get(plan)).sources:
        changes.rules.disconnect_plan(source.slug)


@router.get("/sources/{source}/settings", dependencies=looking)
def get_settings(source: str, workspace: TheWorkspace) -> dict[str, Any]:
    """What becomes of the source's events that are not as planned."""
    found: dict[str, Any] = msgspec.to_builtins(workspace.plans.of_source(workspace.sources.get(source).id)[1])
    return found


@router.patch("/sources/{source}/settings")
def change_settings(source: str, told: SchemaSettings, changes: Admin) -> dict[str, Any]:
    """Change what becomes of them."""
    given: dict[str, str] = {}
    for name, value in told.model_dump(exclude_none=True).items():
        given |= {f"{name}.{key}": str(one) for key, one in value.items()} if isinstance(value, dict) else {name: value}
    found: dict[str, Any] = msgspec.to_builtins(changes.rules.enforce(source, given))
    return found


@router.post("/connections/{source}/{lake}/releases", status_code=202)
def release(source: str, lake: str, changes: Operator, workspace: TheWorkspace) -> OrderOut:
    """Let in what rules blocked in the last 30 days and would not block today."""
    return OrderOut.of(changes.order_release(f"{source}/{lake}"), workspace.sources.slugs())


def _known(workspace: Workspace, plan: Plan) -> PlanOut:
    slugs = workspace.sources.slugs()
    return next(PlanOut.of(one, slugs) for one in workspace.plans.all() if one.id == plan.id)


def _rules(plan: Plan) -> list[RuleOut]:
    return [RuleOut(**msgspec.to_builtins(rule)) for rule in plan.rules]
