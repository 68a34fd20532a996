"""The console in a real browser: the first-time journey, every page in both colours, hostile names, accessibility."""

import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import uvicorn
from playwright.sync_api import Page

from browsers import run_sdk
from collectors import Collector
from conftest import InProcess
from consoles import HOSTILE, PASSWORD, Failing, full_place, order, put, with_alerts
from eventlake.alerts.watch import Watch
from eventlake.clock import Clock
from eventlake.control.people import Scope
from eventlake.events import instants
from eventlake.library import Workspace
from eventlake.policies.plan import Rule, of_rules
from eventlake.schedule.scheduler import Scheduler
from eventlake.web.app import create_app
from runner_without_spark import Slow
from servers import free_ports

pytestmark = pytest.mark.long

# A folder for pictures of everything, to look at: git does not see it.
SHOTS = Path(os.environ.get("EVENTLAKE_SCREENSHOTS") or Path(__file__).parents[1] / ".screenshots")
PICTURES = os.environ.get("EVENTLAKE_PICTURES")  # the folder of those that docs/console.md shows
SHOWN = {
    "overview-light": "overview",
    "journey-2-debugger": "debugger",
    "run-light": "run",
    "table-light": "table",
    "journey-6-preview": "rules",
}
PAGES = {
    "overview": "/",
    "sources": "/sources",
    "source": "/sources/web",
    "connections": "/connections",
    "connection": "/connections/web/default",
    "replay": "/connections/web/default/replay?start=2026-11-17&stop=&events=",
    "rebuild": "/connections/web/default/rebuild?key=database&value=shop",
    "runs": "/runs",
    "health": "/health?source=web",
    "tables": "/tables",
    "table": "/tables/default/web.track_order_completed?column=properties_total&type=decimal(38,6)",
    "sql": "/sql?q=select event, count(*) as n from web.track_order_completed group by all",
    "quality": "/quality",
    "plans": "/plans",
    "plan": "/plans/Shop",
    "rules": "/sources/web/rules",
    "violations": "/quality?view=violations&event=Order Completed&field=properties.total",
    "privacy": "/privacy",
    "rescued": "/quality?view=rescued",
    "blocked": "/quality?view=blocked",
    "alerts": "/alerts",
    "settings": "/settings",
    "search": "/search?q=order",
}


@pytest.fixture(scope="module")
def axe(node_modules: Path) -> str:
    return (node_modules / "node_modules" / "axe-core" / "axe.min.js").read_text()


class Served:
    """A console of a workspace, on a port of this machine; what a scheduler would do is done when it is asked for."""

    def __init__(self, place: Workspace) -> None:
        self.place = place
        (port,) = free_ports(1)
        self.address = f"http://127.0.0.1:{port}"
        app = create_app(place, requests_per_second=0)
        self._server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning"))
        self._thread = threading.Thread(target=self._server.run)
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
        self.scheduler = Scheduler(place)

    def carry_out(self) -> None:
        self.scheduler.tick()
        while self.scheduler._going:
            self._thread.join(0.01)

    def close(self) -> None:
        self.scheduler.close()
        self._server.should_exit = True
        self._thread.join()
        self.place.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = full_place(tmp_path_factory.mktemp("browser") / "place", Clock())
    _planned(place)
    with_alerts(place)
    found = Served(place)
    yield found
    found.close()


def _planned(place: Workspace) -> None:
    """Give a source a plan of two versions, a transformation, and an event that is not as planned."""
    for kind in ("string", "number"):
        inner = {"type": "object", "properties": {"total": {"type": kind}, HOSTILE: {}}, "required": ["total"]}
        schema = {"type": "object", "properties": {"properties": inner}}
        place.plans.save(of_rules("Shop", [Rule("TRACK", schema, "Order Completed"), Rule("TRACK", schema, HOSTILE)]))
    place.plans.connect("Shop", "src1")
    place.plans.enforce("src1", {"track.allowEventOnViolations": "false"})
    place.plans.transformations.save("src1", {"name": HOSTILE, "if": "type = 'group'", "newEventName": HOSTILE})
    now = instants.to_text(place.clock.now())
    put(
        place, "src1", "d", [order(900, total="a lot") | {"receivedAt": now}, order(901, total=5) | {"receivedAt": now}]
    )
    place.sync("web")


