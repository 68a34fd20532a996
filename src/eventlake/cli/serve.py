"""`eventlake serve`, `schedule` and `console`: eventlake runs by itself, and one can see it."""

import os
import signal
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from eventlake.cli import output, state
from eventlake.cli.collect import PublicUrl, RequestsPerSecond, Strict, TrustedProxies
from eventlake.collector.addresses import checked_url
from eventlake.collector.options import Options
from eventlake.errors import EventLakeError, InvalidSettingsError, SetupError
from eventlake.library.workspace import Workspace
from eventlake.serve.supervisor import PARENT, Supervisor, end_with_parent

_COLLECTOR = Options()
CONSOLE_PORT = 8021
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ALERTS_EVERY = 10.0  # seconds
_GIVES_WAY = 10  # how nice the scheduler is, and all that it starts

Host = Annotated[str, typer.Option(help="Address that the console listens on.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the console; 0 for any.")]
Certificate = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate, with which the console speaks https.")
]
Key = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="The certificate's private key.")]
BehindProxy = Annotated[
    bool,
    typer.Option("--behind-tls-proxy", help="A proxy speaks https to browsers, so the console may be on any address."),
]
CollectorUrl = Annotated[
    str, typer.Option(metavar="URL", help="Where apps reach the collector; for what the console shows.")
]
Parallel = Annotated[int, typer.Option("--parallel", min=1, max=64, help="Runs that go on at a time.")]


def serve(
    host: Host = "127.0.0.1",
    port: Port = CONSOLE_PORT,
    collector_host: Annotated[str, typer.Option(help="Address that the collector listens on.")] = _COLLECTOR.host,
    collector_port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the collector.")] = _COLLECTOR.port,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes of the collector.")] = 1,
    strict: Strict = False,
    requests_per_second: RequestsPerSecond = _COLLECTOR.requests_per_second,
    trusted_proxies: TrustedProxies = _COLLECTOR.trusted_proxies,
    public_url: PublicUrl = _COLLECTOR.public_url,
    parallel: Parallel = 2,
    collect: Annotated[bool, typer.Option("--collect/--no-collect", help="Run a collector.")] = True,
    schedule: Annotated[bool, typer.Option("--schedule/--no-schedule", help="Run a scheduler.")] = True,
    console: Annotated[bool, typer.Option("--console/--no-console", help="Run the console and the HTTP API.")] = True,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    behind_tls_proxy: BehindProxy = False,
    collector_url: CollectorUrl = "",
) -> None:
    """Run everything: collect events, sync on schedule, tell when something is wrong, and show it in a browser.

    Each part is a process of its own and can be switched off here, or run alone on another machine over a shared
    PostgreSQL database: `eventlake collect`, `eventlake schedule`, `eventlake console`.

    The first start prints a link by which you become its administrator.

    Example: eventlake serve, then open the link
    """
    _check_address(host, tls_cert, tls_key, behind_proxy=behind_tls_proxy)
    for at, wanted, part in ((collector_host, collector_port, collect), (host, port, console)):
        if part:
            _refuse_if_taken(at, wanted)
    _name_console(host, port, encrypted=bool(tls_cert))
    workspace = state.workspace()
    public_url = checked_url(public_url) if public_url else ""
    url = collector_url or public_url or f"http://{_reached(collector_host)}:{collector_port}"
    parts: dict[str, list[str]] = {}
    if collect:
        where = ["--host", collector_host, "--port", str(collector_port), "--workers", str(workers)]
        limits = ["--requests-per-second", str(requests_per_second), "--trusted-proxies", str(trusted_proxies)]
        parts["collector"] = ["collect", *where, *limits, "--public-url", public_url, *(["--strict"] if strict else [])]
    if schedule:
        parts["scheduler"] = ["schedule", "--parallel", str(parallel)]
    if console:
        parts["console"] = ["console", "--host", host, "--port", str(port), "--collector-url", url]
        parts["console"] += ["--behind-tls-proxy"] if behind_tls_proxy else []
        parts["console"] += ["--tls-cert", str(tls_cert), "--tls-key", str(tls_key)] if tls_cert else []
    if not parts:
        raise InvalidSettingsError("every part is switched off", fix="leave one of them on")
    if stubborn := Supervisor(workspace.folder, parts, tell).run():
        output.talk.print(f"Stopped; {stubborn} of {len(parts)} parts had to be killed.")
        raise typer.Exit(1)
    output.talk.print("Stopped.")


def schedule(parallel: Parallel = 2) -> None:
    """Sync connections by their schedules, carry out what was ordered in the console, and send alerts.

    Several may run, on as many machines as share the database: each sync is begun by one of them. `eventlake serve`
    runs one beside the collector and the console.

    Example: eventlake schedule --parallel 4
    """
    from eventlake.schedule.scheduler import Scheduler  # noqa: PLC0415 - as all of it that takes time to load

    end_with_parent()
    is_served = PARENT in os.environ  # beside a collector, to which runs give way: what apps send cannot wait
    if is_served:
        os.nice(_GIVES_WAY)
    workspace = _opened(gives_way=is_served)
    stop = _stopped_by_signals()
    scheduler = Scheduler(workspace, parallel=parallel, tell=_say)
    threading.Thread(target=tell_people, args=(workspace, stop), daemon=True).start()
    _say(f"Scheduling with {parallel} runs at a time. Stop with Ctrl-C.")
    scheduler.run(stop)
    _say("Stopped. What was not finished is made up for by the next start.")


