"""HTTP and bodies as no SDK sends them: nothing is lost without a word, nothing is believed that cannot be known."""

import base64
import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors import Answer, Collector
from eventlake.collector import rejects as kept
from eventlake.collector.addresses import Addresses, checked_url
from eventlake.collector.bring import bring
from eventlake.collector.options import Spool
from eventlake.errors import InvalidSettingsError
from eventlake.workspace import Workspace


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """A collector that says nothing about any of these requests."""
    with Collector(tmp_path_factory.mktemp("http"), "--roll-seconds", "3600") as made:
        yield made
        said = made.stop()
        assert "Traceback" not in said
        assert "ERROR" not in said


def archived(collector: Collector, prefix: str) -> list[str]:
    """The message ids in the archive that begin so."""
    assert bring(Workspace.open(collector.folder)).held == {}
    return sorted(sent["messageId"] for sent in collector.archived() if sent["messageId"].startswith(prefix))


def event(message_id: str) -> bytes:
    return json.dumps({"type": "track", "userId": "u", "event": "x", "messageId": message_id}).encode()


# Many requests at once


def post(collector: Collector, message_id: str) -> bytes:
    token = base64.b64encode(f"{collector.key}:".encode()).decode()
    body = event(message_id)
    head = f"POST /v1/track HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@pytest.mark.parametrize("number", [2, 16, 17, 18, 40, 1000])
def test_requests_that_come_before_the_answers_to_others_are_all_answered(collector: Collector, number: int) -> None:
    names = [f"pipelined-{number}-{place:04}" for place in range(number)]
    with socket.create_connection(("127.0.0.1", collector.port), timeout=60) as client:
        client.sendall(b"".join(post(collector, name) for name in names))
        answers = b""
        while answers.count(b'{"success":true}') < number:
            more = client.recv(1 << 20)
            assert more, f"hung up after {answers.count(b'HTTP/1.1 200')} answers"
            answers += more
    assert answers.count(b"HTTP/1.1 200") == number
    assert archived(collector, f"pipelined-{number}-") == names


def test_a_client_that_sends_much_and_goes_away_leaves_no_trace_in_the_log(collector: Collector) -> None:
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", collector.port), timeout=60) as client:
            client.sendall(b"".join(post(collector, f"gone-{place}") for place in range(40)))
    assert collector.get("/health").status == 200


# Batches that say something twice


def batch(*members: tuple[str, bytes]) -> bytes:
    return b"{" + b",".join(b'"%s":%s' % (key.encode(), text) for key, text in members) + b"}"


def test_events_of_members_that_come_twice_are_all_stored_however_their_keys_are_written(collector: Collector) -> None:
    # Without as many bytes as the second array has, this one is a batch of its last event.
    last = "twice-6-c" + "c" * len(b'],"b\\u0061tch":[')
    spellings: list[list[tuple[str, bytes]]] = [
        [("batch", b"[%s]" % event("twice-1-a")), ("b\\u0061tch", b"[%s]" % event("twice-1-b"))],
        [("b\\u0061tch", b"[%s]" % event("twice-2-a")), ("batch", b"[%s]" % event("twice-2-b"))],
        [("\\u0062atch", b"[%s]" % event("twice-3-a")), ("batc\\u0068", b"[%s]" % event("twice-3-b"))],
        [("batch", b"[%s]" % event("twice-4-a")), ("x", b'{"batch":[]}'), ("batch", b"[%s]" % event("twice-4-b"))],
        [("batch", b"[ %s ]" % event("twice-5-a")), ("b\\u0061tch", b"[\n%s\n]" % event("twice-5-b"))],
        [("batch", b"[%s]" % event("twice-6-a")), ("b\\u0061tch", b"[%s,%s]" % (event("twice-6-b"), event(last)))],
    ]
    for members in spellings:
        assert collector.post("/v1/batch", batch(*members)).status == 200
    expected = [f"twice-{number}-{part}" for number in range(1, 7) for part in "ab"]
    assert archived(collector, "twice-") == [*expected, last]


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ([("context", b'{"a":1}'), ("context", b'{"b":1}')], "`context` comes twice"),
        ([("context", b'{"a":1}'), ("c\\u006fntext", b'{"b":1}')], "`context` comes twice"),
        ([("sentAt", b'"2026"'), ("sentAt", b'"2027"')], "`sentAt` comes twice"),
        ([("integrations", b'{"a":true,"a":false}')], "`integrations` cannot be kept as it is: the same key came"),
        ([("context", b'{"a":NaN}')], "`context` cannot be kept as it is: NaN is not a JSON number"),
        ([("batch", b"{}")], "`batch` is not an array"),
    ],
)
def test_what_counts_for_all_events_and_cannot_be_kept_is_refused_and_noted(
    collector: Collector, members: list[tuple[str, bytes]], reason: str
) -> None:
    body = batch(("batch", b"[%s]" % event("refused")), *members)
    answer = collector.post("/v1/batch", body)
    assert (answer.status, answer.json["code"]) == (400, "bad_request")
    assert reason in answer.json["message"]
    assert reason in kept.read(Spool(collector.folder).rejects)[-1].message
    assert archived(collector, "refused") == []


def test_a_batch_as_sdks_write_it_is_stored_with_what_it_says_of_all(collector: Collector) -> None:
    for number, spaces in enumerate([(",", ":"), (", ", ": ")]):
        sent: dict[str, Any] = {
            "sentAt": "2026-01-01T00:00:00.000Z",
            "batch": [json.loads(event(f"plain-{number}-{place}")) for place in range(3)],
            "context": {"library": {"name": "x"}},
        }
        assert collector.post("/v1/batch", json.dumps(sent, separators=spaces).encode()).status == 200
    assert len(archived(collector, "plain-")) == 6
    assert {
        (sent["context"]["library"]["name"], sent["sentAt"])
        for sent in collector.archived()
        if sent["messageId"].startswith("plain-")
    } == {("x", "2026-01-01T00:00:00.000Z")}