def opened(browser: Any, **options: Any) -> tuple[Page, list[str]]:
    """A page, and what its console says."""
    page = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: dialog.accept())
    return page, said


def sign_in(page: Page, served: Served, name: str) -> None:
    if name not in {user.name for user in served.place.people.users()}:
        served.place.people.join(served.place.people.invite(Scope.ADMIN), name, PASSWORD)
    page.goto(f"{served.address}/sign-in")
    page.fill("#name", name)
    page.fill("#password", PASSWORD)
    page.click("button.first")
    page.wait_for_selector("nav.main")


def keep(page: Page, name: str) -> None:
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)
    if PICTURES and name in SHOWN:
        page.screenshot(path=f"{PICTURES}/{SHOWN[name]}.png")


@pytest.mark.parametrize(
    ("look", "options"),
    [
        ("light", {"color_scheme": "light"}),
        ("dark", {"color_scheme": "dark"}),
        ("phone", {"color_scheme": "light", "viewport": {"width": 360, "height": 740}}),
    ],
)
def test_every_page_can_be_used_by_everybody(
    browser: Any,
    served: Served,
    axe: str,
    look: str,
    options: dict[str, Any],
) -> None:
    page, said = opened(browser, **options)
    welcome = f"/welcome/{served.place.people.invite(Scope.READ)}"
    for name, path in {"sign-in": "/sign-in", "welcome": welcome, "welcome-used": "/welcome/x"}.items():
        _is_for_everybody(page, served.address + path, axe, f"{name}-{look}")
    said.clear()  # a browser tells of the link that is not there
    sign_in(page, served, "ann")
    run_id = served.place.runs.lines(1, "src1")[0].run_id
    failed = served.place.runs.lines(1, "src2")[0].run_id
    for name, path in {**PAGES, "run": f"/runs/{run_id}", "failed-run": f"/runs/{failed}"}.items():
        _is_for_everybody(page, served.address + path, axe, f"{name}-{look}")
    assert said == []


def _is_for_everybody(page: Page, address: str, axe: str, name: str) -> None:
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.evaluate(axe)
    found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})")
    problems = [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found["violations"]]
    assert problems == [], name
    width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert width <= 0, f"{name} is wider than the screen"
    keep(page, name)


@pytest.fixture
def new(tmp_path: Path) -> Iterator[tuple[Served, Collector]]:
    """A workspace in which nothing is yet, with a console and a collector."""
    place = Workspace.create(tmp_path / "place")
    place._given = InProcess()
    found = Served(place)
    with Collector(place.folder) as collector:
        yield found, collector
    found.close()


def test_the_first_time_from_signing_in_to_rows(browser: Any, site: str, new: tuple[Served, Collector]) -> None:
    """Sign in, make a source, send, see it arrive, sync, see rows, change a setting, fail, be told, mend."""
    served, collector = new
    place = served.place
    page, said = opened(browser)
    page.goto(f"{served.address}/welcome/{place.people.invite(Scope.ADMIN)}")
    page.fill("#name", "ann")
    page.fill("#password", PASSWORD)
    page.click("text=Begin")
    page.click("text=Add the first source")
    page.fill("#slug", "shop")
    page.click("button:text('Add source')")
    key = page.inner_text("#write-key")
    keep(page, "journey-1-source")
    _sees_what_it_sends(browser, site, page, collector, key)
    _syncs_and_looks(page, served)
    _changes_a_setting(page, served)
    _fails_and_is_mended(page, served, collector, key)
    page.keyboard.press("Control+k")
    page.keyboard.type("total_price")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=shop.track_checkout_completed.properties_total_price")
    # What a browser says of the form that was sent with a wrong setting.
    assert said == ["Failed to load resource: the server responded with a status of 422 (Unprocessable Entity)"]


