"""A workspace as a console shows it: tables, rescued values, quarantine, failures; and a way to look at it."""

import html
import json
import re
from pathlib import Path
from typing import Any, ClassVar

from starlette.testclient import TestClient

from conftest import InProcess, SetClock, new_database, track, with_database
from eventlake.clock import Clock
from eventlake.control.alerts import ATTEMPTS, Alert, Delivery, Kind
from eventlake.control.people import Scope
from eventlake.errors import TransientError
from eventlake.library import Workspace
from eventlake.web.app import create_app
from eventlake.workspace import CONFIG

PASSWORD = "correct horse battery staple"
DAY = "1794873600000"  # 2026-11-17
HOSTILE = "<script>alert(1)</script>\"'&\u202e{{7*7}}"
CHANNELS = '[channels.ops]\nkind = "webhook"\nurl = "http://127.0.0.1:9/hook"\nsecret = "s3cr3t-of-ops"\n'


class Failing:
    """A runner on which every task fails, as a storage that is away makes it."""

    parallelism = 1
    where: ClassVar[dict[str, str]] = {}

    def run(self, function: Any, context: Any, tasks: Any, progress: Any = None) -> list[Any]:
        raise TransientError("the storage is away", fix="wait until it is back")


def put(place: Workspace, source_id: str, name: str, lines: list[Any]) -> None:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    place.archive.write(f"segment-logs/{source_id}/{DAY}/{name}.json", text.encode())


def order(number: int, **properties: Any) -> dict[str, Any]:
    event = track("Order Completed", f"o{number}", properties=properties or {"total": number, "coupon": "none"})
    event["context"] = {"library": {"name": "analytics.js", "version": "2.1.0"}}
    event["receivedAt"] = f"2026-11-17T10:{number % 60:02d}:00.000Z"
    return event


def full_place(folder: Path, clock: Clock | None = None, *, settings: str = CHANNELS) -> Workspace:
    """A workspace with two sources: one with all that can be seen, one whose syncs fail."""
    folder.mkdir(exist_ok=True)
    (folder / CONFIG).write_text(f'workspace_id = "acme"\ndatabase = "{new_database()}"\n{settings}')
    with_database(folder)
    place = Workspace.open(folder, clock or SetClock("2026-11-17T12:00:00Z"))
    place.connections.add_source("web", source_id="src1", name="The web shop")
    place.connections.add_source("ios", source_id="src2", name=HOSTILE)
    place._given = InProcess()
    put(place, "src1", "a", [*(order(number) for number in range(200)), "not json", '{"type": "nonsense"}'])
    place.sync("web")
    put(
        place, "src1", "b", [order(1), order(300, total="n/a"), order(301, total=1.5), order(302, **{HOSTILE: HOSTILE})]
    )
    put(place, "src1", "c", [track(HOSTILE, "h1", properties={"x": HOSTILE})])
    place.sync("web")
    put(place, "src2", "a", [track("Opened", "i1")])
    place._given = Failing()
    for _ in range(3):
        try:
            place.sync("ios")
        except TransientError:
            continue
    place._given = InProcess()
    return place


def with_alerts(place: Workspace) -> None:
    """Let there be alerts: one that reached somebody, one that goes on being tried, one that was given up."""
    for number, kind in enumerate((Kind.SYNC_FAILED, Kind.NO_DATA, Kind.NEW_COLUMNS)):
        place.alerts.subscribe(kind, "ops")
        subject = f"ios: {HOSTILE * 3}"
        alert = Alert(f"a{number}", place.clock.now(), kind, "default", "src2", subject, HOSTILE * 9, "/runs")
        place.alerts.add(alert, ["ops"])
        delivery = Delivery(alert.id, "ops", (1, 1, ATTEMPTS)[number], None, None, None)
        place.alerts.delivered(delivery, (None, "the channel is away", "the channel is away")[number])


class Browser:
    """Looks at pages, follows links and sends forms, without scripts."""

    def __init__(self, place: Workspace, **options: Any) -> None:
        self.place = place
        self.client = TestClient(
            create_app(place, **options),
            base_url="http://127.0.0.1",
            raise_server_exceptions=True,
            follow_redirects=True,
        )

    def sign_in(self, name: str = "ann", role: Scope = Scope.ADMIN) -> "Browser":
        secret = self.place.people.invite(role)
        answer = self.client.post(f"/welcome/{secret}", data={"name": name, "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        return self

    def see(self, path: str, status: int = 200) -> str:
        answer = self.client.get(path)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:2000])
        return answer.text

    def words(self, path: str, status: int = 200) -> str:
        """What a reader sees of a page."""
        return words(self.see(path, status))

    def send(self, path: str, /, status: int = 200, **fields: str) -> str:
        """Send a form of the console."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.see("/settings"))
        assert found
        answer = self.client.post(path, data={"csrf": found[1], **fields})
        assert answer.status_code == status, (path, answer.status_code, words(answer.text)[:2000])
        return words(answer.text)


class Program:
    """Uses the API with a token."""

    def __init__(self, place: Workspace, scope: Scope = Scope.ADMIN, **options: Any) -> None:
        self.place = place
        _, secret = place.people.add_token("test", scope, "nobody")
        app = create_app(place, **{"requests_per_second": 0, **options})
        headers = {"authorization": f"Bearer {secret}"}
        self.client = TestClient(app, base_url="http://127.0.0.1/api/v1", headers=headers)

    def get(self, path: str, expected: int = 200, **params: Any) -> Any:
        answer = self.client.get(path, params=params)
        assert answer.status_code == expected, (path, answer.status_code, answer.text[:1000])
        return answer.json()

    def post(self, path: str, body: Any = None, status: int = 201) -> Any:
        answer = self.client.post(path, json=body)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:1000])
        return answer.json() if answer.content else None

    def patch(self, path: str, body: Any, status: int = 200) -> Any:
        answer = self.client.patch(path, json=body)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:1000])
        return answer.json()

    def put(self, path: str, body: Any, status: int = 200) -> Any:
        answer = self.client.put(path, json=body)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:1000])
        return answer.json()

    def delete(self, path: str, status: int = 204, body: Any = None) -> Any:
        answer = self.client.request("DELETE", path, json=body)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:1000])
        return answer.json() if answer.content else None


def words(text: str) -> str:
    body = re.sub(r"<(script|style|title)\b.*?</\1>", " ", text.partition("<main")[2] or text, flags=re.S)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())
