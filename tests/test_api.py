"""The HTTP API: what programs can ask and do, and that nothing they send breaks it."""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import schemathesis
from schemathesis import GenerationMode
from starlette.testclient import TestClient

from conftest import InProcess
from consoles import Browser, Program, full_place
from eventlake.control.people import Scope
from eventlake.library import Workspace
from eventlake.schedule.scheduler import Scheduler
from eventlake.web.app import create_app
from runner_without_spark import Slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return full_place(tmp_path_factory.mktemp("api") / "place")


@pytest.fixture(scope="module")
def program(place: Workspace) -> Program:
    return Program(place)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Program]:
    place = full_place(tmp_path / "place")
    yield Program(place)
    place.close()


def carry_out(place: Workspace) -> None:
    scheduler = Scheduler(place)
    scheduler.tick()
    scheduler._threads.shutdown(wait=True)


def test_health_tells_what_somebody_should_look_at(program: Program) -> None:
    health = program.get("health")
    assert health["status"] == "needs attention"
    assert health["matters"][0].startswith("ios failed 3 times in a row: the storage is away")


def test_connections_tell_their_last_and_next_sync(program: Program) -> None:
    web = next(one for one in program.get("connections") if one["source"] == "web")
    assert (web["state"], web["failures"], web["lake"]) == ("well", 0, "default")
    assert web["last_sync"]["loaded"] == 4
    assert web["next_sync_at"] == "2026-11-17T14:00:00Z"
    ios = program.get("connections/ios/default")
    assert (ios["state"], ios["failures"]) == ("failed", 3)
    assert ios["last_sync"]["notices"] == ["the storage is away"]
    assert ios["next_sync_at"] < "2026-11-17T12:10:00Z"  # it is tried again before the next slot


def test_the_funnel_adds_up(program: Program) -> None:
    books = program.get("funnel")
    ways = ("loaded", "duplicates", "suppressed", "blocked", "quarantined")
    assert books["lines"] == sum(books[way] for way in ways) == 207
    assert program.get("funnel", source="ios")["lines"] == 0
    days = program.get("rows-by-day", days=3)
    assert [one["rows"] for one in days] == [0, 0, 204]


def test_runs_reports_and_tables(program: Program) -> None:
    runs = program.get("runs", source="web")
    assert [run["loaded"] for run in runs] == [4, 200]
    assert [run["loaded"] for run in program.get("runs", source="web", before=runs[0]["run_id"])] == [200]
    failed = program.get("runs", status="failed", limit=2)[0]
    assert (failed["error_code"], failed["fix"]) == ("service_unavailable", "wait until it is back")
    report = program.get(f"runs/{runs[0]['run_id']}/report")
    assert report[0]["type"] == "source"
    tables = program.get("tables", text="order")
    assert tables["total"] == 1
    assert tables["tables"][0]["rows"] == 203
    table = program.get("tables/default/web.track_order_completed")
    assert {"name": "properties_total", "type": "bigint", "pointer": "/properties/total"}.items() <= next(
        one for one in table["columns"] if one["name"] == "properties_total"
    ).items()
    assert program.get("tables/default/web.track_order_completed/history")[0]["change"] == "added"
    rescued = program.get("tables/default/web.track_order_completed/rescued")
    assert {(one["column"], one["reason"]) for one in rescued} == {
        ("properties_total", "not a bigint"),
        ("properties_total", "cut to a whole number"),
    }
    assert {line["reason"] for line in program.get("quarantine")} == {"not_json", "type_not_known"}


def test_sql(program: Program) -> None:
    wanted = {"sql": "select 9007199254740993 as big, 1.5::decimal(38,6) as d, now() is not null as b", "limit": 1}
    found = program.post("query", wanted, 200)
    assert found == {
        "columns": ["big", "d", "b"],
        "types": ["int64", "decimal128(38, 6)", "bool"],
        "rows": [["9007199254740993", "1.500000", True]],  # a number that JSON readers would change is text
        "is_cut": False,
    }
    refused = program.post("query", {"sql": "attach '/etc/passwd'"}, 422)
    assert "a query only reads the tables of the lake" in refused["problem"]


