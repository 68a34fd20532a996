"""Alerts: when people are told, that they are told once, and that it reaches them."""

import email
import http.server
import json
import re
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
from hypothesis import given
from hypothesis import strategies as st

from certificates import certificate
from conftest import InProcess, SetClock, new_database, track, with_database
from eventlake.alerts import channels, rules
from eventlake.alerts.rules import About
from eventlake.alerts.watch import Watch
from eventlake.archive import layout as archive
from eventlake.cli.serve import tell_people
from eventlake.control.alerts import ATTEMPTS, Alert, Kind
from eventlake.control.collected import Taken
from eventlake.control.run_lines import Counts, LastLoaded, RunLine
from eventlake.errors import ConfigurationError, InvalidSettingsError, NotFoundError, TransientError
from eventlake.events import instants
from eventlake.library import Workspace
from eventlake.settings.serve import EmailChannelSettings, SlackChannelSettings, WebhookChannelSettings
from eventlake.timetable import DAY, MINUTE
from eventlake.workspace import CONFIG, read_settings
from servers import free_ports

HOUR = 60 * MINUTE
DOCS = Path(__file__).parent.parent / "docs"
WEB = About("src1", "default", "web")


def run(status: str = "finished", **values: Any) -> RunLine:
    line = RunLine("17", "default", "src1", "sync", status, "commit", 0, 1)
    return line._replace(**values)


# When people are told


def test_failures_are_told_the_first_fifth_and_twentieth_time_in_a_row() -> None:
    failed = run("failed", notices=["the storage is away"])
    told = [number for number in range(1, 100) if rules.sync_failed(WEB, failed, number)]
    assert told == [1, 5, 20]
    fifth = rules.sync_failed(WEB, failed, 5)
    assert fifth
    assert fifth.subject == "web: sync failed 5 times in a row"
    assert fifth.body.startswith("the storage is away\n\nNothing is lost")
    assert fifth.link == "/runs/17"
    mendable = rules.sync_failed(WEB, failed._replace(fix="mount it"), 1)
    assert mendable
    assert mendable.body.startswith("the storage is away\nFix: mount it\n\nNothing is lost")


def test_that_it_works_again_is_told_once() -> None:
    assert rules.recovered(WEB, run(loaded=3), 0) is None
    told = rules.recovered(WEB, run(loaded=3), 2)
    assert told
    assert told.body == "After 2 failed syncs in a row, a sync finished: 3 rows loaded."


def test_no_data_is_told_after_so_many_hours_and_once_for_each_gap() -> None:
    now = 1000 * HOUR
    at = [LastLoaded(now - hours, True) for hours in (24 * HOUR, 24 * HOUR + 1)]
    assert rules.no_data(WEB, at[0], now, 24) is None
    told = rules.no_data(WEB, at[1], now, 24)
    later = rules.no_data(WEB, at[1], now + 10 * HOUR, 24)
    another = rules.no_data(WEB, LastLoaded(now, True), now + 25 * HOUR, 24)
    assert told
    assert later
    assert another
    assert told.id == later.id != another.id
    never = rules.no_data(WEB, LastLoaded(now, False), now + 25 * HOUR, 24)
    assert never
    assert "nothing was loaded since" in never.body


@pytest.mark.parametrize(
    ("rows", "before", "words"),
    [
        (1000, 1000, None),
        (500, 1000, None),  # exactly the half
        (499, 1000, "web: 50 % fewer events than a week ago"),
        (1501, 1000, "web: 50 % more events than a week ago"),
        (0, 1000, "web: 100 % fewer events than a week ago"),
        (5000, 99, None),  # too few to tell
        (5000, 0, None),
    ],
)
def test_hours_that_differ_from_the_same_hours_of_last_week_are_told(rows: int, before: int, words: str | None) -> None:
    told = rules.volume(WEB, 20_000 * DAY, rows, before, 50)
    assert (told.subject if told else None) == words


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.floats(0.1, 100))
def test_a_share_is_told_if_and_only_if_it_is_above_the_threshold(found: int, lines: int, percent: float) -> None:
    told = rules.share(Kind.QUARANTINED, WEB, "17", Counts(lines=lines, quarantined=found), percent)
    assert (told is not None) == (lines >= rules.FEW and found * 100 > percent * lines)