def _sees_what_it_sends(browser: Any, site: str, page: Page, collector: Collector, key: str) -> None:
    host = f"127.0.0.1:{collector.port}"
    run_sdk(browser, site, "@segment/analytics-next/dist/umd/index.js", "segment_browser.js", host, key, "standard")
    collector.post("/v1/track", {"userId": "u1"}, key=key)  # has no event: it is refused
    page.wait_for_selector("text=Checkout Completed")
    page.wait_for_selector("text=✕ refused")
    page.click("summary:has-text('Checkout Completed')")
    opened_event = "details[open]:has(> summary:has-text('Checkout Completed')) > pre"
    assert '"Total Price": 12.5' in page.inner_text(opened_event)
    page.eval_on_selector(opened_event, "one => { one.style.maxHeight = '60px'; one.scrollTop = 30; }")
    page.focus("summary:has-text('Checkout Completed')")
    for _ in range(2):  # more looks at what came
        with page.expect_response("**/_events"):
            pass
    page.wait_for_load_state()
    assert '"Total Price": 12.5' in page.inner_text(opened_event)  # what one reads stays open
    assert "Checkout Completed" in page.evaluate("document.activeElement.innerText"), "the keyboard is where it was"
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#events'))")
    with page.expect_response("**/_events"), page.expect_response("**/_events"):
        pass
    assert "Checkout Completed" in page.evaluate("getSelection().toString()"), "what is marked can be copied"
    page.evaluate("getSelection().removeAllRanges()")
    keep(page, "journey-2-debugger")


def _syncs_and_looks(page: Page, served: Served) -> None:
    page.click("nav >> text=Connections")
    page.click("text=shop → default")
    page.click("text=Sync now")
    page.wait_for_selector("text=A sync was ordered")
    served.carry_out()
    page.wait_for_selector("text=✓ Success")
    page.click("nav >> text=Tables")
    page.click("text=shop.track_checkout_completed")
    page.wait_for_selector("code:text('12.5')")
    page.wait_for_selector("text=analytics.js")
    keep(page, "journey-3-table")


def _changes_a_setting(page: Page, served: Served) -> None:
    page.goto(f"{served.address}/connections/shop/default")
    page.fill("#f-schedule", "whenever")
    page.click("text=Save settings")
    page.wait_for_selector("text=is not a schedule")
    page.fill("#f-schedule", "every 30m")
    page.click("text=Save settings")
    page.wait_for_selector("text=Saved: schedule.")
    page.wait_for_selector("b:text('every 30m')")


def _fails_and_is_mended(page: Page, served: Served, collector: Collector, key: str) -> None:
    place = served.place
    place._given = Failing()
    collector.post("/v1/track", {"userId": "u2", "event": "Signed Up"}, key=key)
    page.click("text=Sync now")
    served.carry_out()
    page.wait_for_selector("text=The last sync failed")
    assert Watch(place).look() == 1
    page.goto(f"{served.address}/alerts")
    page.wait_for_selector("text=shop: sync failed")
    page.goto(served.address)
    page.wait_for_selector("text=shop failed: the storage is away")
    keep(page, "journey-4-failed")
    place._given = InProcess()
    page.click("text=Try again")
    served.carry_out()
    page.wait_for_selector("text=✓ Success")
    page.goto(f"{served.address}/sql")
    page.fill("#q", "select user_id from shop.track_signed_up")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("td:text('u2')")
    page.wait_for_load_state()  # the keys that follow are for its scripts


