"""`eventlake plan`: what events sources are to send, and what becomes of those that are otherwise."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from eventlake.cli import output, state
from eventlake.cli.connections import assignments
from eventlake.cli.load import run_all
from eventlake.cli.state import JsonFlag, WaitOption
from eventlake.control.plans import Plans
from eventlake.events import instants
from eventlake.library import plans as library
from eventlake.library.times import micros_of
from eventlake.policies.infer import inferred
from eventlake.policies.plan import Plan, doubts
from eventlake.policies.plan_diff import differences
from eventlake.policies.rules import RulesDocument
from eventlake.reports.words import count

app = typer.Typer(no_args_is_help=True, help="Tracking plans: what events sources are to send.")

Name = Annotated[str, typer.Argument(metavar="PLAN", help="The plan's name or id.")]
Slug = Annotated[str, typer.Argument(metavar="SOURCE", help="The source's slug.")]
From = Annotated[str | None, typer.Option("--from", metavar="TIME", help="Events received from this time (UTC).")]
To = Annotated[str | None, typer.Option("--to", metavar="TIME", help="Up to, not including, this time.")]
Most = Annotated[int, typer.Option("--events", min=1, metavar="N", help="At most so many, of the last days first.")]


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="JSON of Segment's API, CSV, or a folder of schemas.")],
    name: Annotated[str | None, typer.Option("--name", help="Another name than the one it has.")] = None,
) -> None:
    """Keep a plan: a new one, or the next version of the one with its name.

    Example: eventlake plan import shop-plan.json
    """
    plan = library.read_plan(file, name)
    saved = state.changes().rules.save_plan(plan)
    output.say(f"{plan.name}: version {saved.version}, {count(len(plan.rules), 'rule')}")
    _tell_doubts(plan)


def _write(plan: Plan, file: Path) -> None:
    left_out = library.write_plan(plan, file)
    output.say(f"{file}: {count(len(plan.rules), 'rule')}")
    if left_out:
        words = ", ".join(sorted(left_out))
        output.talk.print(
            output.printable(f"A spreadsheet has no place for {words}, which the plan has; .json has all.")
        )


@app.command()
def export(
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A name that ends in .json or .csv, or a new folder.")],
    version: Annotated[int | None, typer.Option("--version", min=1, help="As it was in this version.")] = None,
) -> None:
    """Write a plan to a file that Segment's API takes, to a spreadsheet, or to a folder with a schema in each file.

    Example: eventlake plan export Shop shop-plan.csv
    """
    plan = _plans().get(name, version)
    _write(plan, file)


@app.command("list")
def list_(as_json: JsonFlag = False) -> None:
    """Show all plans, and the sources that have them."""
    slugs = _slugs()
    rows: list[dict[str, Any]] = [
        {
            "name": plan.name,
            "version": plan.version,
            "rules": plan.rules,
            "sources": [slugs.get(source_id, source_id) for source_id in plan.source_ids],
            "saved_at": instants.to_text(plan.saved_at),
            "saved_by": plan.saved_by,
            "id": plan.id,
        }
        for plan in _plans().all()
    ]
    if as_json:
        output.print_json(rows)
        return
    shown = [tuple((row | {"sources": ", ".join(row["sources"]) or "none"}).values()) for row in rows]
    output.table(None, ("plan", "version", "rules", "sources", "saved", "by", "id"), shown)


@app.command()
def diff(
    name: Name,
    old: Annotated[int, typer.Argument(metavar="OLD", help="A version.")],
    new: Annotated[int | None, typer.Argument(metavar="[NEW]", help="Another; by default the newest.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show what changed between two versions of a plan.

    Example: eventlake plan diff Shop 1
    """
    found = differences(_plans().get(name, old), _plans().get(name, new))
    if as_json:
        output.print_json([msgspec.to_builtins(one._asdict()) for one in found])
        return
    output.table(None, ("", "rule", "where", "before", "after"), [tuple(one) for one in found])