def test_new_tables_and_columns_are_told_together() -> None:
    report: list[dict[str, Any]] = [
        {"type": "source"},
        {"table_name": "track_new", "is_new": True, "new_columns": [{"name": "a", "type": "string"}]},
        {"table_name": "page", "is_new": False, "new_columns": [{"name": "b", "type": "bigint"}]},
        {"table_name": "old", "is_new": False},
    ]
    told = rules.new_columns(WEB, 20_000, [report])
    assert told
    assert told.subject == "web: 1 new table and 1 new column"
    assert told.body.splitlines()[1:] == ["new table track_new", "new column page.b (bigint)"]
    assert rules.new_columns(WEB, 20_000, [[{"type": "source"}]]) is None
    many = [
        {"table_name": "page", "is_new": False, "new_columns": [{"name": f"c{n}", "type": "string"}]} for n in range(25)
    ]
    head: dict[str, Any] = {"type": "source"}
    told = rules.new_columns(WEB, 20_000, [[head, *many]])
    assert told
    assert told.body.endswith("… and 5 more")


# What is noted, of a workspace


@pytest.fixture
def clock() -> SetClock:
    return SetClock("2026-11-17T12:00:00Z")


@pytest.fixture
def place(tmp_path: Path, clock: SetClock) -> Workspace:
    channel = '[channels.ops]\nkind = "slack"\nurl = "http://127.0.0.1:9/x"\n'
    (tmp_path / CONFIG).write_text(f'workspace_id = "test"\ndatabase = "{new_database()}"\n{channel}')
    with_database(tmp_path)
    found = Workspace.open(tmp_path, clock)
    found.connections.add_source("web", source_id="src1")
    found.connections.add_source("ios", source_id="src2")
    return found


def ran(
    place: Workspace, status: str = "finished", source_id: str = "src1", *, code: str = "busy", **books: int
) -> str:
    """A sync that is over."""
    runs = place.lake().runs
    run_id = runs.start(source_id, "sync", place.clock.now_ns())
    if status == "failed":
        runs.failed(run_id, [{"error": "it broke", "error_code": code}])
    else:
        whole = {name: books.get(name, 0) for name in ("lines", "loaded", "duplicates", "quarantined")}
        whole |= {"suppressed": 0, "blocked": books.get("blocked", 0)}
        head = {"books": whole, "rescued": books.get("rescued", 0)}
        table = {
            "table_name": "page",
            "database": "web",
            "row_count": whole["loaded"],
            "is_new": bool(books.get("new")),
        }
        runs.finished(run_id, [head, table], place.clock.now())
    return run_id


def subjects(place: Workspace) -> list[str]:
    return [alert.subject for alert in reversed(place.alerts.latest())]


def test_failures_are_counted_per_connection_and_begin_anew_after_a_success(place: Workspace, clock: SetClock) -> None:
    watch = Watch(place)
    for number in range(6):
        ran(place, "failed")
        ran(place, "failed", "src2") if number == 3 else None
        watch.look()
        clock.forward(hours=0.1)
    assert subjects(place) == ["web: sync failed", "ios: sync failed", "web: sync failed 5 times in a row"]
    ran(place, loaded=5)
    watch.look()
    ran(place, "failed")
    watch.look()
    assert subjects(place)[3:] == ["web: sync works again", "web: sync failed"]


def test_what_somebody_stopped_is_no_failure(place: Workspace) -> None:
    ran(place, "failed", code="cancelled")
    Watch(place).look()
    ran(place, loaded=1)
    Watch(place).look()
    assert subjects(place) == []


def test_what_could_not_be_noted_is_found_by_the_next_look(place: Workspace) -> None:
    ran(place, "failed")
    ran(place, "failed", "src2")
    watch = Watch(place)
    with insertions_failing(place, "alerts"), pytest.raises(TransientError):
        watch.look()
    watch.look()
    assert sorted(subjects(place)) == ["ios: sync failed", "web: sync failed"]


@contextmanager
def insertions_failing(place: Workspace, table: str) -> Iterator[None]:
    """Let the database be away whenever something is added to a table."""

    def fail(*told: Any) -> None:
        if told[2].startswith(f"INSERT INTO {table} "):
            raise TransientError("the database is away", fix="")

    sa.event.listen(place.engine, "before_cursor_execute", fail)
    yield
    sa.event.remove(place.engine, "before_cursor_execute", fail)