def test_a_plan_from_pasting_it_to_letting_in_what_it_blocked(browser: Any, new: tuple[Served, Collector]) -> None:
    """Paste a plan, enforce it, see what it blocked and why, rename what was meant, and let it in."""
    served, _ = new
    place = served.place
    place.connections.add_source("shop", source_id="s1")
    now = instants.to_text(place.clock.now())
    put(place, "s1", "a", [order(number, sum=number) | {"receivedAt": now} for number in range(3)])
    page, said = opened(browser)
    sign_in(page, served, "ann")
    page.click("nav >> text=Plans")
    schema = {"properties": {"properties": {"properties": {"total": {"type": "number"}}, "required": ["total"]}}}
    page.fill(
        "#text",
        json.dumps({"name": "Shop", "rules": [{"type": "TRACK", "key": "Order Completed", "jsonSchema": schema}]}),
    )
    page.click("button:text('Import')")
    page.wait_for_selector("text=version 1, 1 rule.")
    page.goto(f"{served.address}/sources/shop/rules")
    page.select_option("#plan", label="Shop")
    page.click("button:text('Choose')")
    page.wait_for_selector("text=The plan holds from the next sync on.")
    page.select_option("[id='f-track.allowEventOnViolations']", label="block the event")
    page.click("form[action$='/enforcement'] button")
    page.wait_for_selector("text=Saved.")
    place.sync("shop")
    page.click("text=Violations")
    page.wait_for_selector("td:has-text('✕ blocked')")
    page.click("td.n a:text('3')")
    page.wait_for_selector("details[open] pre:has-text('\"sum\"')")
    keep(page, "journey-5-violations")
    page.goto(f"{served.address}/sources/shop/rules")
    page.wait_for_selector("#preview:has-text('0 of the last 3 events')")  # of the example, as soon as it is there
    told = {
        "name": "sums",
        "if": "event = 'Order Completed'",
        "propertyRenames": [{"oldName": "sum", "newName": "total"}],
    }
    page.fill("#text", json.dumps(told))
    page.wait_for_selector("#preview:has-text('3 of the last 3 events')")  # while one writes
    page.wait_for_selector("#preview td:has-text('properties.total')")
    keep(page, "journey-6-preview")
    page.fill("#text", "{")
    page.wait_for_selector("#preview:has-text('not JSON')")
    page.fill("#text", json.dumps(told))
    page.click("button:text('Save'):near(#text)")
    page.wait_for_selector("td:text('sums')")
    page.select_option("[id='f-track.allowEventOnViolations']", label="let in")
    page.click("form[action$='/enforcement'] button")
    page.wait_for_selector("text=Saved.")
    page.click("text=Let in what was blocked…")
    page.wait_for_selector("text=Ordered: a replay")
    served.carry_out()
    page.goto(f"{served.address}/sql?q=select sum(properties_total) as totals from shop.track_order_completed")
    page.wait_for_selector("td:text('3')")
    assert said == []


def test_how_far_a_run_is_reaches_its_page_and_its_stream_within_a_second(
    browser: Any, new: tuple[Served, Collector]
) -> None:
    served, _ = new
    place = served.place
    place.connections.add_source("shop", source_id="s1")
    put(place, "s1", "a", [order(1)])
    runner = place._given = Slow()
    page, _ = opened(browser)
    sign_in(page, served, "ann")
    place.orders.place("default", "s1", "sync", {}, "ann")
    served.scheduler.tick()
    assert runner.begun.wait(30)
    run_id = place.runs.lines(1)[0].run_id
    page.goto(f"{served.address}/runs/{run_id}")
    page.wait_for_selector("label:has-text('stage: 0 of 1 tasks')")
    secret = place.people.add_token("watcher", Scope.READ, "ann")[1]
    asked = Request(f"{served.address}/api/v1/runs/{run_id}/progress", headers={"authorization": f"Bearer {secret}"})
    on_page, on_stream = [], []
    with urlopen(asked, timeout=30) as stream:
        told = (json.loads(line[6:]) for line in stream if line.startswith(b"data: "))
        assert next(told)["done"] == 0
        for done in (1, 0, 1):
            begun, runner.done = time.monotonic(), done
            page.wait_for_selector(f"label:has-text('stage: {done} of 1 tasks')")
            on_page.append(time.monotonic() - begun)
            assert next(told)["done"] == done
        for done in (0, 1, 0):
            begun, runner.done = time.monotonic(), done
            assert next(told)["done"] == done
            on_stream.append(time.monotonic() - begun)
    runner.go_on.set()
    assert (min(on_page) < 1, min(on_stream) < 1) == (True, True), (on_page, on_stream)  # a busy machine may be late