# Gzip


def zipped(collector: Collector, body: bytes) -> Answer:
    return collector.post("/v1/batch", body, Content_Encoding="gzip")


def test_all_members_of_a_gzip_body_are_read(collector: Collector) -> None:
    text = b'{"batch":[' + event("gzip-1") + b"," + event("gzip-2") + b"]}"
    assert zipped(collector, gzip.compress(text[:40]) + gzip.compress(b"") + gzip.compress(text[40:])).status == 200
    assert archived(collector, "gzip-") == ["gzip-1", "gzip-2"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (gzip.compress(b'{"batch":[]}') + b"and more", "bad_request"),
        (gzip.compress(b'{"batch":[]}') + gzip.compress(b" " * 99)[:-9], "bad_request"),
        (gzip.compress(b'{"batch":[') + gzip.compress(b" " * 400_000) * 2, "payload_too_large"),
        (gzip.compress(b"") * 20_000, "bad_request"),
    ],
    ids=["no member", "half a member", "too large together", "too many members"],
)
def test_what_follows_in_a_gzip_body_and_cannot_be_read_is_refused(
    collector: Collector, body: bytes, code: str
) -> None:
    answer = zipped(collector, body)
    assert (answer.status, answer.json["code"]) == (400, code)


# Addresses


def settings_document(collector: Collector, host: str) -> Answer:
    return collector.get(f"/v1/projects/{collector.key}/settings", Host=host)


def test_settings_name_the_address_at_which_a_request_arrived_and_no_other(collector: Collector) -> None:
    for host in (f"127.0.0.1:{collector.port}", f"localhost:{collector.port}"):
        assert settings_document(collector, host).json["integrations"]["Segment.io"]["apiHost"] == f"{host}/v1"
    for host in ("evil.example", f"evil.example:{collector.port}", f"127.0.0.1:{collector.port + 1}", "127.0.0.1", ""):
        answer = settings_document(collector, host)
        assert (answer.status, answer.json["code"]) == (421, "misdirected_request")
        assert b"evil" not in answer.body


def test_behind_a_proxy_addresses_are_what_it_saw_and_what_is_set(tmp_path: Path) -> None:
    options = ("--workers", "1", "--trusted-proxies", "1", "--public-url", "https://collect.example/in/")
    with Collector(tmp_path, *options) as collector:
        for message_id, forwarded in {"one": "9.9.9.9", "spoofed": "6.6.6.6, 9.9.9.9", "junk": "junk"}.items():
            headers = {"Origin": "https://a.b", "X_Forwarded_For": forwarded}
            assert collector.post("/v1/t", event(message_id), **headers).status == 200
        assert (
            settings_document(collector, "evil.example").json["integrations"]["Segment.io"]
            | {
                "apiHost": "collect.example/in/v1",
                "protocol": "https",
            }
            == settings_document(collector, "x").json["integrations"]["Segment.io"]
        )
        collector.stop()
        found = {sent["messageId"]: sent.get("context", {}).get("ip") for sent in collector.archived()}
    assert found == {"one": "9.9.9.9", "spoofed": "9.9.9.9", "junk": None}


@pytest.mark.parametrize(
    ("proxies", "forwarded", "expected"),
    [
        (0, ["1.1.1.1"], "7.7.7.7"),
        (1, [], "7.7.7.7"),
        (1, ["1.1.1.1"], "1.1.1.1"),
        (1, ["1.1.1.1, 2.2.2.2"], "2.2.2.2"),
        (1, ["1.1.1.1", "2.2.2.2"], "2.2.2.2"),
        (2, ["1.1.1.1,2.2.2.2", "3.3.3.3"], "2.2.2.2"),
        (2, ["2.2.2.2"], "2.2.2.2"),  # came to the nearest proxy without passing the other
        (3, ["1.1.1.1, 2.2.2.2 , 3.3.3.3"], "1.1.1.1"),
        (1, ["1.1.1.1, 2.2.2.2:4711"], "2.2.2.2"),
        (1, ["[2001:db8::1]:4711"], "2001:db8::1"),
        (1, ["2001:db8::1"], "2001:db8::1"),
        (1, ["1.1.1.1, unknown"], None),
        (1, [""], None),
    ],
)
def test_the_address_of_a_client_is_the_one_that_the_first_trusted_proxy_saw(
    proxies: int, forwarded: list[str], expected: str | None
) -> None:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"client": ("7.7.7.7", 1), "headers": headers}
    assert Addresses(trusted_proxies=proxies).client(scope) == expected


def test_a_collector_on_the_port_of_http_may_be_named_without_it() -> None:
    addresses = Addresses()
    for server, host, is_known in [
        (("10.0.0.5", 80), "10.0.0.5", True),
        (("10.0.0.5", 80), "10.0.0.5:80", True),
        (("10.0.0.5", 80), "localhost", False),
        (("::1", 8020), "[::1]:8020", True),
        (("::1", 8020), "LOCALHOST:8020", True),
        (None, "localhost", False),
    ]:
        assert (addresses.public({"server": server}, host) is not None) is is_known


@pytest.mark.parametrize("url", ["collect.example", "ftp://a.b", "https://", "https://a b", "https://u:p@a.b", "//a.b"])
def test_a_public_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidSettingsError):
        checked_url(url)