def test_a_source_and_its_keys(fresh: Program) -> None:
    made = fresh.post("sources", {"slug": "shop", "name": "Shop"})
    assert len(made["write_key"]) == 32
    assert fresh.get("sources/shop") == {"id": made["id"], "slug": "shop", "name": "Shop", "enabled": True}
    problem = fresh.post("sources", {"slug": "shop"}, 422)
    assert "there is already a source" in problem["problem"]
    assert set(fresh.post("sources", {"slug": "No!"}, 422)["fields"]) == {"slug"}
    another = fresh.post("sources/shop/keys")["write_key"]
    hashes = [key["hash"] for key in fresh.get("sources/shop/keys")]
    assert len(hashes) == 2
    assert another not in json.dumps(fresh.get("sources/shop/keys"))
    fresh.delete(f"sources/shop/keys/{hashes[0]}")
    assert len(fresh.get("sources/shop/keys")) == 1
    assert not fresh.patch("sources/shop", {"enabled": False})["enabled"]
    audit = [(entry["who"], entry["action"], entry["target"]) for entry in fresh.get("audit")]
    assert audit == [
        ("token test", "disable source", "shop"),
        ("token test", "revoke write key", "shop"),
        ("token test", "add write key", "shop"),
        ("token test", "add source", "shop"),
    ]


def test_settings_are_checked_field_by_field(fresh: Program) -> None:
    wrong = {"settings": {"schedule": "often", "lookback_days": 0, "time_zone": "Mars/Phobos"}}
    problem = fresh.patch("connections/web/default", wrong, 422)
    assert set(problem["fields"]) == {"schedule", "lookback_days", "time_zone"}
    good = {"settings": {"schedule": "every 30m", "lookback_days": None, "rescue_rounded": False}}
    settings = fresh.patch("connections/web/default", good)["settings"]
    assert (settings["schedule"], settings["lookback_days"], settings["rescue_rounded"]) == ("every 30m", None, False)
    assert not fresh.patch("connections/web/default", {"enabled": False})["enabled"]
    assert fresh.patch("connections/ios/default", {"like": "web/default"})["settings"]["schedule"] == "every 30m"
    breaking = fresh.patch("connections/web/default", {"settings": {"database": "other"}}, 422)
    assert "would break its existing tables" in breaking["problem"]
    fresh.delete("connections/ios/default")
    fresh.get("connections/ios/default", 404)
    assert fresh.post("connections", {"source": "ios", "lake": "default"})["state"] == "failed"  # as it was left


def test_a_sync_is_ordered_followed_and_reported(fresh: Program) -> None:
    fresh.place._given = InProcess()
    order = fresh.post("connections/ios/default/syncs", status=202)
    assert (order["status"], order["asked_by"]) == ("waiting", "token test")
    carry_out(fresh.place)
    done = fresh.get(f"orders/{order['id']}")
    assert done["status"] == "done"
    assert fresh.get(f"runs/{done['run_id']}")["loaded"] == 1
    stopped = fresh.post("connections/ios/default/syncs", status=202)
    assert fresh.post(f"orders/{stopped['id']}/stop", status=202)["status"] == "cancelled"
    size = fresh.get("connections/web/default/replay-size", start="2026-11-17T00:00:00Z")
    assert (size["raw_files"], size["lines"]) == (2, 206)
    replay = {"start": "2026-11-17T00:00:00Z", "events": ["Order Completed"]}
    order = fresh.post("connections/web/default/replays", replay, 202)
    carry_out(fresh.place)
    assert fresh.get(f"orders/{order['id']}")["status"] == "done"
    assert fresh.post("connections/web/default/replays", {"start": "soon"}, 422)["problem"] == "'soon' is not a time"


