"""Lists of the console can be narrowed and paged, and what they show is explained to everybody."""

import html
import re

import pytest

from consoles import Browser, full_place
from eventlake.control.alerts import Alert, Kind
from eventlake.library import Workspace
from eventlake.status.funnel import EXPLAINED


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return full_place(tmp_path_factory.mktemp("lists") / "place")


@pytest.fixture(scope="module")
def browser(place: Workspace) -> Browser:
    return Browser(place, requests_per_second=0).sign_in()


def test_the_head_of_every_page_tells_whether_all_is_well(place: Workspace, browser: Browser) -> None:
    assert 'hx-get="/_well" hx-trigger="load, every 10s"' in browser.see("/tables")
    assert "✕ 2 errors" in browser.see("/_well")  # a source fails, and no scheduler is running
    assert 'id="matters"' in browser.see("/")  # where it leads
    place.presence.here("scheduler")
    place.connections.enable("ios/default", False)
    assert "● all well" in browser.see("/_well")
    place.connections.enable("ios/default", True)


def test_sources_are_found_by_slug_name_and_id(browser: Browser) -> None:
    for text in ("web", "the WEB shop", "src1"):
        found = browser.words(f"/sources?q={text}")
        assert "1 with" in found
        assert "The web shop" in found
        assert "src2" not in found
    assert "No source has that" in browser.words("/sources?q=nothing")
    assert "2 Slug" not in browser.words("/sources?q=")


def test_alerts_are_chosen_by_kind_and_source(place: Workspace, browser: Browser) -> None:
    place.alerts.add(
        Alert("a", place.clock.now(), Kind.SYNC_FAILED, "default", "src2", "ios: sync failed", "x", "/"), []
    )
    assert "ios: sync failed" in browser.words("/alerts")
    assert "ios: sync failed" in browser.words("/alerts?kind=sync_failed&source=ios")
    assert "Nothing like that was told" in browser.words("/alerts?source=web&kind=sync_failed")
    assert "Nothing like that was told" in browser.words("/alerts?kind=<script>")


def test_the_audit_log_can_be_read_to_its_beginning(place: Workspace, browser: Browser) -> None:
    for number in range(250):
        place.audit_log.note("eve" if number % 50 == 0 else "ann", "change settings", f"web/{number}")
    link, seen = "/settings", []
    while link:
        text = browser.see(link)
        seen += re.findall(r"change settings <b>web/(\d+)</b>", text)
        older = re.search(r'<a href="(/settings\?[^"]+)#audit">Older', text)
        link = html.unescape(older[1]) if older else ""
    assert seen == [str(number) for number in reversed(range(250))]
    assert re.findall(r"change settings web/(\d+)", browser.words("/settings?q=EVE")) == [
        "200",
        "150",
        "100",
        "50",
        "0",
    ]
    assert "change settings web/249" not in browser.words("/settings?q=web/24%25")
    assert "No change is like that" in browser.words("/settings?q=nobody")
    browser.see("/settings?before=-1&q=%00")


def test_the_words_of_a_funnel_are_explained_in_words_that_everybody_can_reach(
    place: Workspace, browser: Browser
) -> None:
    run = place.runs.lines(1, "src1")[0]
    for path, names in (("/", EXPLAINED), ("/sources/web", EXPLAINED), (f"/runs/{run.run_id}", {"duplicates": ""})):
        text = browser.words(path)
        for name in names:
            assert EXPLAINED[name] in text, (path, name)


def test_a_chart_has_a_title_and_a_table_with_its_own_heads(browser: Browser) -> None:
    chart = browser.see("/sql?q=select * from (values ('a', 1), ('b', 2)) t(plan, users)")
    assert "<figcaption" in chart
    assert "users by plan</figcaption>" in chart
    assert '<th scope="col">plan</th><th scope="col">users</th>' in chart
    assert '<th scope="col">Hour</th><th scope="col">Rows</th>' in browser.see("/")
    assert '<th scope="col">Day</th><th scope="col">Rows</th>' in browser.see("/health")


def test_a_run_ends_with_its_log(place: Workspace, browser: Browser) -> None:
    of_web = browser.words(f"/runs/{place.runs.lines(1, 'src1')[0].run_id}").partition("Log ")[2]
    order = ["discover begins", "stage begins", "publish begins", "commit begins", "finished: Success"]
    assert [of_web.index(words) for words in order] == sorted(of_web.index(words) for words in order)
    failed = browser.words(f"/runs/{place.runs.lines(1, 'src2')[0].run_id}").partition("Log ")[2]
    assert failed.index("stage begins") < failed.index("the storage is away") < failed.index("failed: Failed")
