"""`eventlake alerts`: who is told when something is wrong."""

from typing import Annotated

import typer

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.control.alerts import Kind
from eventlake.events import instants

app = typer.Typer(no_args_is_help=True, help="Alerts: who is told when something is wrong.")


@app.command(name="list")
def list_alerts(
    last: Annotated[int, typer.Option(min=1, help="How many, the newest.")] = 20, as_json: JsonFlag = False
) -> None:
    """Show what people were told of, also if it was only shown in the console."""
    workspace = state.workspace()
    slugs = workspace.sources.slugs()
    found = workspace.alerts.latest(last)
    deliveries = workspace.alerts.deliveries(alert.id for alert in found)
    shown = [
        {
            "at": instants.to_text(alert.at),
            "kind": alert.kind.value,
            "source": slugs.get(alert.source_id or ""),
            "subject": alert.subject,
            "delivered_to": [one.channel for one in deliveries if one.alert_id == alert.id and one.delivered_at],
        }
        for alert in found
    ]
    if as_json:
        output.print_json(shown)
    elif not shown:
        output.talk.print("There was nothing to tell.")
    else:
        rows = [(one["at"], one["kind"], one["subject"], ", ".join(one["delivered_to"] or ())) for one in shown]
        output.table(None, ("at", "kind", "what", "delivered to"), rows)


@app.command()
def channels(as_json: JsonFlag = False) -> None:
    """Show where alerts can go, and who is told of what."""
    workspace = state.workspace()
    slugs = workspace.sources.slugs()
    known = [{"channel": name, "kind": one.kind} for name, one in workspace.settings.channels.items()]
    subscriptions = [
        {
            "id": one.id,
            "kind": one.kind.value,
            "source": slugs.get(one.source_id, one.source_id) if one.source_id else None,
            "channel": one.channel,
            "threshold": one.threshold,
        }
        for one in workspace.alerts.subscriptions()
    ]
    if as_json:
        output.print_json({"channels": known, "subscriptions": subscriptions})
        return
    if not known:
        output.talk.print("There is no channel yet: a section [channels.NAME] in eventlake.toml makes one.")
        return
    output.table(None, ("channel", "kind"), [(one["channel"], one["kind"]) for one in known])
    if subscriptions:
        columns = ("id", "kind", "source", "channel", "threshold")
        output.table("told of", columns, [tuple(one[name] for name in columns) for one in subscriptions])


def _kinds() -> str:
    told = [f"[bold]{kind.value}[/bold]: {kind.description}" for kind in Kind]
    return (
        "Let a channel be told of something.\n\n"
        + "\n\n".join(told)
        + ("\n\nExample: eventlake alerts subscribe ops sync_failed --source web")
    )


@app.command(help=_kinds())
def subscribe(
    channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="A channel of eventlake.toml.")],
    kind: Annotated[Kind, typer.Argument(help="What it is told of.")],
    source: Annotated[str | None, typer.Option(help="Only of this source.")] = None,
    threshold: Annotated[float | None, typer.Option(help="From which on; by default the usual.")] = None,
) -> None:
    made = state.changes().subscribe(kind, channel, source=source, threshold=threshold)
    output.talk.print(f"{channel} is told of {kind.value}{f' of {source}' if source else ''} from now on ({made.id}).")


@app.command()
def unsubscribe(
    subscription: Annotated[str, typer.Argument(metavar="ID", help="See `eventlake alerts channels`.")],
) -> None:
    """Tell a channel no more of something."""
    gone = state.changes().unsubscribe(subscription)
    output.talk.print(f"{gone.channel} is no longer told of {gone.kind.value}.")


@app.command()
def test(channel: Annotated[str, typer.Argument(metavar="CHANNEL", help="A channel of eventlake.toml.")]) -> None:
    """Send a sample to a channel, now."""
    state.changes().send_sample(channel)
    output.talk.print(f"{channel} took a sample.")