def test_a_connection_is_tested_step_by_step(fresh: Program) -> None:
    fresh.get("connections/web/default/checks", 404)
    begun = fresh.post("connections/web/default/checks", status=202)
    assert begun["status"] == "running"
    assert {"storage: upload", "spark"} <= {step["step"] for step in begun["steps"]} | set(begun["waiting"])
    deadline = time.monotonic() + 100
    while (found := fresh.get("connections/web/default/checks"))["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert found["status"] == "passed"
    assert found["waiting"] == []
    assert {step["status"] for step in found["steps"]} <= {"passed", "skipped"}


def test_a_run_is_followed_live_and_stopped(fresh: Program) -> None:
    place = fresh.place
    runner = Slow()
    place._given = runner
    fresh.post("connections/ios/default/syncs", status=202)
    scheduler = Scheduler(place)
    scheduler.tick()
    assert runner.begun.wait(30)
    run_id = place.runs.lines(1)[0].run_id
    told: list[dict[str, Any]] = []

    def follow() -> None:
        with fresh.client.stream("GET", f"runs/{run_id}/progress") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            told.extend(json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: "))

    follower = threading.Thread(target=follow)
    follower.start()
    fresh.post(f"runs/{run_id}/stop", status=202)
    follower.join(60)
    scheduler._threads.shutdown(wait=True)
    assert not follower.is_alive()
    assert told[0]["status"] == "running"
    assert told[-1]["status"] == "failed"
    assert told[-1]["error_code"] == "cancelled"
    assert fresh.post(f"runs/{run_id}/stop", status=422)["problem"] == f"run {run_id} has ended"


def test_alerts_channels_and_subscriptions(fresh: Program) -> None:
    assert fresh.get("channels") == [{"name": "ops", "kind": "webhook"}]
    made = fresh.post("subscriptions", {"kind": "rescued", "channel": "ops", "source": "web", "threshold": 2.5})
    assert fresh.get("subscriptions") == [made]
    assert (
        "no threshold for sync_failed"
        in (fresh.post("subscriptions", {"kind": "sync_failed", "channel": "ops", "threshold": 3}, 422)["problem"])
    )
    fresh.delete(f"subscriptions/{made['id']}")
    fresh.delete(f"subscriptions/{made['id']}", 404)
    assert fresh.get("alerts") == []


def test_tokens_users_and_what_is_shown_once(fresh: Program) -> None:
    made = fresh.post("tokens", {"name": "dagster", "scope": "read"})
    assert made["token"].startswith("el_")
    listed = fresh.get("tokens")
    assert made["token"] not in json.dumps(listed)
    fresh.delete(f"tokens/{made['id']}")
    link = fresh.post("users/invitations", {"role": "read"})["link"]
    Browser(fresh.place).client.post(link.partition(":8021")[2], data={"name": "ben", "password": "a long password"})
    assert fresh.get("users")[0]["name"] == "ben"
    assert fresh.patch("users/ben", {"role": "admin"})["role"] == "admin"
    assert fresh.patch("users/nobody", {"role": "admin"}, 404)["code"] == "not_found"
    assert "the only administrator" in fresh.patch("users/ben", {"role": "read"}, 422)["problem"]


WRITES = [
    ("post", "sources", {"slug": "x"}, Scope.ADMIN),
    ("patch", "sources/web", {"enabled": False}, Scope.ADMIN),
    ("post", "sources/web/keys", None, Scope.ADMIN),
    ("delete", "sources/web/keys/abc", None, Scope.ADMIN),
    ("post", "connections", {"source": "web", "lake": "x"}, Scope.ADMIN),
    ("patch", "connections/web/default", {"enabled": False}, Scope.ADMIN),
    ("delete", "connections/web/default", None, Scope.ADMIN),
    ("post", "connections/web/default/syncs", None, Scope.OPERATE),
    ("post", "connections/web/default/replays", {}, Scope.OPERATE),
    ("post", "connections/web/default/checks", None, Scope.OPERATE),
    ("post", "runs/1/stop", None, Scope.OPERATE),
    ("post", "orders/1/stop", None, Scope.OPERATE),
    ("post", "tables/default/web.page/retypes", {"column": "a", "type": "string"}, Scope.OPERATE),
    ("post", "connections/web/default/releases", None, Scope.OPERATE),
    ("patch", "sources/web/settings", {}, Scope.ADMIN),
    ("post", "tracking-plans", {"name": "x"}, Scope.ADMIN),
    ("patch", "tracking-plans/x", {}, Scope.ADMIN),
    ("delete", "tracking-plans/x", None, Scope.ADMIN),
    ("put", "tracking-plans/x/rules", {"rules": []}, Scope.ADMIN),
    ("patch", "tracking-plans/x/rules", {"rules": [{"type": "PAGE", "jsonSchema": {}}]}, Scope.ADMIN),
    ("delete", "tracking-plans/x/rules", {"rules": [{"type": "PAGE"}]}, Scope.ADMIN),
    ("post", "tracking-plans/x/sources", {"sourceId": "web"}, Scope.ADMIN),
    ("delete", "tracking-plans/x/sources?sourceId=web", None, Scope.ADMIN),
    ("post", "transformations", {"sourceId": "web", "name": "x", "if": "true"}, Scope.ADMIN),
    ("patch", "transformations/x", {}, Scope.ADMIN),
    ("delete", "transformations/x", None, Scope.ADMIN),
    ("post", "regulations", {"regulationType": "SUPPRESS_ONLY", "subjectIds": ["u1"]}, Scope.ADMIN),
    ("get", "suppressions", None, Scope.ADMIN),
    ("post", "channels/ops/test", None, Scope.ADMIN),
    ("post", "subscriptions", {"kind": "no_data", "channel": "ops"}, Scope.ADMIN),
    ("delete", "subscriptions/x", None, Scope.ADMIN),
    ("get", "tokens", None, Scope.ADMIN),
    ("post", "tokens", {"name": "x", "scope": "admin"}, Scope.ADMIN),
    ("delete", "tokens/x", None, Scope.ADMIN),
    ("get", "users", None, Scope.ADMIN),
    ("post", "users/invitations", {"role": "admin"}, Scope.ADMIN),
    ("patch", "users/x", {"role": "admin"}, Scope.ADMIN),
    ("delete", "users/x", None, Scope.ADMIN),
    ("get", "audit", None, Scope.ADMIN),
]


@pytest.mark.parametrize(("method", "path", "body", "needed"), WRITES, ids=[f"{one[0]} {one[1]}" for one in WRITES])
def test_a_token_may_do_what_its_scope_says_and_no_more(
    place: Workspace, method: str, path: str, body: Any, needed: Scope
) -> None:
    for scope in (Scope.READ, Scope.OPERATE):
        if not scope.allows(needed):
            answer = Program(place, scope).client.request(method, path, json=body)
            assert answer.status_code == 403, (scope, path)
            assert answer.json()["code"] == "forbidden"
    stranger = TestClient(create_app(place, requests_per_second=0), base_url="http://127.0.0.1/api/v1")
    assert stranger.request(method, path, json=body).status_code == 401


def test_every_path_that_changes_something_needs_more_than_reading(program: Program) -> None:
    """So that one that is added is not forgotten in the list above."""
    document = program.get("openapi.json")
    known = {(method, path.split("/")[0]) for method, path, _, _ in WRITES}
    only_look = {"query", "tables"}  # POST, as what they ask may be long
    for path, methods in document["paths"].items():
        first = path.removeprefix("/api/v1/").split("/")[0]
        for method in set(methods) - {"get"}:
            assert (method, first) in known or first in only_look, (method, path)


def test_a_session_of_a_browser_may_look_but_not_change(place: Workspace) -> None:
    browser = Browser(place, requests_per_second=0).sign_in("lou")
    assert browser.client.get("/api/v1/sources").status_code == 200
    assert browser.client.post("/api/v1/sources", json={"slug": "y"}).status_code == 401
    assert browser.client.get("/api/v1/tokens").status_code == 403


def test_tokens_that_are_revoked_or_made_up_are_refused(place: Workspace) -> None:
    known = {one.id for one in place.people.tokens()}
    program = Program(place)
    program.get("sources")
    (token,) = [one for one in place.people.tokens() if one.id not in known]
    assert token.used_at is not None
    place.people.revoke_token(token.id)
    assert program.get("sources", 401)["fix"] == "send Authorization: Bearer TOKEN"


def test_a_program_that_asks_too_often_is_told_to_wait(place: Workspace) -> None:
    program = Program(place, requests_per_second=2)
    answers = [program.client.get("channels") for _ in range(4)]
    assert [one.status_code for one in answers] == [200, 200, 429, 429]
    assert answers[-1].headers["retry-after"] == "1"
    assert answers[-1].json()["code"] == "too_many_requests"


def test_paths_that_are_not_there_are_told_as_json(program: Program) -> None:
    nothing = program.get("nothing", 404)
    assert nothing["code"] == "not_found"
    assert nothing["fix"] == "see /api/v1/openapi.json for what there is"
    as_curl = {"content-type": "application/x-www-form-urlencoded"}  # which is what -d says
    plain = program.client.post("query", content=b'{"sql": "select 1 as n"}', headers=as_curl)
    assert plain.json()["rows"] == [[1]]
    assert program.get("runs/1", 404)["problem"] == "there is no run 1"
    assert program.client.put("sources").status_code == 405


# Whatever is asked


@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, pytest.param(GenerationMode.NEGATIVE, marks=pytest.mark.long)], ids=str
)
def test_nothing_that_is_asked_meets_a_mistake(tmp_path: Path, mode: GenerationMode) -> None:
    """What the OpenAPI document allows, and what it does not."""
    place = full_place(tmp_path / "place")
    _, secret = place.people.add_token("fuzz", Scope.ADMIN, "nobody")
    app = create_app(place, hosts=frozenset({"testserver"}), requests_per_second=0)
    document = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)
    asked = []
    for found in document.get_all_operations():
        operation = found.ok()  # type: ignore[union-attr] # our own document is valid
        if operation.path.endswith(("/progress", "/test")):  # one does not end, one posts to elsewhere
            continue
        if (operation.method, operation.path.rpartition("/")[2]) == ("post", "checks"):  # each would start Spark
            continue

        @hypothesis.settings(max_examples=8, suppress_health_check=list(hypothesis.HealthCheck), deadline=None)
        @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
        def ask(case: Any) -> None:
            answer = case.call(headers={"Authorization": f"Bearer {secret}"})
            assert answer.status_code < 500, (case.as_curl_command(), answer.text)
            if answer.status_code >= 400:
                assert {"code", "problem", "fix"} <= set(answer.json())

        with contextlib.suppress(hypothesis.errors.Unsatisfiable):  # nothing about it can be wrong
            ask()
            asked.append(operation.label)
    assert len(asked) >= 15
    place.close()