def test_a_run_that_is_noted_late_is_looked_at(place: Workspace, clock: SetClock) -> None:
    watch = Watch(place)
    runs = place.lake().runs
    late = runs.start("src1", "sync", clock.now_ns())
    ended = clock.now()
    clock.forward(hours=1)
    ran(place, "failed", "src2")
    watch.look()
    books = {"lines": 1000, "loaded": 0, "duplicates": 0, "suppressed": 0, "blocked": 0, "quarantined": 1000}
    runs.finished(late, [{"books": books}], ended)  # its commit took an hour
    watch.look()
    assert "web: 100.0 % quarantined" in subjects(place)


def test_new_tables_of_a_day_are_told_when_its_last_sync_is_over(place: Workspace, clock: SetClock) -> None:
    clock.forward(hours=11.9)
    last = place.lake().runs.start("src1", "sync", clock.now_ns())
    clock.forward(hours=0.2)  # it is the next day
    watch = Watch(place)
    watch.look()
    assert "web: 1 new table" not in subjects(place)
    head = {"books": {"lines": 5, "loaded": 5}, "rescued": 0}
    place.lake().runs.finished(last, [head, {"table_name": "page", "is_new": True}], clock.now())
    watch.look()
    assert "web: 1 new table" in subjects(place)


def test_the_same_is_told_once_by_however_many_look(place: Workspace, clock: SetClock) -> None:
    place.alerts.subscribe(Kind.SYNC_FAILED, "ops")
    ran(place, "failed")
    for _ in range(3):
        Watch(place).look()  # one that was started anew, or runs on another machine
        clock.forward(hours=0.01)
    assert subjects(place) == ["web: sync failed"]
    (alert,) = place.alerts.latest()
    assert [one.channel for one in place.alerts.deliveries([alert.id])] == ["ops"]


def test_who_subscribes_to_a_source_is_told_of_it_only_and_by_their_threshold(
    place: Workspace, clock: SetClock
) -> None:
    place.alerts.subscribe(Kind.QUARANTINED, "ops", source_id="src2", threshold=1)
    ran(place, lines=1000, loaded=900, quarantined=100)
    ran(place, source_id="src2", lines=1000, loaded=980, quarantined=20)
    Watch(place).look()
    by_subject = {alert.subject: alert.id for alert in place.alerts.latest()}
    assert set(by_subject) == {"web: 10.0 % quarantined", "ios: 2.0 % quarantined"}
    assert place.alerts.deliveries([by_subject["web: 10.0 % quarantined"]]) == []
    assert len(place.alerts.deliveries([by_subject["ios: 2.0 % quarantined"]])) == 1


def came(place: Workspace, count: int, *, at: str = "") -> None:
    """Let a sync load what was received at a time, by default now."""
    moment = instants.parse(at) if at else None
    received = moment.micros if moment else place.clock.now()
    lines = "\n".join(
        json.dumps(track("Signed Up", f"{received}-{number}", receivedAt=instants.to_text(received)))
        for number in range(count)
    )
    place.archive.write(archive.path("src1", received, f"{received}.json"), lines.encode())
    place._given = InProcess()
    place.sync("web")


def told_volumes(place: Workspace) -> list[str]:
    return [one for one in subjects(place) if "a week ago" in one]


def collected(place: Workspace, clock: SetClock) -> None:
    """Let it be a collector that takes the events of this source."""
    place.collected.begin("here", clock.now() - DAY, {})
    place.collected.note("here", clock.now(), {"src1": Taken(accepted=1)})


def test_fewer_events_than_in_the_same_hours_of_last_week_are_told_by_the_next_sync(
    place: Workspace, clock: SetClock
) -> None:
    clock.forward(hours=7)  # Tuesday, 19:00
    came(place, 400, at="2026-11-17T13:30:00Z")
    came(place, 300, at="2026-11-17T18:30:00Z")
    clock.forward(hours=7 * 24 - 2)  # 17:00, a week later
    collected(place, clock)
    came(place, 90)
    watch = Watch(place)
    watch.look()
    assert told_volumes(place) == []  # these hours are not over
    clock.forward(hours=1.1)
    came(place, 10, at="2026-11-24T17:59:00Z")
    watch.look()
    assert told_volumes(place) == ["web: 75 % fewer events than a week ago"]
    (alert,) = [one for one in place.alerts.latest() if one.kind is Kind.VOLUME]
    assert "100 events came between 2026-11-24 12:00 and 18:00 UTC" in alert.body
    clock.forward(hours=1)
    place.sync("web")
    watch.look()
    Watch(place).look()  # another
    assert len(told_volumes(place)) == 1
    clock.forward(hours=5)
    place.sync("web")
    watch.look()
    assert told_volumes(place)[1:] == ["web: 100 % fewer events than a week ago"]