def test_a_query_is_written_with_proposed_names(browser: Any, served: Served, axe: str) -> None:
    page, said = opened(browser)
    sign_in(page, served, "ann")
    page.goto(f"{served.address}/sql")
    page.focus("#q")
    page.keyboard.type("select sum(x) as totals from order")
    page.wait_for_selector("[role=option]:has-text('web.track_order_completed')")
    page.keyboard.press("ArrowDown")
    page.evaluate(axe)
    assert page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa']})")["violations"] == []
    keep(page, "sql-names")
    page.keyboard.press("Enter")
    assert page.input_value("#q") == "select sum(x) as totals from web.track_order_completed"
    page.keyboard.press("Control+Home")
    for _ in range("select sum(x".index("x")):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Delete")
    page.keyboard.type("total")
    page.wait_for_selector("[role=option]:has-text('properties_total')")
    page.keyboard.press("Escape")
    assert page.locator("#names").is_hidden()
    page.keyboard.press("Control+Space")
    page.wait_for_selector("[role=option]:has-text('properties_total')")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    assert page.input_value("#q") == "select sum(properties_total) as totals from web.track_order_completed"
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("th:text('totals')")
    assert said == []


def test_nothing_of_an_event_runs_or_breaks_a_page(browser: Any, served: Served) -> None:
    page, said = opened(browser)
    alarms: list[str] = []
    page.on("dialog", lambda dialog: alarms.append(dialog.message))
    sign_in(page, served, "ann")
    hostile = next(table.name for table in served.place.tables() if table.name.startswith("track_script"))
    for path in (*PAGES.values(), f"/tables/default/web.{hostile}", f"/sql?q=select * from web.{hostile}"):
        page.goto(served.address + path)
        page.wait_for_load_state("networkidle")
    assert page.locator("td:has-text('<script>')").count() > 0  # it is shown, as text
    assert alarms == []
    assert said == []


def test_the_longest_names_fit_the_smallest_screen(browser: Any, new: tuple[Served, Collector]) -> None:
    served, _ = new
    slug = "a" * 100
    served.place.connections.add_source(slug, name="\u0627\u0644\u0645\u062a\u062c\u0631 " * 30)
    page, said = opened(browser, viewport={"width": 360, "height": 740})
    page.goto(f"{served.address}/welcome/{served.place.people.invite(Scope.ADMIN)}")
    page.fill("#name", "n" * 60)
    page.fill("#password", PASSWORD)
    page.click("text=Begin")
    pages = (
        "",
        "runs",
        "tables",
        "quality",
        "health",
        "alerts",
        "sources",
        "connections",
        "plans",
        "privacy",
        "settings",
    )
    for path in (*pages, f"sources/{slug}", f"connections/{slug}/default", f"search?q={slug}"):
        page.goto(f"{served.address}/{path}")
        page.wait_for_load_state("networkidle")
        width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert width <= 0, f"/{path} is {width} pixels wider than the screen"
    assert said == []


def test_with_scripts_off_everything_can_be_read(browser: Any, served: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, served, "ann")
    for path in PAGES.values():
        page.goto(served.address + path)
        assert page.locator("h1").count() == 1
    page.goto(served.address)
    assert re.search(r"209\s+lines read", page.inner_text("main"))
