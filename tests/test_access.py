"""Who keeps access to the console and the API, and that nobody has more than their share of it."""

import re
import threading
import time
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from consoles import Browser, Program, full_place, words
from eventlake.collector.rate import RateLimit
from eventlake.control.people import Scope
from eventlake.library import Workspace
from eventlake.schedule.scheduler import Scheduler
from eventlake.web.api.runs import MOST_STREAMS_OF_ONE
from eventlake.web.app import create_app
from eventlake.web.turns import turn
from runner_without_spark import Slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return full_place(tmp_path_factory.mktemp("access") / "place")


def users(place: Workspace, secret: str) -> int:
    """What the API answers a token that asks for what only administrators see."""
    client = TestClient(create_app(place, requests_per_second=0), base_url="http://127.0.0.1/api/v1")
    return client.get("users", headers={"authorization": f"Bearer {secret}"}).status_code


def chain(place: Workspace, browser: Browser, length: int = 3) -> list[str]:
    """A token that somebody made in the console, and others, each made with the one before."""
    told = browser.send("/settings/token", name="first", scope="admin")
    found = re.search(r"shown this once: (el_\S+)", told)
    assert found
    secrets = [found[1]]
    client = TestClient(create_app(place, requests_per_second=0), base_url="http://127.0.0.1/api/v1")
    while len(secrets) < length:
        headers = {"authorization": f"Bearer {secrets[-1]}"}
        made = client.post("tokens", json={"name": f"number {len(secrets)}", "scope": "admin"}, headers=headers)
        secrets.append(made.json()["token"])
    assert [users(place, secret) for secret in secrets] == [200] * length
    return secrets


def test_tokens_that_were_made_with_tokens_go_with_whose_they_are(place: Workspace) -> None:
    Browser(place, requests_per_second=0).sign_in("ann")
    mallory = Browser(place, requests_per_second=0).sign_in("mallory")
    secrets = chain(place, mallory)
    assert {token.made_by for token in place.people.tokens()} == {"mallory"}
    place.people.set_role("mallory", Scope.READ)
    assert [users(place, secret) for secret in secrets] == [401, 401, 401]
    place.people.set_role("mallory", Scope.ADMIN)
    secrets = chain(place, mallory)
    place.people.remove("mallory")
    assert [users(place, secret) for secret in secrets] == [401, 401, 401]


def test_nobody_comes_back_by_a_link_that_they_kept(place: Workspace) -> None:
    Browser(place, requests_per_second=0).sign_in("ben")
    Browser(place, requests_per_second=0).sign_in("eve")
    kept, harmless = place.people.invite(Scope.ADMIN), place.people.invite(Scope.READ)
    place.people.set_role("eve", Scope.READ)
    assert place.people.invited_as(kept) is None
    assert place.people.invited_as(harmless) is Scope.READ
    place.people.remove("eve")
    assert place.people.invited_as(harmless) is None
    assert "was taken back" in Browser(place).words(f"/welcome/{kept}", 404)


def test_what_a_form_made_is_not_made_again_by_loading_its_page_again(place: Workspace) -> None:
    browser = Browser(place, requests_per_second=0).sign_in("dora")
    csrf = re.search(r'name="csrf" value="([^"]+)"', browser.see("/settings"))
    assert csrf
    for path, fields, onward in (
        ("/settings/token", {"name": "once", "scope": "read"}, "/settings"),
        ("/settings/invite", {"role": "read"}, "/settings"),
        ("/sources", {"slug": "once"}, "/sources/once"),
        ("/sources/once/keys", {}, "/sources/once"),
    ):
        answer = browser.client.post(path, data={"csrf": csrf[1], **fields}, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, onward)
        assert "set-cookie" not in answer.headers  # browsers keep these
        shown = re.findall(r'class="secret" id="[^"]+">([^<]+)<', browser.see(onward))
        assert len(shown) == 1
        assert "shown this once" not in browser.words(onward)  # the page was loaded again
        assert shown[0] not in browser.see(onward)
    assert [token.name for token in place.people.tokens()] == ["once"]
    assert len(place.sources.keys("once")) == 2


def test_a_secret_is_shown_to_the_session_that_made_it_only(place: Workspace) -> None:
    maker = Browser(place, requests_per_second=0).sign_in("max")
    other = Browser(place, requests_per_second=0).sign_in("moe")
    other.client = TestClient(maker.client.app, base_url="http://127.0.0.1", cookies=other.client.cookies)
    csrf = re.search(r'name="csrf" value="([^"]+)"', maker.see("/settings"))
    assert csrf
    maker.client.post("/sources/web/keys", data={"csrf": csrf[1]}, follow_redirects=False)
    assert "shown this once" not in other.words("/sources/web")
    assert "shown this once" in maker.words("/sources/web")


