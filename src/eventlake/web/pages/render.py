"""Pages from templates: what all of them share, and how values are shown."""

import hashlib
import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, unquote

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from eventlake import __version__
from eventlake.control.people import Scope
from eventlake.control.run_lines import RunLine
from eventlake.errors import EventLakeError
from eventlake.events import instants
from eventlake.reports.words import count, size
from eventlake.timetable import DAY, SECOND
from eventlake.web import rows
from eventlake.web.access import Actor, TooManyError

_TOLD = "eventlake_told"
NAVIGATION = (
    ("/", "Overview"),
    ("/sources", "Sources"),
    ("/connections", "Connections"),
    ("/runs", "Runs"),
    ("/health", "Health"),
    ("/tables", "Tables"),
    ("/plans", "Plans"),
    ("/quality", "Data quality"),
    ("/privacy", "Privacy"),
    ("/alerts", "Alerts"),
    ("/settings", "Settings"),
)


def _utc(micros: int, seconds: bool = False) -> str:
    return f"{datetime.fromtimestamp(micros / SECOND, UTC):{'%Y-%m-%d %H:%M:%S' if seconds else '%Y-%m-%d %H:%M'}}"


def _span(seconds: float) -> str:
    """A length of time, in one word or two."""
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length or (seconds >= length and unit != "min"):
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def _duration(run: RunLine) -> str:
    ended = run.finished_at if run.finished_at is not None else _now()
    seconds = max(0, ended - run.started_at) / SECOND
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def day_of(text: str) -> int | None:
    """The beginning of a day that an address names, as 2026-11-17; None if it names none."""
    instant = instants.parse(f"{text}T00:00:00Z") if text else None
    return instant.micros if instant and instant.micros % DAY == 0 else None


def date_of(micros: int) -> str:
    """The day of a moment, as addresses name it."""
    return f"{datetime.fromtimestamp(micros / SECOND, UTC):%Y-%m-%d}"


def _now() -> int:
    return round(datetime.now(UTC).timestamp() * SECOND)


def _ago(micros: int) -> str:
    seconds = (_now() - micros) / SECOND
    return f"{_span(seconds)} ago" if seconds >= 0 else f"in {_span(-seconds)}"


def _shortened(text: Any, length: int) -> str:
    text = str(text)
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _pretty(text: str) -> str:
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


environment = Environment(
    loader=PackageLoader("eventlake.web", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
environment.filters |= {
    "span": _span,
    "iso": instants.to_text,
    "utc": _utc,
    "ago": _ago,
    "coming": lambda micros: _ago(micros) if micros > _now() else "due now",
    "lag": lambda micros: _span(max(0, _now() - micros) / SECOND),
    "duration": _duration,
    "number": lambda number: f"{number:,}",
    "size": size,
    "count": count,
    "shortened": _shortened,
    "pretty": _pretty,
    "digest": _digest,
    "cell": lambda value: _shortened(rows.text(value), 500),
    "json": lambda value: _shortened(json.dumps(value, ensure_ascii=False), 500),
    "may": lambda actor, scope: actor.scope.allows(Scope(scope)),
}


def page(
    request: Request,
    template: str,
    actor: Actor | None,
    section: str = "",
    *,
    status: int = 200,
    problem: EventLakeError | None = None,
    **values: Any,
) -> HTMLResponse:
    """A whole page, or a part of one."""
    shown = {
        "version": __version__,
        "workspace_id": request.app.state.workspace.settings.workspace_id,
        "navigation": NAVIGATION,
        "told": _told(request) if actor else "",
        "search": "",
        "given": {},
    }
    text = environment.get_template(template).render(**(shown | values), actor=actor, section=section, problem=problem)
    answer = HTMLResponse(text, status)
    if isinstance(problem, TooManyError):
        answer.status_code = 429
        answer.headers["retry-after"] = str(problem.seconds)
    if _TOLD in request.cookies and not template.startswith("_"):
        answer.delete_cookie(_TOLD)
    return answer


def go(path: str, told: str = "") -> RedirectResponse:
    """On to another page, after something was done; what is told there goes by a cookie, which no link can set."""
    answer = RedirectResponse(path, 303)
    if told:
        answer.set_cookie(_TOLD, quote(told), max_age=60, httponly=True, samesite="strict")
    return answer


def _told(request: Request) -> str:
    return unquote(request.cookies.get(_TOLD, ""))[:300]
