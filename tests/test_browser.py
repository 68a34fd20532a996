"""The console in a real browser: the first-time journey, every page in both colours, hostile names, accessibility."""

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Page

from browsers import run_sdk
from collectors import Collector
from conftest import InProcess
from consoles import PASSWORD, Failing, full_place
from eventlake.alerts.watch import Watch
from eventlake.control.people import Scope
from eventlake.library import Workspace
from eventlake.schedule.scheduler import Scheduler
from eventlake.web.app import create_app
from eventlake.workspace import Clock
from servers import free_ports

pytestmark = pytest.mark.long

SHOTS = os.environ.get("EVENTLAKE_SCREENSHOTS")  # a folder for pictures of everything, to look at
PICTURES = os.environ.get("EVENTLAKE_PICTURES")  # the folder of those that docs/console.md shows
SHOWN = {"overview-light": "overview", "journey-2-debugger": "debugger", "run-light": "run", "table-light": "table"}
PAGES = {
    "overview": "/",
    "sources": "/sources",
    "source": "/sources/web",
    "connections": "/connections",
    "connection": "/connections/web/default",
    "replay": "/connections/web/default/replay?start=2026-11-17&stop=&events=",
    "runs": "/runs",
    "health": "/health?source=web",
    "tables": "/tables",
    "table": "/tables/default/web.track_order_completed?column=properties_total&type=decimal(38,6)",
    "sql": "/sql?q=select event, count(*) as n from web.track_order_completed group by all",
    "quality": "/quality",
    "privacy": "/privacy",
    "rescued": "/quality?view=rescued",
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
    found = Served(full_place(tmp_path_factory.mktemp("browser") / "place", Clock()))
    yield found
    found.close()


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
    if SHOTS:
        Path(SHOTS).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=f"{SHOTS}/{name}.png", full_page=True)
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
    sign_in(page, served, "ann")
    run_id = served.place.runs.lines(1, "src1")[0].run_id
    failed = served.place.runs.lines(1, "src2")[0].run_id
    for name, path in {**PAGES, "run": f"/runs/{run_id}", "failed-run": f"/runs/{failed}"}.items():
        page.goto(served.address + path)
        page.wait_for_load_state("networkidle")
        page.evaluate(axe)
        found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})")
        problems = [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found["violations"]]
        assert problems == [], (name, look)
        width = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert width <= 0, f"{name} is wider than the screen ({look})"
        keep(page, f"{name}-{look}")
    assert said == []


@pytest.fixture
def new(tmp_path: Path) -> Iterator[tuple[Served, Collector]]:
    """A workspace in which nothing is yet, with a console and a collector."""
    place = Workspace.create(tmp_path / "place")
    place._given = InProcess()
    found = Served(place)
    with Collector(place.folder, "--workers", "1") as collector:
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
    with page.expect_response(lambda answer: "_events" in answer.url), page.expect_response("**/_events"):
        pass  # two more looks at what came
    assert '"Total Price": 12.5' in page.inner_text(opened_event)  # what one reads stays open
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


def test_with_scripts_off_everything_can_be_read(browser: Any, served: Served) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    sign_in(page, served, "ann")
    for path in PAGES.values():
        page.goto(served.address + path)
        assert page.locator("h1").count() == 1
    page.goto(served.address)
    assert re.search(r"207\s+lines read", page.inner_text("main"))
