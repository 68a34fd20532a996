"""What a source's events meet on their way: its plan, how that is enforced, and transformations, with a preview."""

from typing import Any, NamedTuple

import msgspec
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from eventlake.control.transformations import decoded
from eventlake.errors import EventLakeError, InvalidSettingsError
from eventlake.library.plans import events_sent
from eventlake.library.preview import Previewed, previewed
from eventlake.library.workspace import Workspace
from eventlake.policies.transformations import shown
from eventlake.web.access import Actor, TheWorkspace
from eventlake.web.pages.form import Admin, Fields, Operator, Sender, Viewer
from eventlake.web.pages.render import go, page

router = APIRouter(include_in_schema=False)
_MOST_EVENTS = 1000  # of a preview
_ABOUT = ("id", "name", "if", "enabled")

_LET_IN, _BLOCK, _OMIT = ("true", "let in"), ("false", "block the event"), ("false", "leave them out")
_COMMON = (("ALLOW", "let in"), ("BLOCK", "block the event"), ("OMIT_PROPERTIES", "leave the values out"))


class Control(NamedTuple):
    key: str
    title: str
    choices: tuple[tuple[str, str], ...]


CONTROLS = {
    "Tracks, pages and screens": (
        Control("track.allowUnplannedEvents", "Tracks without a rule", (_LET_IN, _BLOCK)),
        Control("track.allowUnplannedEventProperties", "Properties that no rule names", (_LET_IN, _OMIT)),
        Control("track.allowEventOnViolations", "Events that violate their rule", (_LET_IN, _BLOCK)),
        Control("track.allowPropertiesOnViolations", "Values that violate their rule", (_LET_IN, _OMIT)),
        Control("track.commonEventOnViolations", "Violations of the common rule", _COMMON),
    ),
    "Identify calls": (
        Control("identify.allowUnplannedTraits", "Traits that no rule names", (_LET_IN, _OMIT)),
        Control("identify.allowTraitsOnViolations", "Values that violate their rule", (_LET_IN, _OMIT)),
        Control("identify.commonEventOnViolations", "Violations of the common rule", _COMMON),
    ),
    "Group calls": (
        Control("group.allowUnplannedTraits", "Traits that no rule names", (_LET_IN, _OMIT)),
        Control("group.allowTraitsOnViolations", "Values that violate their rule", (_LET_IN, _OMIT)),
        Control("group.commonEventOnViolations", "Violations of the common rule", _COMMON),
    ),
}
FORWARDING = {
    "forwardingViolationsTo": "Tell another source of violations",
    "forwardingBlockedEventsTo": "Send blocked events to another source",
}
_EXAMPLE = """{
  "name": "one name for purchases",
  "if": "event = 'Purchase'",
  "newEventName": "Order Completed",
  "propertyRenames": [{"oldName": "sum", "newName": "total"}]
}"""


@router.get("/sources/{slug}/rules")
def rules_page(slug: str, request: Request, workspace: TheWorkspace, actor: Viewer, edit: str = "") -> HTMLResponse:
    return _rules(request, workspace, actor, slug, edit=edit)


@router.post("/sources/{slug}/rules/plan")
def choose_plan(slug: str, changes: Admin, fields: Fields) -> RedirectResponse:
    if plan := fields.get("plan", ""):
        changes.rules.connect_plan(plan, slug)
        return go(f"/sources/{slug}/rules", "The plan holds from the next sync on.")
    changes.rules.disconnect_plan(slug)
    return go(f"/sources/{slug}/rules", "The source has no plan.")


@router.post("/sources/{slug}/rules/enforcement")
def enforce(
    slug: str, request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields
) -> Response:
    names = [control.key for group in CONTROLS.values() for control in group] + list(FORWARDING)
    try:
        changes.rules.enforce(slug, {name: fields[name] for name in names if name in fields})
    except EventLakeError as error:
        return _rules(request, workspace, actor, slug, error)
    return go(
        f"/sources/{slug}/rules", "Saved. It holds from the next sync on; a replay applies it to what was loaded."
    )