def test_few_queries_go_at_once_and_the_others_are_told_to_come_again(place: Workspace) -> None:
    program = Program(place)
    browser = Browser(place, requests_per_second=0).sign_in("rita")
    for client in (program.client, browser.client):  # routes are made for the first request: in a server, by one thread
        assert client.get("nowhere").status_code == 404
    paths = [
        *("/sql?q=select 41 as n", "/sql.csv?q=select 1", "/quality?view=violations"),
        "/tables/default/web.track_order_completed/_columns",
    ]
    with turn(), turn(), ThreadPoolExecutor(6) as threads:  # as two queries have them that take their time
        api = threads.submit(program.client.post, "query", json={"sql": "select 1"})
        pages = list(threads.map(browser.client.get, paths))
        assert (api.result().status_code, api.result().json()["code"]) == (429, "too_many_requests")
    assert [page.status_code for page in pages] == [429, 429, 429, 200]
    assert {one.headers["retry-after"] for one in (api.result(), *pages[:3])} == {"5"}
    sql, _, _, columns = (page.text for page in pages)
    assert "nothing is wrong with what you asked" in words(sql)
    assert "select 41 as n" in sql  # it need not be written again
    assert "properties_total" in columns  # which the table has; what is in it follows
    assert 'hx-trigger="load delay:5s"' in columns
    assert program.post("query", {"sql": "select 1 as n"}, 200)["rows"] == [[1]]
    assert re.search(r"\d+ % ", browser.words(paths[-1]))


def test_who_finds_all_places_taken_is_told_at_once(place: Workspace) -> None:
    program = Program(place)
    ended = threading.Event()

    def wait_for_a_turn(_: int) -> None:
        with turn():
            ended.wait(30)

    with ThreadPoolExecutor(10) as threads:
        for number in range(10):
            threads.submit(wait_for_a_turn, number)
        taken = 0.0  # by the request that was refused; those before it came while there was a place
        status = 200
        while status == 200:
            begun = time.monotonic()
            status = program.client.post("query", json={"sql": "select 1"}).status_code
            taken = time.monotonic() - begun
        assert status == 429
        assert taken < 3  # of the five seconds that those before it may wait
        ended.set()


def test_a_session_is_counted_as_a_token_is(place: Workspace) -> None:
    browser = Browser(place, requests_per_second=2)
    browser.sign_in("sam")
    answers = [browser.client.get("/api/v1/channels").status_code for _ in range(6)]
    assert answers[-1] == 429


def test_clients_behind_a_proxy_are_counted_one_by_one(place: Workspace) -> None:
    def tries(app_of: int, addresses: list[str]) -> list[int]:
        client = TestClient(
            create_app(place, requests_per_second=0.1, trusted_proxies=app_of), base_url="http://127.0.0.1"
        )
        return [client.get("/welcome/x", headers={"x-forwarded-for": one}).status_code for one in addresses]

    made_up = [f"10.9.9.{number}, 203.0.113.7" for number in range(3)]  # what is left of the proxy's own word
    assert tries(1, ["203.0.113.7", "203.0.113.8", "203.0.113.9"]) == [404, 404, 404]
    assert tries(1, made_up) == [404, 429, 429]
    assert tries(0, ["203.0.113.7", "203.0.113.8"]) == [404, 429]  # nobody said that there is a proxy


def test_who_has_not_asked_for_a_while_takes_no_memory() -> None:
    limit = RateLimit(1e6)  # a bucket is full again after a microsecond
    for number in range(30_000):
        assert limit.wait(f"address {number}") == 0
    assert len(limit._buckets) <= 10_001


def test_streams_of_one_do_not_keep_others_from_following(tmp_path: Path) -> None:
    place = full_place(tmp_path / "place")
    runner = Slow()
    place._given = runner
    place.orders.place("default", "src2", "sync", {}, "ann")
    scheduler = Scheduler(place)
    scheduler.tick()
    assert runner.begun.wait(30)
    path = f"runs/{place.runs.lines(1)[0].run_id}/progress"
    client = TestClient(create_app(place, requests_per_second=0), base_url="http://127.0.0.1/api/v1")
    greedy, modest = (
        {"authorization": f"Bearer {place.people.add_token('of one name', Scope.READ, 'nobody')[1]}"} for _ in range(2)
    )
    with ThreadPoolExecutor(MOST_STREAMS_OF_ONE + 2) as threads:
        many = [threads.submit(client.get, path, headers=greedy) for _ in range(MOST_STREAMS_OF_ONE + 1)]
        (refused, *_), followed = futures.wait(many, 30, futures.FIRST_COMPLETED)  # the others end with the run
        other = threads.submit(client.get, path, headers=modest)
        assert not futures.wait([other], 1).done  # it follows
        runner.go_on.set()
    scheduler.close()
    assert refused.result().status_code == 429
    assert {one.result().status_code for one in (*followed, other)} == {200}
    place.close()