@app.command()
def check(
    name: Annotated[str, typer.Argument(metavar="PLAN", help="The plan's name, or a file with one.")],
    source: Annotated[
        str | None, typer.Option("--source", metavar="SLUG", help="Try it on what this one sent.")
    ] = None,
    start: From = None,
    stop: To = None,
    most: Most = 10_000,
    as_json: JsonFlag = False,
) -> None:
    """Look whether a plan is right and, with --source, what it would find in events that were sent; exit code 1 if any.

    Example: eventlake plan check shop-plan.json --source web --from 2026-11-01
    """
    plan = library.read_plan(Path(name)) if Path(name).exists() else _plans().get(name)
    if source is None:
        output.say(f"{plan.name}: {count(len(plan.rules), 'rule')}, each can be used")
        _tell_doubts(plan)
        return
    workspace = state.workspace()
    of_source = workspace.sources.get(source)
    document = RulesDocument(of_source.id, plan, workspace.plans.of_source(of_source.id)[1])
    sent = library.events_sent(workspace, of_source.id, micros_of(start), micros_of(stop), most)
    with output.talk.status("trying it on events…"):
        found = library.tried(document, sent)
    rows = [{"event": e, "type": t, "field": f, "events": n} for (e, t, f), n in found.violations.most_common()]
    told: dict[str, Any] = {"events": found.events, "violations": rows, "blocked": dict(found.blocked)}
    told["omitted"] = dict(found.omitted)
    if as_json:
        output.print_json(told)
    else:
        output.table(None, ("event", "violation", "field", "events"), [tuple(row.values()) for row in rows])
        blocked = ", ".join(f"{number:,} {reason}" for reason, number in found.blocked.items()) or "none"
        output.say(f"{count(found.events, 'event')} tried; blocked: {blocked}")
    if rows or found.blocked:
        raise typer.Exit(1)


@app.command()
def infer(
    source: Slug,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where it is written: .json, .csv, or a new folder.")],
    start: From = None,
    stop: To = None,
    most: Most = 100_000,
    name: Annotated[str | None, typer.Option("--name", help="What it is called.")] = None,
) -> None:
    """Write a plan from what a source has sent, as a beginning.

    Example: eventlake plan infer web plan.json --from 2026-11-01
    """
    workspace = state.workspace()
    of_source = workspace.sources.get(source)
    sent = library.events_sent(workspace, of_source.id, micros_of(start), micros_of(stop), most)
    with output.talk.status("reading events…"), library.explained():
        plan = inferred(name or of_source.name, (one.event for one in sent))
    _write(plan, file)
    output.talk.print(
        f"Correct it, then `eventlake plan import {file}` and `eventlake plan connect {plan.name!r} {source}`."
    )


@app.command()
def connect(name: Name, source: Slug) -> None:
    """Give a source a plan, in place of the one it has. Until `plan enforce` says otherwise, everything gets in."""
    state.changes().rules.connect_plan(name, source)
    output.say(f"{source} has the plan {_plans().get(name).name}")


@app.command()
def disconnect(source: Slug) -> None:
    """Take the plan of a source away; what it blocked comes with a replay."""
    state.changes().rules.disconnect_plan(source)
    output.say(f"{source} has no plan")


@app.command()
def enforce(
    source: Slug,
    changes: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]…", help="Settings to change.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Show or change what becomes of events that are not as the source's plan says.

    Example: eventlake plan enforce web track.allowUnplannedEvents=false track.commonEventOnViolations=BLOCK
    """
    if given := assignments(changes or []):
        found = state.changes().rules.enforce(source, given)
    else:
        workspace = state.workspace()
        found = workspace.plans.of_source(workspace.sources.get(source).id)[1]
    told: dict[str, Any] = msgspec.to_builtins(found)
    if as_json:
        output.print_json(told)
        return
    slugs = _slugs()
    shown = {f"{part}.{key}": inner for part in ("track", "identify", "group") for key, inner in told.pop(part).items()}
    output.pairs(shown | {key: slugs.get(value, value) or "nobody" for key, value in told.items()})


@app.command()
def release(
    name: Annotated[str, typer.Argument(metavar="SOURCE[/LAKE]", help="The connection.")],
    wait: WaitOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Let in what a plan blocked in the last 30 days, as far as the plan of today lets it in: after it was corrected.

    Example: eventlake plan release web
    """
    workspace = state.workspace()
    run_all(workspace, [library.release(workspace, workspace.connections.get(name))], as_json, wait)


@app.command()
def delete(name: Name) -> None:
    """Forget a plan and all its versions; no source may have it."""
    state.changes().rules.delete_plan(name)
    output.say(f"{name} is forgotten")


def _plans() -> Plans:
    return state.workspace().plans


def _slugs() -> dict[str, str]:
    return state.workspace().sources.slugs()


def _tell_doubts(plan: Plan) -> None:
    for doubt in doubts(plan):
        output.talk.print(f"[yellow]{output.printable(doubt)}[/yellow]")