def test_events_that_come_late_from_elsewhere_are_compared_when_they_have_come(
    place: Workspace, clock: SetClock
) -> None:
    came(place, 400, at="2026-11-17T11:30:00Z")
    clock.forward(hours=7 * 24 + 8)  # 20:00, a week later
    place.sync("web")
    watch = Watch(place)
    watch.look()
    assert told_volumes(place) == []  # nobody collects here: they may come yet
    came(place, 390, at="2026-11-24T11:30:00Z")
    came(place, 10, at="2026-11-24T12:30:00Z")
    watch.look()
    assert told_volumes(place) == []


def test_a_digest_of_what_is_new(place: Workspace, clock: SetClock) -> None:
    ran(place, lines=500, loaded=500, new=1)
    clock.forward(hours=24)
    Watch(place).look()
    assert "web: 1 new table" in subjects(place)


def test_no_data_for_a_day(place: Workspace, clock: SetClock) -> None:
    ran(place, lines=5, loaded=5)
    watch = Watch(place)
    clock.forward(hours=23)
    ran(place, lines=0, loaded=0)  # a sync without data is no data
    watch.look()
    assert subjects(place) == []
    clock.forward(hours=1.1)
    ran(place, lines=0, loaded=0)
    watch.look()
    clock.forward(hours=2)
    watch.look()
    assert subjects(place).count("web: no data for 24 hours") == 1
    assert subjects(place).count("ios: no data for 24 hours") == 1  # to which nothing ever came


def test_syncs_once_a_day_or_a_week_make_no_false_alarm(place: Workspace, clock: SetClock) -> None:
    place.connections.change("web", {"schedule": "at 12:00"})
    place.connections.change("ios", {"schedule": "cron 0 12 * * 2"})
    watch = Watch(place)
    ran(place, lines=5, loaded=5)
    ran(place, source_id="src2", lines=5, loaded=5)
    for _ in range(6):
        clock.forward(hours=24.02)  # the next is due, and a little late
        watch.look()
        run_id = place.lake().runs.start("src1", "sync", clock.now_ns())
        clock.forward(hours=0.1)
        watch.look()
        place.lake().runs.finished(run_id, [{"books": {"loaded": 5}}], clock.now())
        watch.look()
    assert subjects(place) == []
    clock.forward(hours=24)
    run_id = place.lake().runs.start("src1", "sync", clock.now_ns())
    watch.look()
    assert "web: no data for 24 hours" not in subjects(place)
    clock.forward(hours=24.1)  # it goes on and on
    watch.look()
    assert "web: no data for 24 hours" in subjects(place)


def test_subscriptions_are_checked(place: Workspace) -> None:
    with pytest.raises(NotFoundError, match="there is no channel 'nobody'"):
        place.alerts.subscribe(Kind.NO_DATA, "nobody")
    with pytest.raises(InvalidSettingsError, match="no threshold for sync_failed"):
        place.alerts.subscribe(Kind.SYNC_FAILED, "ops", threshold=3)
    with pytest.raises(InvalidSettingsError, match="no threshold"):
        place.alerts.subscribe(Kind.NO_DATA, "ops", threshold=0)
    made = place.alerts.subscribe(Kind.NO_DATA, "ops")
    assert made.threshold == 24
    assert place.alerts.subscribe(Kind.NO_DATA, "ops") == made  # once is enough


def test_delivery_is_tried_again_after_pauses_that_grow_and_given_up_at_last(place: Workspace, clock: SetClock) -> None:
    place.alerts.subscribe(Kind.SYNC_FAILED, "ops")
    ran(place, "failed")
    watch = Watch(place)
    watch.look()
    assert watch.deliver() == 1  # nobody listens there
    assert watch.deliver() == 0  # not at once again
    clock.forward(hours=1 / 60)
    assert watch.deliver() == 1
    clock.forward(hours=1 / 60)
    assert watch.deliver() == 0
    attempts = 2
    for _ in range(20):
        clock.forward(hours=1.1)
        attempts += watch.deliver()
    assert attempts == ATTEMPTS
    (alert,) = place.alerts.latest()
    (delivery,) = place.alerts.deliveries([alert.id])
    assert (delivery.delivered_at, delivery.next_at, delivery.attempts) == (None, None, ATTEMPTS)
    assert "Connection refused" in (delivery.problem or "")


