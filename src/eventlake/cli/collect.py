"""`eventlake collect` and `eventlake rejects`: the tracking API."""

import os
from typing import Annotated

import typer

from eventlake.cli import output, state
from eventlake.collector import rejects as kept
from eventlake.collector.addresses import checked_url
from eventlake.collector.options import Options, Spool
from eventlake.collector.server import Supervisor
from eventlake.reports.words import count, either
from eventlake.serve.supervisor import end_with_parent

_DEFAULT = Options()

Strict = Annotated[
    bool, typer.Option("--strict", help="Answer 400 with the reasons if an event of a request is refused.")
]
RequestsPerSecond = Annotated[
    float, typer.Option(min=0, help="Most requests of one source; 0 for no limit. Above: 429.")
]
TrustedProxies = Annotated[
    int,
    typer.Option(
        min=0,
        max=10,
        help="Proxies that every request to the collector passes. A client's address is what the first of them saw.",
    ),
]
PublicUrl = Annotated[
    str,
    typer.Option(
        metavar="URL", help="Where browsers reach the collector, as https://collect.example; for their settings."
    ),
]


def collect(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = _DEFAULT.host,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any.")] = _DEFAULT.port,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that answer requests.")] = min(
        2, os.cpu_count() or 1
    ),
    strict: Strict = False,
    requests_per_second: RequestsPerSecond = _DEFAULT.requests_per_second,
    roll_seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="How long events wait at most until they are in the archive.")
    ] = _DEFAULT.roll_seconds,
    trusted_proxies: TrustedProxies = _DEFAULT.trusted_proxies,
    public_url: PublicUrl = _DEFAULT.public_url,
) -> None:
    """Run the tracking API: SDKs of Segment and RudderStack can send to it unchanged.

    An event is on disk before its request is answered, and in the raw archive a minute later, for `eventlake sync`.

    Example: eventlake collect --port 8020, then

    curl -u WRITE_KEY: http://127.0.0.1:8020/v1/track -d '{"userId": "u1", "event": "Signed Up"}'
    """
    end_with_parent()
    workspace = state.workspace()
    options = Options(
        host=host,
        port=port,
        workers=workers,
        strict=strict,
        requests_per_second=requests_per_second,
        roll_seconds=roll_seconds,
        trusted_proxies=trusted_proxies,
        public_url=checked_url(public_url) if public_url else "",
    )
    if not workspace.sources.all():
        output.talk.print("There is no source yet, so no write key. Add one: eventlake source add web")

    def ready(at: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        output.talk.print(f"Collecting on http://{shown}:{at} with {count(workers, 'worker')}. Stop with Ctrl-C.")

    left = Supervisor(workspace, options, lambda text: output.talk.print(text, markup=False)).run(ready)
    if left:
        output.talk.print(
            f"Stopped. {either(left, 'log is', 'logs are')} still to be written to the archive: the next start does it."
        )
        raise typer.Exit(1)
    output.talk.print("Stopped. Everything that was acknowledged is in the archive.")


def rejects(
    slug: Annotated[str | None, typer.Argument(metavar="[SLUG]", help="Only of this source.")] = None,
    last: Annotated[int, typer.Option(min=1, help="How many, the newest.")] = 50,
    as_json: state.JsonFlag = False,
) -> None:
    """Show events and requests that the collector refused, with the reason."""
    workspace = state.workspace()
    names = {source.id: source.slug for source in workspace.sources.all()}
    wanted = workspace.sources.get(slug).id if slug else None
    found = [reject for reject in kept.read(Spool(workspace.folder).rejects) if wanted in (None, reject.source)][-last:]
    if as_json:
        output.print_json([reject._asdict() for reject in found])
        return
    if not found:
        output.talk.print("Nothing was refused.")
        return
    rows = [(r.time, names.get(r.source or "", r.source or ""), r.code, r.message, r.sample[:80]) for r in found]
    output.table(None, ("time", "source", "code", "reason", "sample"), rows)
