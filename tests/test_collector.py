"""The tracking API, over HTTP: what is taken, what is refused, and what of it is in the archive."""

import base64
import gzip
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from collectors import PROGRAM, Collector
from conftest import InProcess, Lake
from eventlake.collector import rejects as kept
from eventlake.collector.options import Spool
from eventlake.workspace import CONFIG, Workspace
from servers import S3Server

CALLS = {"track": "t", "identify": "i", "page": "p", "screen": "s", "group": "g", "alias": "a"}


def event(**members: Any) -> dict[str, Any]:
    return {"userId": "u1", **members}


def track(name: str = "Signed Up", **members: Any) -> dict[str, Any]:
    return event(type="track", event=name, **members)


def sent_and_archived(folder: Path, path: str, content: Any, **headers: str) -> list[dict[str, Any]]:
    """What is in the archive after one request."""
    with Collector(folder) as collector:
        assert collector.post(path, content, **headers).status == 200
        collector.stop()
        return collector.archived()


# Routes


def test_each_route_stores_its_type(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        for call, letter in CALLS.items():
            for route in (call, letter):
                sent = event(messageId=f"{route}-1", event="x", groupId="g", previousId="p")
                answer = collector.post(f"/v1/{route}", sent)
                assert (answer.status, answer.json) == (200, {"success": True})
        for route in ("batch", "b", "import"):
            batch = [event(type=call, event="x", groupId="g", messageId=f"{route}-{call}") for call in CALLS]
            assert collector.post(f"/v1/{route}", {"batch": batch}).status == 200
        said = collector.stop()
        found = {sent["messageId"]: sent["type"] for sent in collector.archived()}
    expected = {f"{route}-1": call for call, letter in CALLS.items() for route in (call, letter)}
    expected |= {f"{route}-{call}": call for route in ("batch", "b", "import") for call in CALLS}
    assert found == expected
    assert "Everything that was acknowledged is in the archive" in said


def test_an_event_gets_its_envelope(tmp_path: Path) -> None:
    sent = event(
        event="Signed Up",
        timestamp="2015-12-12T19:11:01.152Z",
        sentAt="2015-12-12T19:11:01.169Z",
        receivedAt="1999-01-01T00:00:00Z",
        properties={"price": 12.50, "id": 12345678901234567890123},
        writeKey="secret",
    )
    [stored] = sent_and_archived(tmp_path, "/v1/track", sent)
    assert stored["type"] == "track"
    assert stored["projectId"] == "src1"
    assert stored["version"] == 2
    assert stored["channel"] == "server"
    assert stored["originalTimestamp"] == "2015-12-12T19:11:01.152Z"
    assert stored["receivedAt"] > "2026"
    assert stored["messageId"]
    assert stored["properties"] == sent["properties"]
    assert "writeKey" not in stored


def test_numbers_and_keys_that_come_twice_are_archived_as_they_were_sent(tmp_path: Path) -> None:
    text = b'{"userId":"u","event":"x","properties":{"a":1.10,"a":2,"big":1e400,"bad":"\\ud800"},"userId":"v"}'
    with Collector(tmp_path) as collector:
        assert collector.post("/v1/track", text).status == 200
        collector.stop()
        [line] = collector.lines()
    assert b'"a":1.10,"a":2,"big":1e400,"bad":"\\ud800"' in line
    assert b'"userId":"u"' in line
    assert b'"userId":"v"' in line


def test_what_a_batch_says_of_all_is_merged_into_each(tmp_path: Path) -> None:
    batch = {
        "batch": [track(context={"app": {"name": "mine"}}), track(integrations={"X": False})],
        "context": {"app": {"name": "all"}, "locale": "nl"},
        "integrations": {"X": True, "Y": True},
        "sentAt": "2026-01-01T00:00:00.000Z",
    }
    first, second = sent_and_archived(tmp_path, "/v1/batch", batch)
    assert first["context"] == {"app": {"name": "mine"}, "locale": "nl"}
    assert second["context"] == {"app": {"name": "all"}, "locale": "nl"}
    assert second["integrations"] == {"X": False, "Y": True}
    assert first["sentAt"] == second["sentAt"] == "2026-01-01T00:00:00.000Z"


def test_the_address_of_a_browser_is_kept_and_that_of_a_server_is_not(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        collector.post("/v1/t", event(event="x", messageId="browser"), Origin="https://shop.example")
        collector.post("/v1/t", event(event="x", messageId="given", context={"ip": "1.2.3.4"}), Origin="https://a.b")
        collector.post("/v1/track", event(event="x", messageId="server"))
        collector.post("/v1/track", event(event="x", messageId="direct", context={"direct": True}))
        collector.stop()
        found = {sent["messageId"]: sent.get("context", {}).get("ip") for sent in collector.archived()}
    assert found == {"browser": "127.0.0.1", "given": "1.2.3.4", "server": None, "direct": "127.0.0.1"}


def test_the_category_of_a_page_is_copied_to_its_properties(tmp_path: Path) -> None:
    [stored] = sent_and_archived(tmp_path, "/v1/page", event(name="Home", category="Docs"))
    assert stored["properties"] == {"category": "Docs"}


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/x-www-form-urlencoded"])
def test_json_is_read_whatever_the_content_type_says(tmp_path: Path, kind: str) -> None:
    assert len(sent_and_archived(tmp_path, "/v1/track", event(event="x"), Content_Type=kind)) == 1


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    body = gzip.compress(json.dumps({"batch": [track()] * 2}).encode())
    assert len(sent_and_archived(tmp_path, "/v1/batch", body, Content_Encoding="gzip")) == 2


def test_images_store_events_and_always_are_images(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        data = base64.urlsafe_b64encode(json.dumps(track(writeKey=collector.key, messageId="m1")).encode()).decode()
        dotted = f"userId=u&event=Opened&properties.subject=Hi%20there&messageId=m2&writeKey={collector.key}"
        deep = f"writeKey={collector.key}&{'a.' * 800}a=1"
        odd = ["data=%%%", "", f"a.b=1&a=2&writeKey={collector.key}", "writeKey.a=1", "userId=u&userId.x=v", deep]
        for query in (f"data={data.rstrip('=')}", dotted, *odd):
            answer = collector.get(f"/v1/pixel/track?{query}")
            assert (answer.status, answer.headers["content-type"], answer.body[:6]) == (200, "image/gif", b"GIF89a")
        collector.stop()
        found = {sent["messageId"]: sent for sent in collector.archived()}
    assert set(found) == {"m1", "m2"}
    assert found["m2"]["properties"] == {"subject": "Hi there"}
    assert found["m2"]["channel"] == "client"


# Settings documents, CORS, health


def test_documents_for_browsers(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        settings = collector.get(f"/v1/projects/{collector.key}/settings").json
        assert settings["integrations"]["Segment.io"]["apiKey"] == collector.key
        assert settings["integrations"]["Segment.io"]["apiHost"] == f"127.0.0.1:{collector.port}/v1"
        assert collector.get("/v1/projects/nobody/settings").status == 404
        config = collector.get(f"/sourceConfig/?p=npm&writeKey={collector.key}").json
        assert config["source"]["id"] == "src1"
        assert config["source"]["destinations"] == []
        assert collector.get("/sourceConfig/?writeKey=nobody").status == 401


def test_browsers_may_send_from_other_origins(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        wanted = "anonymousid,authorization,content-type,sentat"
        headers = {"Origin": "https://shop.example", "Access-Control-Request-Headers": wanted}
        answer = collector.request("OPTIONS", "/v1/page", b"", headers)
        assert answer.status == 204
        assert answer.headers["access-control-allow-origin"] == "*"
        allowed = {name.strip() for name in answer.headers["access-control-allow-headers"].split(",")}
        assert set(wanted.split(",")) <= allowed


def test_health_and_metrics_of_all_workers(tmp_path: Path) -> None:
    with Collector(tmp_path, "--workers", "2") as collector:
        for number in range(20):
            collector.post("/v1/track", event(event="x", messageId=f"m{number}"))
        collector.post("/v1/track", event())
        text = collector.get("/metrics").body.decode()
        assert "# TYPE eventlake_collector_events_stored_total counter" in text
        assert 'eventlake_collector_events_stored_total{source="web"} 20\n' in text
        assert 'eventlake_collector_events_rejected_total{source="web"} 1\n' in text


# Refusals


REFUSED = {
    "no_user_anon_id": {"type": "track", "event": "x"},
    "id_not_string": {"type": "track", "event": "x", "userId": 5},
    "event_not_defined": {"type": "track", "userId": "u"},
    "event_not_string": {"type": "track", "userId": "u", "event": {}},
    "properties_not_object": track(properties=[]),
    "traits_not_object": event(type="identify", traits="x"),
    "context_not_object": track(context=5),
    "name_not_string": event(type="page", name=5),
    "category_not_string": event(type="screen", category=[]),
    "id_required": event(type="group"),
    "type_not_defined": event(),
    "type_not_known": event(type="purchase"),
    "consent_categorypreferences_should_exist": track(context={"consent": {}}),
    "consent_categorypreferences_fields_should_be_object": track(context={"consent": {"categoryPreferences": 1}}),
    "consent_categorypreferences_fields_should_be_bool": track(context={"consent": {"categoryPreferences": {"a": 1}}}),
    "bad_request": 5,
    "event_too_large": track(properties={"x": "y" * 33_000}),
}


def rejects(folder: Path) -> list[dict[str, Any]]:
    return [reject._asdict() for reject in kept.read(Spool(folder).rejects)]


def test_refused_events_are_answered_like_segment_does_and_can_be_found(tmp_path: Path) -> None:
    batch = [*REFUSED.values(), track(messageId="good")]
    assert [sent["messageId"] for sent in sent_and_archived(tmp_path, "/v1/batch", {"batch": batch})] == ["good"]
    found = rejects(tmp_path)
    assert [reject["code"] for reject in found] == list(REFUSED)
    assert found[0]["source"] == "src1"
    assert json.loads(found[0]["sample"]) == REFUSED["no_user_anon_id"]


def test_records_of_cloud_sources_are_taken_as_extract_calls_and_of_no_others(tmp_path: Path) -> None:
    record = {"type": "extract", "event": "Contacts", "recordId": "r1", "messageId": "x1", "properties": {"n": 1}}
    odd: tuple[Any, ...] = (" ", {}, None)
    wrong = [*({**record, "recordId": one} for one in odd), {**record, "event": ""}]
    settings = '[lake]\nroot = "lake"\ndialect = "rudderstack"\n'
    with Collector(tmp_path, settings=settings) as collector:
        place = Workspace.open(tmp_path)
        assert collector.post("/v1/batch", {"batch": [record]}).status == 200
        place.connections.change("web", {"source_category": "cloud"})
        wait_until(lambda: collector.post("/v1/validate", {"batch": [record]}).json["valid"])
        found = collector.post("/v1/validate", {"batch": wrong}).json["errors"]
        assert [one["code"] for one in found] == [*["record_id_not_defined"] * 3, "event_not_defined"]
        collector.post("/v1/batch", {"batch": [record]})
        collector.stop()
    assert [(reject["code"], reject["source"]) for reject in rejects(tmp_path)] == [("type_not_known", "src1")]
    lake = Lake(tmp_path, InProcess())
    lake.sync()
    assert [(row["id"], row["event"], row["n"]) for row in lake.rows("contacts")] == [("r1", "Contacts", 1)]


def test_strict_mode_tells_what_is_wrong_with_each_event_and_stores_none(tmp_path: Path) -> None:
    with Collector(tmp_path, "--strict") as collector:
        answer = collector.post("/v1/batch", {"batch": [track(), {"type": "track"}, track(properties=1)]})
        assert answer.status == 400
        assert [(error["index"], error["code"]) for error in answer.json["errors"]] == [
            (1, "no_user_anon_id"),
            (1, "event_not_defined"),
            (2, "properties_not_object"),
        ]
        assert collector.post("/v1/batch", {"batch": [track(messageId="good")]}).status == 200
        collector.stop()
        assert [sent["messageId"] for sent in collector.archived()] == ["good"]


def test_validate_tells_the_same_and_stores_nothing(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        assert collector.post("/v1/validate", track()).json == {"valid": True, "errors": []}
        answer = collector.post("/v1/validate", {"batch": [track(), {"type": "track", "userId": "u"}]})
        assert answer.json["errors"] == [
            {"index": 1, "code": "event_not_defined", "message": "event is required for track"}
        ]
        assert collector.post("/v1/validate", track(), key="nobody").status == 401
        collector.stop()
        assert collector.archived() == []


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/track", b"{", 400, "bad_request"),
        ("/v1/track", b"[]", 400, "bad_request"),
        ("/v1/batch", b'{"batch":5}', 400, "bad_request"),
        ("/v1/batch", b"[" * 100_000, 400, "bad_request"),
        ("/v1/track", b'{"a":' * 5000 + b"1" + b"}" * 5000, 400, "bad_request"),
        ("/v1/track", b'{"userId":"' + b"x" * 33_000 + b'"}', 400, "payload_too_large"),
        ("/v1/batch", b" " * 600_000, 400, "payload_too_large"),
        ("/v1/nothing", b"{}", 404, "not_found"),
    ],
)
def test_requests_that_cannot_be_read(tmp_path: Path, path: str, body: bytes, status: int, code: str) -> None:
    with Collector(tmp_path) as collector:
        answer = collector.post(path, body)
        assert (answer.status, answer.json["code"]) == (status, code)
        assert collector.post("/v1/track", track()).status == 200


def test_too_many_events_and_none_at_all(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        assert collector.post("/v1/batch", {"batch": [{}] * 2501}).status == 200
        assert collector.post("/v1/batch", {"batch": []}).status == 200
        collector.stop()
        assert collector.archived() == []
    codes = [reject["code"] for reject in rejects(tmp_path)]
    assert codes == ["too_many_events", "empty_batch"]


def test_one_odd_event_does_not_cost_the_others_of_its_batch(tmp_path: Path) -> None:
    odd = [b'{"userId":"u","type":"track","event":"hi \\ud83d","messageId":"m1"}', b'{"userId":NaN}']
    odd.append(
        b'{"userId":"u","type":"track","event":"x","messageId":"m5","properties":{"a":NaN,"b":1.10,"c":"\\ud83d"}}'
    )
    good = json.dumps(track(messageId="m2")).encode()
    with Collector(tmp_path) as collector:
        assert collector.post("/v1/batch", b'{"batch":[' + b",".join([*odd, good]) + b"]}").status == 200
        twice = b'{"batch":[' + good.replace(b"m2", b"m3") + b'],"batch":[' + good.replace(b"m2", b"m4") + b"]}"
        assert collector.post("/v1/batch", b"\xef\xbb\xbf" + twice).status == 200
        collector.stop()
        found = [sent["messageId"] for sent in collector.archived()]
        [line] = [line for line in collector.lines() if b'"m5"' in line]
    assert sorted(found) == ["m2", "m3", "m4", "m5"]  # an event name of half a character is no text
    assert b'"b":1.10,"c":"\\ud83d"' in line
    assert len(rejects(tmp_path)) == 2


def test_what_a_batch_says_of_all_is_bounded(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        large = {"batch": [track()] * 1000, "context": {"x": "y" * 20_000}}
        deep = b'{"batch":[],"context":' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}"
        for body in (json.dumps(large).encode(), json.dumps({**large, "context": {"x": "y" * 40_000}}).encode(), deep):
            assert collector.post("/v1/batch", gzip.compress(body), Content_Encoding="gzip").status == 400
        endless = b"[" * 101 + b'"' + b'\\"' * 200_000
        assert collector.post("/v1/batch", endless).status == 400
        many = b'{"batch":[' + b"0," * 240_000 + b"0]}"
        started = time.monotonic()
        assert collector.post("/v1/batch", many).status == 200
        assert time.monotonic() - started < 10
        repeated = b'{"a":1,"a":' * 400 + b"1" + b"}" * 400
        assert collector.post("/v1/batch", b'{"batch":[' + b",".join([repeated] * 90) + b"]}").status == 200
        collector.stop()
        assert collector.archived() == []
    assert sum(path.stat().st_size for path in (tmp_path / "collector" / "rejects").iterdir()) < 100_000


def test_keys_are_not_kept_with_what_is_refused(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        collector.post("/v1/batch", {"batch": [[{"writeKey": collector.key}], {"a": {"writeKey": collector.key}}]})
        collector.stop()
        assert collector.key not in (str(rejects(tmp_path)))
        assert len(rejects(tmp_path)) == 2


def test_a_small_body_that_unpacks_to_a_large_one_is_refused(tmp_path: Path) -> None:
    bomb = gzip.compress(b" " * 50_000_000)
    with Collector(tmp_path) as collector:
        answer = collector.post("/v1/batch", bomb, Content_Encoding="gzip")
        assert (answer.status, answer.json["code"]) == (400, "payload_too_large")
        for broken in (b"no gzip", bomb[:-20]):
            assert collector.post("/v1/batch", broken, Content_Encoding="gzip").status == 400


def hung_up_on(collector: Collector, content: bytes) -> bool:
    """Whether the collector ends a connection on which this is sent, with no end."""
    with socket.create_connection(("127.0.0.1", collector.port), timeout=30) as client:
        try:
            client.sendall(content)
            return client.recv(1000) == b""
        except ConnectionError:
            return True


def hung_up_on_without_reading(collector: Collector, request: bytes) -> bool:
    """Whether the collector ends a connection on which this is sent again and again, and no answer is read."""
    with socket.create_connection(("127.0.0.1", collector.port), timeout=60) as client:
        try:
            for _ in range(1000):
                client.sendall(request * 2000)
        except ConnectionError:
            return True
    return False


def test_slow_and_endless_clients_are_hung_up_on(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector, ThreadPoolExecutor() as pool:
        deaf = pool.submit(hung_up_on_without_reading, collector, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert hung_up_on(collector, b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 1_000_000)
        assert hung_up_on(collector, b"POST /v1/track HTTP/1.1\r\nHost: x\r\n")  # after some seconds
        assert deaf.result()
        assert collector.post("/v1/track", track()).status == 200
        assert "Traceback" not in collector.stop()


def test_rate_limits_say_when_to_come_again(tmp_path: Path) -> None:
    with Collector(tmp_path, "--requests-per-second", "5") as collector:
        answers = [collector.post("/v1/track", event(event="x", messageId=f"m{n}")) for n in range(30)]
        limited = [answer for answer in answers if answer.status == 429]
        assert limited
        assert int(limited[0].headers["retry-after"]) >= 1
        assert limited[0].headers["x-ratelimit-reset"] == limited[0].headers["retry-after"]
        collector.stop()
        assert len(collector.archived()) == len(answers) - len(limited)


# Write keys


def test_keys_decide_about_the_source(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        place = Workspace.open(tmp_path)
        other = place.connections.add_source("app", source_id="src2")[1]
        second = place.sources.add_key("web")
        time.sleep(2.1)  # after which a collector knows new keys
        assert collector.post("/v1/track", event(event="x", messageId="m1")).status == 200
        assert collector.post("/v1/track", event(event="x", messageId="m2"), key=other).status == 200
        assert collector.post("/v1/track", event(event="x", messageId="m3"), key=second).status == 200
        in_body = event(event="x", messageId="m4", writeKey=other)
        assert collector.request("POST", "/v1/track", json.dumps(in_body).encode(), {}).status == 200
        for key in ("nobody", "é", ""):
            assert collector.post("/v1/track", track(), key=key or "-").status == 401
        place.sources.revoke_key("web", second)
        place.sources.enable("app", False)
        time.sleep(2.1)
        assert collector.post("/v1/track", track(), key=second).status == 401
        assert collector.post("/v1/track", track("Off"), key=other).status == 200
        assert collector.post("/v1/batch", {"batch": [track(f"Off {n}") for n in range(3)]}, key=other).status == 200
        said = collector.stop()
        found = {sent["messageId"]: sent["projectId"] for sent in collector.archived()}
        assert found == {"m1": "src1", "m2": "src2", "m3": "src1", "m4": "src2"}
        codes = [reject["code"] for reject in rejects(tmp_path)]
        assert codes.count("invalid_write_key") == 4
        off = [reject for reject in rejects(tmp_path) if reject["code"] == "source_disabled"]
        # Two workers may refuse in one millisecond.
        assert sorted(json.loads(reject["sample"])["event"] for reject in off) == ["Off", "Off 0", "Off 1", "Off 2"]
        everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        for key in (collector.key, other, second):
            assert key.encode() not in everything
            assert key not in said


# Copies


def test_a_message_that_comes_again_is_stored_once_also_after_a_restart(tmp_path: Path) -> None:
    with Collector(tmp_path, "--workers", "2") as collector:
        for _ in range(10):
            assert collector.post("/v1/track", track(messageId="m1")).status == 200
        collector.stop()
        collector.start()
        assert collector.post("/v1/track", track("Other", messageId="m1")).status == 200
        assert collector.post("/v1/track", track(messageId="m2")).status == 200
        collector.stop()
        assert sorted(sent["messageId"] for sent in collector.archived()) == ["m1", "m2"]


# Nothing that was acknowledged is lost


class Sender(threading.Thread):
    """Sends batches as fast as it can and notes which of them were acknowledged."""

    def __init__(self, collector: Collector, name: str) -> None:
        super().__init__()
        self.collector = collector
        self.prefix = name
        self.acknowledged: list[str] = []
        self.statuses: set[int] = set()
        self.stopped = False

    def run(self) -> None:
        number = 0
        while not self.stopped:
            ids = [f"{self.prefix}-{number + place}" for place in range(5)]
            number += len(ids)
            try:
                answer = self.collector.post("/v1/batch", {"batch": [track(messageId=id_) for id_ in ids]})
            except (OSError, http.client.HTTPException):
                continue
            self.statuses.add(answer.status)
            if answer.status == 200:
                self.acknowledged += ids


@pytest.mark.parametrize("seconds", [0.3, 0.7, 1.1])
def test_killed_under_load_every_acknowledged_event_is_in_the_archive_exactly_once(
    tmp_path: Path, seconds: float
) -> None:
    with Collector(tmp_path, "--workers", "2") as collector:
        acknowledged: list[str] = []
        for attempt in range(3):
            senders = [Sender(collector, f"{attempt}-{name}") for name in "ab"]
            for sender in senders:
                sender.start()
            time.sleep(seconds)
            collector.kill()
            for sender in senders:
                sender.stopped = True
                sender.join()
                acknowledged += sender.acknowledged
            collector.start()
        collector.stop()
        found = [sent["messageId"] for sent in collector.archived()]
    assert len(acknowledged) > 50
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found)


def test_a_full_disk_is_answered_with_503_and_loses_nothing(tmp_path: Path) -> None:
    def few_bytes() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))  # as if the disk had room for no larger file

    with Collector(tmp_path, "--roll-seconds", "3600", prepare=few_bytes) as collector:
        acknowledged, statuses, health = [], [], []
        for number in range(20):
            ids = [f"m{number}-{place}" for place in range(3)]  # one or two of them would have room
            answer = collector.post("/v1/batch", {"batch": [track("x" * 20_000, messageId=id_) for id_ in ids]})
            statuses.append(answer.status)
            if answer.status == 200:
                acknowledged += ids
            else:
                assert answer.headers["retry-after"]
                health.append(collector.get("/health").status)
        assert set(statuses) == {200, 503}
        assert 503 in health  # until the disk takes something again, which it does a second later
        collector.stop()
        assert [sent["messageId"] for sent in collector.archived()] == acknowledged


def test_the_archive_may_be_a_bucket_and_may_be_away_for_a_while(tmp_path: Path, s3: S3Server, bucket: str) -> None:
    bucket_there = f's3 = {{ endpoint = "{s3.endpoint}", path_style = true }}\nlake = {{ root = "s3://{bucket}/x" }}\n'
    bucket_away = bucket_there.replace(s3.endpoint, "http://127.0.0.1:9")
    with Collector(tmp_path, settings=bucket_away) as collector:
        assert collector.post("/v1/track", track(messageId="m1")).status == 200
        said = collector.stop()
        assert " still to be written to the archive" in said
        config = tmp_path / CONFIG
        config.write_text(config.read_text().replace("http://127.0.0.1:9", s3.endpoint))
        collector.start()
        assert collector.post("/v1/track", track(messageId="m2")).status == 200
        assert "Everything that was acknowledged is in the archive" in collector.stop()
    storage = Workspace.open(tmp_path).lake().storage
    lines = [gzip.decompress(storage.read(file.path)) for file in storage.files("segment-logs")]
    assert sorted(json.loads(line)["messageId"] for line in lines) == ["m1", "m2"]


def test_after_the_disk_was_away_it_goes_on(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        logs = tmp_path / "collector" / "logs"
        assert collector.post("/v1/track", track(messageId="m1")).status == 200
        logs.rename(tmp_path / "away")
        wait_until(lambda: collector.post("/v1/track", track(messageId="lost")).status == 503)
        assert collector.get("/health").status == 503
        (tmp_path / "away").rename(logs)
        wait_until(lambda: collector.get("/health").status == 200)
        assert collector.post("/v1/track", track(messageId="m2")).status == 200
        collector.stop()
        assert {sent["messageId"] for sent in collector.archived()} >= {"m1", "m2"}


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_worker_that_dies_just_before_the_end_leaves_nothing_behind(tmp_path: Path) -> None:
    with Collector(tmp_path, "--roll-seconds", "3600") as collector:
        assert collector.post("/v1/track", track(messageId="m1")).status == 200
        collector.process.send_signal(signal.SIGSTOP)  # so that it cannot start another
        [worker] = collector.workers()
        os.kill(worker, signal.SIGKILL)
        collector.process.send_signal(signal.SIGTERM)
        collector.process.send_signal(signal.SIGCONT)
        _, said = collector.process.communicate(timeout=60)
        assert "Everything that was acknowledged is in the archive" in said
        assert [sent["messageId"] for sent in collector.archived()] == ["m1"]


def test_a_damaged_log_gives_what_is_whole_and_is_kept(tmp_path: Path) -> None:
    with Collector(tmp_path, "--roll-seconds", "3600") as collector:
        for number in range(3):
            collector.post("/v1/track", event(event="x", messageId=f"m{number}"))
        collector.kill()
        [log] = (tmp_path / "collector" / "logs").glob("*.log")
        content = log.read_bytes()
        log.write_bytes(content.replace(b'"m1"', b'"m?"') + content[:50])
        collector.start()
        said = collector.stop()
        assert [sent["messageId"] for sent in collector.archived()] == ["m0", "m2"]
        assert "damaged" in said
        assert len(list((tmp_path / "collector" / "logs").glob("*.damaged"))) == 1


def test_one_collector_per_workspace(tmp_path: Path) -> None:
    with Collector(tmp_path) as collector:
        second = subprocess.run(
            [str(PROGRAM), "-C", str(tmp_path), "collect", "--port", "0"], capture_output=True, text=True, check=False
        )
        assert second.returncode == 4
        assert "another collector is running in this workspace" in second.stderr
        assert collector.post("/v1/track", track()).status == 200