def test_a_channel_that_is_gone_from_the_settings_is_told_as_such(place: Workspace) -> None:
    place.alerts.add(Alert("a", 1, Kind.VOLUME, None, None, "s", "b", "/"), ["gone"])
    assert Watch(place).deliver() == 1
    assert "no such channel any more" in (place.alerts.deliveries(["a"])[0].problem or "")


def test_two_who_deliver_share_the_work(place: Workspace) -> None:
    for number in range(4):
        place.alerts.add(Alert(f"a{number}", place.clock.now(), Kind.VOLUME, None, None, "s", "b", "/"), ["ops"])
    claimed = [place.alerts.claim() for _ in range(5)]
    assert sorted(one[0].id for one in claimed if one) == ["a0", "a1", "a2", "a3"]
    assert claimed[4] is None


# That it reaches people: real servers


class Requests(http.server.BaseHTTPRequestHandler):
    got: list[tuple[str, dict[str, str], bytes]] = []  # noqa: RUF012
    answer = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).got.append((self.path, dict(self.headers), body))
        self.send_response(type(self).answer)
        if type(self).answer == 302:
            self.send_header("location", "http://127.0.0.1:9/elsewhere")
        self.end_headers()
        self.wfile.write(b"said \x1b[31mno")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def listener() -> Iterator[str]:
    Requests.got, Requests.answer = [], 200
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


ALERT = Alert(
    "id1", 1_794_916_800_000_000, Kind.SYNC_FAILED, "default", "src1", "web: sync failed\nBcc: x@y", "why", "/runs/17"
).message


def test_a_webhook_is_signed_and_can_be_checked(listener: str) -> None:
    channel = WebhookChannelSettings.model_validate({"url": f"{listener}/hook?a=1", "secret": "key"})
    channels.send(channel, ALERT, "https://lake.example/")
    ((path, headers, body),) = Requests.got
    assert path == "/hook?a=1"
    header = headers["X-Eventlake-Signature"]
    documented = re.search(r"```python\n(.*?)```", (DOCS / "alerts.md").read_text(), re.DOTALL)
    assert documented
    receiver: dict[str, Any] = {}
    exec(documented[1], receiver)
    is_genuine = receiver["is_genuine"]
    assert is_genuine("key", header, body)
    assert not is_genuine("another", header, body)
    assert not is_genuine("key", header, body + b" ")
    hour_ago = channels.signature("key", body, int(time.time()) - 3600)
    assert not is_genuine("key", hour_ago, body)
    assert not is_genuine("key", re.sub("t=[0-9]+", f"t={int(time.time())}", hour_ago), body)
    told = json.loads(body)
    assert (told["kind"], told["link"]) == ("sync_failed", "https://lake.example/runs/17")
    assert told["at"] == "2026-11-17T12:00:00Z"


def test_slack_gets_text_in_which_names_are_only_names(listener: str) -> None:
    channel = SlackChannelSettings.model_validate({"url": f"{listener}/services/T/B/x"})
    channels.send(channel, ALERT._replace(subject="<!channel> & <http://evil|web>"), "https://lake.example")
    text = json.loads(Requests.got[0][2])["text"]
    assert text.startswith("*&lt;!channel&gt; &amp; &lt;http://evil|web&gt;*")


@pytest.mark.parametrize("status", [302, 404, 500])
def test_what_a_webhook_answers_is_told_without_the_address(listener: str, status: int) -> None:
    Requests.answer = status
    channel = SlackChannelSettings.model_validate({"url": f"{listener}/services/T/B/secret-part"})
    with pytest.raises(channels.NotDeliveredError) as told:
        channels.send(channel, ALERT, "")
    assert str(told.value) == f"127.0.0.1 answers {status} said [31mno"
    assert len(Requests.got) == 1  # it is not led elsewhere


def test_what_waits_is_delivered_while_nothing_new_can_be_noted(tmp_path: Path, listener: str) -> None:
    (tmp_path / CONFIG).write_text(f'workspace_id = "t"\n[channels.ops]\nkind = "slack"\nurl = "{listener}/x"\n')
    place, stop = Workspace.open(tmp_path), threading.Event()
    place.connections.add_source("web", source_id="src1")
    place.alerts.add(Alert("a", 1, Kind.VOLUME, None, None, "s", "b", "/"), ["ops"])
    ran(place, "failed")
    with insertions_failing(place, "alerts"):
        thread = threading.Thread(target=tell_people, args=(place, stop), kwargs={"every": 0.01})
        thread.start()
        deadline = time.monotonic() + 30
        while not Requests.got and time.monotonic() < deadline:
            time.sleep(0.01)
        stop.set()
        thread.join()
    assert [json.loads(body)["text"][:3] for _, _, body in Requests.got] == ["*s*"]