def console(
    host: Host = "127.0.0.1",
    port: Port = CONSOLE_PORT,
    tls_cert: Certificate = None,
    tls_key: Key = None,
    behind_tls_proxy: BehindProxy = False,
    collector_url: CollectorUrl = "http://127.0.0.1:8020",
) -> None:
    """Run the console and the HTTP API alone.

    `eventlake serve` runs it beside the collector and a scheduler. It listens on this machine only, unless it speaks
    https or a proxy does that for it.

    Example: eventlake console --port 8021
    """
    import uvicorn  # noqa: PLC0415

    from eventlake.web.app import create_app  # noqa: PLC0415

    end_with_parent()
    _check_address(host, tls_cert, tls_key, behind_proxy=behind_tls_proxy)
    _name_console(host, port, encrypted=bool(tls_cert))
    workspace = _opened()
    is_encrypted = bool(tls_cert) or behind_tls_proxy
    hosts = frozenset({host.lower()})
    app = create_app(
        workspace,
        hosts=hosts,
        is_encrypted=is_encrypted,
        collector_url=collector_url.rstrip("/"),
        trusted_proxies=int(behind_tls_proxy),
    )

    class Server(uvicorn.Server):
        async def startup(self, sockets: object = None) -> None:
            await super().startup(sockets)  # type: ignore[arg-type]
            if self.started and self.servers:
                at = self.servers[0].sockets[0].getsockname()[1]
                _introduce(workspace, f"{'https' if tls_cert else 'http'}://{_reached(host)}:{at}")

    Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            access_log=False,
            log_level="warning",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=5,
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
        )
    ).run()


def _introduce(workspace: Workspace, address: str) -> None:
    """Tell where it is; and, if nobody can sign in yet, how to become the first who can."""
    from eventlake.control.people import Scope  # noqa: PLC0415

    _say(f"Console on {address}. Stop with Ctrl-C.")
    if not workspace.people.users():
        link = f"{address}/welcome/{workspace.people.invite(Scope.ADMIN)}"
        _say(f"Nobody can sign in yet. Open this link once, within a day: {link}")


def _name_console(host: str, port: int, *, encrypted: bool) -> None:
    """Let links lead to where the console is, unless the settings say where people reach it."""
    configured = Workspace.open(state.folder()).settings.console
    if port and "url" not in configured.model_fields_set:
        os.environ["EVENTLAKE_CONSOLE__URL"] = f"{'https' if encrypted else 'http'}://{_reached(host)}:{port}"


def _refuse_if_taken(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((host, port))
        except OSError as error:
            raise SetupError(
                f"cannot listen on {host}:{port}: {error.strerror}",
                fix="is another `eventlake serve` running? Else choose another port: --port, --collector-port",
            ) from error


def _reached(host: str) -> str:
    """What stands for a host in an address of this machine."""
    if host in ("0.0.0.0", "::"):  # noqa: S104 - it is asked, not bound
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def tell_people(workspace: Workspace, stop: threading.Event, *, every: float = _ALERTS_EVERY) -> None:
    """Look for what people should be told, and tell them; in a thread of its own, as mail servers take their time."""
    from eventlake.alerts.watch import Watch  # noqa: PLC0415

    watch = Watch(workspace)
    while not stop.wait(every):
        for attempt, what in ((watch.look, "look for"), (watch.deliver, "deliver")):  # one does without the other
            try:
                attempt()
            except EventLakeError as error:
                _say(f"cannot {what} alerts: {error.problem}; trying again")
            except Exception as error:  # alerts must go on, whatever it is
                _say(f"cannot {what} alerts, by a mistake of eventlake: {type(error).__name__}: {error}")


def _opened(*, gives_way: bool = False) -> Workspace:
    workspace = Workspace.open(state.folder())
    workspace.keep_spark_log(gives_way=gives_way)
    state.at_the_end.callback(workspace.close)
    return workspace


def _stopped_by_signals() -> threading.Event:
    stop = threading.Event()

    def ask(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask)
    return stop


def _check_address(host: str, certificate: Path | None, key: Path | None, *, behind_proxy: bool) -> None:
    """Passwords and tokens go over the wire: beyond this machine only encrypted."""
    if bool(certificate) != bool(key):
        raise InvalidSettingsError("a certificate needs its key, and a key its certificate", fix="give both")
    if certificate and key:
        try:
            ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise InvalidSettingsError(f"{certificate} cannot be used: {error}", fix="check both files") from error
    if host not in _LOOPBACK and not certificate and not behind_proxy:
        raise InvalidSettingsError(
            f"the console would be on {host} without https",
            fix="give --tls-cert and --tls-key; or, if a proxy speaks https to browsers, --behind-tls-proxy",
        )


def tell(part: str, text: str) -> None:
    output.talk.print(output.printable(f"{part:<9}  {text}"), markup=False)


def _say(text: str) -> None:
    with suppress(OSError, SystemExit):  # whoever listened may be gone: that must not keep anything from ending well
        output.talk.print(output.printable(text), markup=False)