@router.post("/sources/{slug}/rules/transformations")
def save(
    slug: str, request: Request, workspace: TheWorkspace, actor: Sender, changes: Admin, fields: Fields
) -> Response:
    text = fields.get("content", "")
    try:
        made = changes.rules.save_transformation(slug, _parsed(text))
    except EventLakeError as error:
        return _rules(request, workspace, actor, slug, error, text=text)
    return go(f"/sources/{slug}/rules", f"{made.name}: saved. A replay applies it to what was loaded.")


@router.post("/sources/{slug}/rules/transformations/preview")
def preview(slug: str, request: Request, workspace: TheWorkspace, actor: Sender, fields: Fields) -> HTMLResponse:
    """What it would make of the last events: a part of the page for scripts, else the page."""
    text, made, problem = fields.get("content", ""), None, None
    try:
        sent = events_sent(workspace, workspace.sources.get(slug).id, None, None, _MOST_EVENTS)
        made = previewed([decoded(_parsed(text))], (one.event for one in sent))
    except InvalidSettingsError as error:
        problem = error
    if request.headers.get("hx-request"):
        return page(request, "_preview.html", actor, preview=made, trouble=problem)
    return _rules(request, workspace, actor, slug, problem, text=text, made=made)


@router.post("/sources/{slug}/rules/transformations/switch")
def switch(slug: str, workspace: TheWorkspace, changes: Admin, fields: Fields) -> RedirectResponse:
    found = workspace.plans.transformations.get(workspace.sources.get(slug).id, fields.get("id", ""))
    on = fields.get("enabled") == "true"
    changes.rules.save_transformation(slug, msgspec.structs.replace(found, enabled=on))
    return go(f"/sources/{slug}/rules", f"{found.name} is {'on' if on else 'off'}.")


@router.post("/sources/{slug}/rules/transformations/remove")
def remove(slug: str, changes: Admin, fields: Fields) -> RedirectResponse:
    gone = changes.rules.remove_transformation(slug, fields.get("id", ""))
    return go(f"/sources/{slug}/rules", f"{gone.name} is removed. A replay brings events back as they were sent.")


@router.post("/sources/{slug}/rules/release")
def release(slug: str, changes: Operator) -> RedirectResponse:
    changes.order_releases(slug)
    return go("/runs", "Ordered: a replay of everything from the first to the last event that was blocked.")


def _parsed(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidSettingsError(f"not JSON: {error}", fix="write it as the example") from error


def _rules(
    request: Request,
    workspace: Workspace,
    actor: Actor,
    slug: str,
    problem: EventLakeError | None = None,
    *,
    text: str = "",
    edit: str = "",
    made: Previewed | None = None,
) -> HTMLResponse:
    source = workspace.sources.get(slug)
    plan, enforcement = workspace.plans.of_source(source.id)
    told: dict[str, Any] = msgspec.to_builtins(enforcement)
    listed = [(one, shown(one)) for one in workspace.plans.transformations.of_source(source.id)]
    edited = next((found for one, found in listed if one.id == edit), None)
    if edited:
        text = msgspec.json.format(msgspec.json.encode(edited), indent=2).decode()
    return page(
        request,
        "rules.html",
        actor,
        "Plans",
        status=422 if problem else 200,
        problem=problem,
        source=source,
        plan=plan,
        plans=workspace.plans.all(),
        controls=CONTROLS,
        forwarding=FORWARDING,
        values={
            f"{part}.{key}": str(value).lower() if isinstance(value, bool) else value
            for part in ("track", "identify", "group")
            for key, value in told[part].items()
        }
        | {key: told[key] for key in FORWARDING},
        others=[one for one in workspace.sources.all() if one.id != source.id],
        transformations=[(one, [key for key in found if key not in _ABOUT]) for one, found in listed],
        text=text or _EXAMPLE,
        preview=made,
        trouble=None,
    )