class Mails:
    def __init__(self) -> None:
        self.got: list[Any] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802
        self.got.append(envelope)
        return "250 OK"


@pytest.fixture
def mails(tmp_path: Path) -> Iterator[tuple[Mails, dict[str, Any]]]:
    """A mail server that wants TLS, then a name and a password."""
    made = certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.shown, made.key)
    handler, (port,) = Mails(), free_ports(1)

    def known(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> AuthResult:
        is_right = isinstance(data, LoginPassword) and data.password == b"p4ssword"
        return AuthResult(success=is_right, handled=False)

    controller = Controller(
        handler,
        hostname="127.0.0.1",
        port=port,
        tls_context=context,
        require_starttls=True,
        auth_required=True,
        auth_require_tls=True,
        authenticator=known,
    )
    controller.start()
    settings = {
        "host": "localhost",
        "port": port,
        "ca_file": str(made.authority),
        "user": "lake",
        "password": "p4ssword",
        "sender": "lake@example.com",
        "to": ["ops@example.com", "two@example.com"],
    }
    yield handler, settings
    controller.stop()


def test_a_mail_is_sent_encrypted_and_its_subject_is_one_line(mails: tuple[Mails, dict[str, Any]]) -> None:
    handler, settings = mails
    channels.send(EmailChannelSettings.model_validate(settings), ALERT, "https://lake.example")
    (envelope,) = handler.got
    assert envelope.rcpt_tos == ["ops@example.com", "two@example.com"]
    mail = email.message_from_bytes(envelope.content)
    assert mail["Subject"] == "[eventlake] web: sync failed Bcc: x@y"
    assert mail["Bcc"] is None
    assert str(mail.get_payload()).replace("\r", "") == "why\n\nhttps://lake.example/runs/17\n"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"password": "wrong"}, "refuses the name or the password (535)"),
        ({"ca_file": None}, "SSLCertVerificationError"),
        ({"user": None}, "the mail server says 530"),
        ({"port": 9}, "Connection refused"),
    ],
)
def test_why_a_mail_was_not_sent_is_told_without_secrets(
    mails: tuple[Mails, dict[str, Any]], changes: dict[str, Any], words: str
) -> None:
    handler, settings = mails
    with pytest.raises(channels.NotDeliveredError) as told:
        channels.send(EmailChannelSettings.model_validate(settings | changes), ALERT, "")
    assert words in str(told.value)
    assert "p4ssword" not in str(told.value)
    assert handler.got == []


@pytest.mark.parametrize("url", ["http://host:99999/x", "http://host/ü", "ftp://host/x"])
def test_an_address_that_cannot_be_used_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="not an address") as told:
        read_settings({"workspace_id": "x", "channels": {"ops": {"kind": "slack", "url": url}}}, CONFIG)
    assert url not in str(told.value)


def test_a_sample_is_told_from_an_alert_by_its_kind(tmp_path: Path, listener: str) -> None:
    (tmp_path / CONFIG).write_text(f'workspace_id = "t"\n[channels.pager]\nkind = "webhook"\nurl = "{listener}/x"\n')
    Workspace.open(tmp_path).send_sample("pager")
    told = json.loads(Requests.got[0][2])
    assert told["kind"] == "sample"
    assert told["kind"] not in list(Kind)


def test_a_sample_reaches_its_channel(tmp_path: Path, listener: str) -> None:
    (tmp_path / CONFIG).write_text(f'workspace_id = "t"\n[channels.ops]\nkind = "slack"\nurl = "{listener}/x"\n')
    place = Workspace.open(tmp_path)
    place.send_sample("ops")
    assert "This is what an alert looks like" in json.loads(Requests.got[0][2])["text"]
    Requests.answer = 500
    with pytest.raises(TransientError, match=r"ops did not take it: 127\.0\.0\.1 answers 500"):
        place.send_sample("ops")
    assert listener.rpartition(":")[2] not in repr(place.settings.channels)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host": "mail.example.com", "security": "none"}, "only for a mail server on this machine"),
        ({"to": []}, "at least 1 item"),
    ],
)
def test_channels_are_checked(settings: dict[str, Any], words: str) -> None:
    whole = {"host": "localhost", "sender": "a@b", "to": ["c@d"], **settings}
    with pytest.raises(ValueError, match=words):
        EmailChannelSettings.model_validate(whole)
