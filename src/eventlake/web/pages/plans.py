"""Tracking plans: their rules and versions, and the sources that have them."""

from typing import NamedTuple

import msgspec
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.library.plans import told_plan
from eventlake.library.workspace import Workspace
from eventlake.policies.plan import Rule, doubts
from eventlake.policies.plan_diff import differences
from eventlake.reports.words import count
from eventlake.web.access import Actor, TheWorkspace
from eventlake.web.pages.form import Admin, Fields, Sender, Viewer
from eventlake.web.pages.render import go, page

router = APIRouter(include_in_schema=False)
_MOST = 500  # rules, or differences, of a page


class RuleLine(NamedTuple):
    """A rule as a list shows it."""

    rule: Rule
    planned: tuple[str, ...]  # members that it names
    required: frozenset[str]
    schema: str


@router.get("/plans")
def list_page(request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    return _list(request, workspace, actor)


@router.post("/plans")
def save(request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields) -> Response:
    try:
        plan = told_plan(fields.get("content", ""), fields.get("name", "").strip() or None)
        saved = changes.rules.save_plan(plan)
    except EventLakeError as error:
        return _list(request, workspace, actor, error, fields)
    doubted = doubts(plan)
    told = f"{plan.name}: version {saved.version}, {count(len(plan.rules), 'rule')}."
    return go(
        f"/plans/{workspace.plans.get(plan.name).id}", f"{told} Probably a mistake: {doubted[0]}" if doubted else told
    )


@router.get("/plans/{plan_id}")
def one_page(plan_id: str, request: Request, workspace: TheWorkspace, actor: Viewer) -> HTMLResponse:
    versions = workspace.plans.versions(plan_id)
    new = _version(request, "new", versions[0].version)
    old = _version(request, "old", max(1, new - 1))
    plan = workspace.plans.get(plan_id, new)
    known = next(one for one in workspace.plans.all() if one.id == plan.id)
    slugs = workspace.sources.slugs()
    changed = differences(workspace.plans.get(plan_id, old), plan) if old != new else []
    return page(
        request,
        "plan.html",
        actor,
        "Plans",
        plan=plan,
        known=known,
        sources=[slugs[one] for one in known.source_ids if one in slugs],
        versions=versions,
        old=old,
        new=new,
        differences=changed[:_MOST],
        more_differences=max(0, len(changed) - _MOST),
        rules=[_line(rule) for rule in plan.rules[:_MOST]],
        more_rules=max(0, len(plan.rules) - _MOST),
    )


@router.post("/plans/{plan_id}/delete")
def delete(plan_id: str, changes: Admin) -> RedirectResponse:
    changes.rules.delete_plan(plan_id)
    return go("/plans", "The plan is forgotten.")


def _list(
    request: Request,
    workspace: Workspace,
    actor: Actor,
    problem: EventLakeError | None = None,
    given: dict[str, str] | None = None,
) -> HTMLResponse:
    slugs = workspace.sources.slugs()
    known = workspace.plans.all()
    plan_of = {source_id: plan for plan in known for source_id in plan.source_ids}
    return page(
        request,
        "plans.html",
        actor,
        "Plans",
        status=422 if problem else 200,
        problem=problem,
        given={"name": "", "content": "", **(given or {})},
        plans=known,
        slugs=slugs,
        sources=workspace.sources.all(),
        plan_of=plan_of,
        transformations={one.id: workspace.plans.transformations.of_source(one.id) for one in workspace.sources.all()},
    )


def _version(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    if text and not (text.isascii() and text.isdigit() and len(text) < 10):
        raise InvalidSettingsError(f"{text[:20]!r} is not a version", fix="choose one of the list")
    return int(text) if text else default


def _line(rule: Rule) -> RuleLine:
    part = "traits" if rule.type in ("IDENTIFY", "GROUP") else "properties"
    schema = rule.json_schema if isinstance(rule.json_schema, dict) else {}
    inner = schema if rule.type == "COMMON" else _member(_member(schema, "properties"), part)
    required = inner.get("required")
    text = msgspec.json.format(msgspec.json.encode(rule.json_schema), indent=2).decode()
    needed = frozenset(one for one in required if isinstance(one, str)) if isinstance(required, list) else frozenset()
    return RuleLine(rule, tuple(_member(inner, "properties")), needed, text)


def _member(schema: dict[str, object], name: str) -> dict[str, object]:
    found = schema.get(name)
    return found if isinstance(found, dict) else {}
