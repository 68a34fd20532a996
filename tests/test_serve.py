"""`eventlake serve` as people run it: one command, several processes, a browser's way in."""

import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from collectors import PROGRAM
from eventlake.archive.layout import raw_files
from eventlake.control.people import Scope
from eventlake.library import Workspace
from servers import free_ports

SECONDS = 90


class Serving:
    """Runs `eventlake serve` in a workspace."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        self.console, self.collector = free_ports(2)
        command = [str(PROGRAM), "-C", str(folder), "serve", "--port", str(self.console)]
        self._log = (folder / "serve.log").open("wb")
        self.process = subprocess.Popen(
            [*command, "--collector-port", str(self.collector), *options], stderr=self._log, stdout=self._log
        )

    @property
    def said(self) -> str:
        return (self.folder / "serve.log").read_text()

    def wait_for(self, what: Callable[[], Any], seconds: float = SECONDS) -> Any:
        deadline = time.monotonic() + seconds
        while True:
            try:
                if found := what():
                    return found
            except (OSError, psutil.Error):
                pass
            assert time.monotonic() < deadline, self.said
            assert self.process.poll() is None, self.said
            time.sleep(0.1)

    def parts(self) -> dict[str, int]:
        """The processes that it started, by what they are."""
        children = psutil.Process(self.process.pid).children()
        words = {child.pid: child.cmdline() for child in children}
        return {name: pid for name in ("collect", "schedule", "console") for pid, line in words.items() if name in line}

    def api(self, path: str, token: str) -> Any:
        address = f"http://127.0.0.1:{self.console}/api/v1/{path}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def send(self, key: str, events: list[dict[str, Any]]) -> None:
        body = json.dumps({"writeKey": key, "batch": events}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.collector}/v1/batch", body)
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(SECONDS)
        self._log.close()
        return code


def pages(start: int, count: int) -> list[dict[str, Any]]:
    return [{"type": "page", "userId": "u", "messageId": f"m{start + number}"} for number in range(count)]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workspace]:
    place = Workspace.create(tmp_path / "place")
    yield place
    place.close()


def test_events_that_are_sent_become_rows_by_themselves_whatever_is_killed(place: Workspace) -> None:
    connection, key = place.connections.add_source("web")
    _, token = place.people.add_token("test", Scope.READ, "test")
    serving = Serving(place.folder)
    try:
        link = serving.wait_for(lambda: re.search(r"http://127\.0\.0\.1:\d+/welcome/\S+", serving.said))[0]
        assert link.startswith(f"http://127.0.0.1:{serving.console}/")
        serving.wait_for(lambda: "Collecting on" in serving.said)
        serving.send(key, pages(0, 10))
        _, admin = place.people.add_token("admin", Scope.ADMIN, "test")
        invited = urllib.request.Request(
            f"http://127.0.0.1:{serving.console}/api/v1/users/invitations",
            b'{"role": "read"}',
            {"Authorization": f"Bearer {admin}"},
        )
        with urllib.request.urlopen(invited, timeout=10) as answer:  # a link leads to where the console is
            assert json.load(answer)["link"].startswith(f"http://127.0.0.1:{serving.console}/welcome/")
        loaded = serving.wait_for(lambda: [run for run in serving.api("runs?status=finished", token) if run["loaded"]])
        assert loaded[0]["loaded"] == 10  # the first sync begins when the first events are there
        kinds = {part["kind"] for part in serving.wait_for(lambda: serving.api("health", token))["parts"]}
        assert kinds == {"collector", "scheduler", "console"}
        serving.wait_for(lambda: serving.api("funnel", token)["received"] == 10)  # the first ever count as well

        before = serving.parts()
        assert set(before) == {"collect", "schedule", "console"}
        (java,) = [one for one in psutil.Process(before["schedule"]).children() if "java" in one.name()]
        mine = os.nice(0)
        nice = [psutil.Process(before[part]).nice() for part in ("collect", "schedule")]
        assert [*nice, java.nice()] == [mine, mine + 10, 19]  # what apps send cannot wait, leases hardly, rows can
        for pid in before.values():
            os.kill(pid, signal.SIGKILL)
        again = serving.wait_for(lambda: len(found := serving.parts()) == 3 and found)
        assert not set(again.values()) & set(before.values())
        serving.wait_for(lambda: serving.api("health", token))
        serving.wait_for(lambda: serving.said.count("Collecting on") == 2)
        serving.send(key, pages(10, 5))
        place.orders.place("default", connection.source.id, "sync", {}, "test")
        serving.wait_for(lambda: place.orders.latest(1)[0].status == "done")
        assert place.query("select count(*) as n from web.page").to_pylist() == [{"n": 15}]
    finally:
        code = serving.stop()
    assert code == 0, serving.said
    assert serving.said.rstrip().endswith("Stopped.")
    assert token not in serving.said
    assert key not in serving.said


def test_parts_end_when_the_supervisor_is_killed(place: Workspace) -> None:
    serving = Serving(place.folder, "--no-collect")
    serving.wait_for(lambda: "Console on" in serving.said and "Scheduling" in serving.said)
    parts = serving.parts()
    assert set(parts) == {"schedule", "console"}
    serving.process.kill()
    serving.process.wait()
    serving._log.close()
    deadline = time.monotonic() + SECONDS
    while any(psutil.pid_exists(pid) for pid in parts.values()):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_collector_gets_its_options(place: Workspace) -> None:
    _, key = place.connections.add_source("web")
    options = ("--strict", "--trusted-proxies", "1", "--requests-per-second", "500")
    serving = Serving(place.folder, "--no-schedule", "--no-console", *options)
    try:
        serving.wait_for(lambda: "Collecting on" in serving.said)
        direct = {"userId": "u", "context": {"direct": True}}  # from a client itself, whose address is kept
        body = json.dumps({"writeKey": key, "type": "page", **direct}).encode()
        address, proxied = f"http://127.0.0.1:{serving.collector}/v1/page", {"X-Forwarded-For": "203.0.113.9"}
        with urllib.request.urlopen(urllib.request.Request(address, body, proxied), timeout=10) as answer:
            assert answer.status == 200
        nobody = json.dumps({"writeKey": key, "type": "page"}).encode()
        with pytest.raises(urllib.error.HTTPError, match="400"):
            urllib.request.urlopen(urllib.request.Request(address, nobody), timeout=10)
    finally:
        assert serving.stop() == 0
    (file,) = raw_files(place.archive, place.sources.get("web").id)
    assert json.loads(gzip.decompress(place.archive.read(file.path)))["context"]["ip"] == "203.0.113.9"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["serve", "--host", "0.0.0.0"], "the console would be on 0.0.0.0 without https"),
        (["console", "--host", "192.0.2.1"], "the console would be on 192.0.2.1 without https"),
        (["serve", "--tls-cert", "nothing.pem"], "a certificate needs its key"),
        (["serve", "--tls-cert", "nothing.pem", "--tls-key", "nothing.pem"], "nothing.pem cannot be used"),
        (["serve", "--no-collect", "--port", "TAKEN"], "is another `eventlake serve` running?"),
        (["serve", "--no-collect", "--no-schedule", "--no-console"], "every part is switched off"),
    ],
)
def test_what_would_not_be_safe_is_refused(place: Workspace, words: list[str], problem: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        words = [str(taken.getsockname()[1]) if word == "TAKEN" else word for word in words]
        command = [sys.executable, "-m", "eventlake", "-C", str(place.folder), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode in (1, 2)
    assert problem in done.stderr


def cli(place: Workspace, *words: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "eventlake", "-C", str(place.folder), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_users_alerts_and_runs_on_the_command_line(place: Workspace) -> None:
    assert "There is no user yet" in cli(place, "user", "list")
    secret = cli(place, "user", "invite", "--role", "admin").strip().rpartition("/")[2]
    assert place.people.invited_as(secret) is Scope.ADMIN
    place.people.join(secret, "ann", "a long password")
    assert json.loads(cli(place, "user", "list", "--json"))[0]["name"] == "ann"
    assert "'ann' is the only administrator" in cli(place, "user", "remove", "ann", code=2)
    assert "There is no channel yet" in cli(place, "alerts", "channels")
    assert "There was nothing to tell" in cli(place, "alerts", "list")
    with (place.folder / "eventlake.toml").open("a") as file:
        file.write('\n[channels.ops]\nkind = "slack"\nurl = "http://127.0.0.1:9/services/secret-part"\n')
    assert "ops is told of no_data from now on" in cli(
        place, "alerts", "subscribe", "ops", "no_data", "--threshold", "6"
    )
    told = json.loads(cli(place, "alerts", "channels", "--json"))
    assert told["channels"] == [{"channel": "ops", "kind": "slack"}]
    assert told["subscriptions"][0]["threshold"] == 6
    failed = cli(place, "alerts", "test", "ops", code=1)
    assert "ops did not take it: ConnectionRefusedError" in failed
    assert "secret-part" not in failed
    assert "is no longer told of no_data" in cli(place, "alerts", "unsubscribe", told["subscriptions"][0]["id"])
    assert "there is no run 17" in cli(place, "stop", "17", code=2)


@pytest.mark.long
def test_the_demo_serves_a_lake_to_which_events_keep_coming(tmp_path: Path) -> None:
    command = [str(PROGRAM), "demo", "--serve", "--events", "2000", "--dir", str(tmp_path / "demo")]
    log = tmp_path / "demo.log"
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            deadline = time.monotonic() + SECONDS
            while not ("/welcome/" in log.read_text() and "rows loaded" in log.read_text()):
                assert time.monotonic() < deadline, log.read_text()
                assert process.poll() is None, log.read_text()
                time.sleep(0.2)
            place = Workspace.open(tmp_path / "demo")
            came = sum(one.accepted for one in place.collected.between(0, place.clock.now() + 1).values())
            while not came:
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.5)
                came = sum(one.accepted for one in place.collected.between(0, place.clock.now() + 1).values())
            assert place.query("select count(*) as n from shop.page").to_pylist()[0]["n"] > 0
            place.close()
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(SECONDS)
    assert code == 0, log.read_text()
    assert "serve" in log.read_text().splitlines()[-1]  # how to go on
