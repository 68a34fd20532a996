"""The console, page by page: what people see, what they can do, and what they cannot."""

import html
import re
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from conftest import InProcess, SetClock
from consoles import HOSTILE, PASSWORD, Browser, Failing, full_place, words
from eventlake.control.collected import Taken
from eventlake.control.people import People, Scope, SignInRefusedError
from eventlake.errors import TransientError
from eventlake.library import Workspace
from eventlake.query import query
from eventlake.query.fixes import OVER_HTTP
from eventlake.schedule.scheduler import Scheduler
from eventlake.web.guard import MOST_BYTES
from runner_without_spark import Slow


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return full_place(tmp_path_factory.mktemp("console") / "place")


@pytest.fixture(scope="module")
def browser(place: Workspace) -> Browser:
    return Browser(place, requests_per_second=0).sign_in()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Browser]:
    place = full_place(tmp_path / "place")
    yield Browser(place, requests_per_second=0).sign_in()
    place.close()


def carry_out(place: Workspace) -> None:
    """What a scheduler beside the console would do."""
    scheduler = Scheduler(place)
    scheduler.tick()
    scheduler._threads.shutdown(wait=True)


PAGES = [
    "/",
    "/_overview",
    "/sources",
    "/sources/web",
    "/sources/web/_events",
    "/sources/ios",
    "/connections",
    "/connections?q=web",
    "/connections/web/default",
    "/connections/web/default/_state",
    "/connections/ios",
    "/connections/web/default/replay",
    "/connections/web/default/replay?start=2026-11-17&stop=&events=",
    "/connections/web/default/rebuild?key=date_partition&value=day",
    "/runs",
    "/_runs",
    "/runs?status=failed",
    "/runs?connection=ios/default",
    "/health",
    "/health?source=web",
    "/health?source=web&day=2026-11-17",
    "/tables",
    "/tables?q=order&source=web",
    "/tables/default/web.track_order_completed",
    "/tables/default/web.track_order_completed/_columns",
    "/tables/default/web.track_order_completed?column=properties_total&type=string",
    "/sql",
    "/sql?q=select+1",
    "/quality",
    "/quality?view=rescued",
    "/quality?view=refused",
    "/quality?view=violations",
    "/quality?view=violations&days=30&event=x&field=y",
    "/plans",
    "/sources/web/rules",
    "/sources/ios/rules",
    "/privacy",
    "/alerts",
    "/settings",
    "/search?q=order",
]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_is_there_and_shows_what_events_hold_as_text(browser: Browser, path: str) -> None:
    text = browser.see(path)
    assert "<script>alert" not in text
    assert "49" not in re.findall(r"\{\{7\*7\}\}|>49<", text)
    assert not re.search(r"\son\w+=|\sstyle=|javascript:", text.replace(HOSTILE, ""))  # the policy would block them
    for script in re.findall(r"<script[^>]*>", text):
        assert re.fullmatch(r'<script src="/static/\w+(\.min)?\.js\?[\d.]+" defer>', script)


@pytest.fixture(scope="module")
def stranger(place: Workspace) -> Browser:
    return Browser(place, requests_per_second=0)


@pytest.mark.parametrize("path", PAGES)
def test_nobody_sees_anything_who_is_not_signed_in(stranger: Browser, path: str) -> None:
    answer = stranger.client.get(path, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


def test_the_overview_answers_whether_the_data_is_there(browser: Browser) -> None:
    text = browser.words("/")
    assert "ios failed 3 times in a row: the storage is away" in text
    assert "Fix: wait until it is back. Nothing is lost: the raw archive has the events" in text
    assert "No scheduler is running" in text
    # 202 and 5 lines were read: 200 + 4 rows, one copy, two lines that are no events
    assert "207 lines read 0 suppressed 0 blocked 1 duplicates 2 quarantined 204 loaded" in text
    assert "web → default ✓ well" in text
    assert "ios → default ✕ failed 3 times" in text


def test_the_funnel_counts_what_the_collector_took(place: Workspace, browser: Browser) -> None:
    hour = 3_600_000_000
    place.collected.begin("here", place.clock.now() - 29 * hour, {"src1": Taken(1000, 5, 0)})  # nobody knows when
    place.collected.note("here", place.clock.now(), {"src1": Taken(1204, 17, 3)})
    assert "216 received 12 refused 204 accepted 3 copies left out" in browser.words("/")
    assert "web The web shop src1 ✓ on default 216 12" in browser.words("/sources")


def test_numbers_are_links_to_what_they_count(browser: Browser) -> None:
    text = browser.see("/")
    link = "/quality?view=quarantine&amp;day=2026-11-17"
    assert f'<a href="{link}"><b>2</b>' in text
    shown = browser.words(html.unescape(link))
    assert "not json" in shown
    assert f"segment-logs/src1/1794873600000/a.json line 201" in shown  # noqa: F541


def test_a_run_shows_its_books_tables_notices_and_steps(place: Workspace, browser: Browser) -> None:
    run = place.runs.lines(1, "src1")[0]
    text = browser.words(f"/runs/{run.run_id}")
    assert "Sync of web" in text
    assert "✓ Success" in text
    assert "5 lines read 0 suppressed 0 blocked 1 duplicates 0 quarantined 4 loaded" in text
    assert "value" in text
    assert "track_order_completed" in text
    assert re.search(r"discover [\d.]+ s · stage [\d.]+ s · dedupe [\d.]+ s · publish [\d.]+ s · commit [\d.]+ s", text)
    report = browser.see(f"/runs/{run.run_id}/report.json")
    assert report.splitlines()[0].startswith('{"type": "source"')


def test_a_run_that_failed_shows_the_error_what_it_means_and_what_to_do(place: Workspace, browser: Browser) -> None:
    run = place.runs.lines(1, "src2")[0]
    text = browser.words(f"/runs/{run.run_id}")
    assert "✕ Failed" in text
    assert "the storage is away service_unavailable Fix: wait until it is back" in text
    assert "nothing is lost" in text
    assert "It is tried again by itself" in text
    assert "Sync now" in text


def test_a_run_that_is_not_there_is_told_as_such(browser: Browser) -> None:
    assert "there is no run 12345" in browser.words("/runs/12345", 404)
    assert "There is no such page" in browser.words("/nothing/here", 404)
    assert "there is no source 'nobody'" in browser.words("/sources/nobody", 404)
    assert "there is no table 'web.nothing'" in browser.words("/tables/default/web.nothing", 404)
    assert "there is no lake 'mars'" in browser.words("/tables/mars/web.page", 404)


def test_a_table_shows_its_columns_values_senders_and_misfits(browser: Browser) -> None:
    whole = browser.words("/tables/default/web.track_order_completed")
    assert "203 rows in 2 files" in whole
    assert "History of its columns changed by 2 runs" in whole
    without_scripts = browser.words("/tables/default/web.track_order_completed?values=1")
    assert '1 not a bigint "n/a"' in without_scripts
    columns = browser.words("/tables/default/web.track_order_completed/_columns")
    assert "A sample: filled and examples are of the newest 203 rows" in columns
    assert re.search(r"properties_total /properties/total bigint \d+ %", columns)
    assert "analytics.js 2.1.0" in columns
    assert '1 not a bigint "n/a"' in columns
    assert "1 cut to a whole number 1.5" in columns


def test_a_type_is_previewed_then_changed(fresh: Browser) -> None:
    path = "/tables/default/web.track_order_completed"
    preview = fresh.words(f"{path}?column=properties_total&type=decimal(38,6)")
    assert "by a sample of the newest rows: of 2 values that did not fit so far, 1 would get a cell" in preview
    assert "of 201 cells that were looked at, 0 would not" in preview
    told = fresh.send(f"{path}/retype", column="properties_total", type="decimal(38,6)")
    assert "The type is being changed" in told
    assert "retype ordered by ann" in told
    carry_out(fresh.place)
    rows = fresh.place.query(
        "select properties_total as t from web.track_order_completed where message_id = 'o301'"
    ).to_pylist()
    assert str(rows[0]["t"]) == "1.500000"
    assert "properties_total became decimal(38,6), was bigint" in fresh.words(path)
    again = fresh.send(f"{path}/retype", 422, column="properties_total", type="decimal(38,6)")
    assert "properties_total is decimal(38,6) already" in again


def test_sql_reads_tables_and_nothing_else(browser: Browser) -> None:
    sql = "select event, count(*) as n from web.track_order_completed group by all"
    text = browser.words(f"/sql?q={sql}")
    assert "1 row ·" in text
    assert "Order Completed 203" in text
    csv = browser.client.get("/sql.csv", params={"q": sql})
    assert csv.text == "event,n\r\nOrder Completed,203\r\n"
    assert csv.headers["content-disposition"] == 'attachment; filename="rows.csv"'
    refused = browser.words("/sql?q=copy (select 1) to '/tmp/x'", 422)
    assert "a query only reads the tables of the lake" in refused
    assert "SELECT '<b>' AS x" in browser.words("/sql?q=SELECT '<b>' AS x")
    chart = browser.see("/sql?q=select * from (values ('a', 1), ('b', 2)) t(name, n)")
    assert '<svg class="chart"' in chart


def test_a_query_that_fails_says_what_to_do_on_this_page(browser: Browser) -> None:
    missing = browser.words("/sql?q=select * from web.track_order_complete", 422)
    assert "perhaps web.track_order_completed; the names of tables and columns are in the list of tables" in missing
    slow = "select count(*) from range(100000000) a, range(100000000) b where a.range % 7 = b.range % 11"
    with pytest.raises(TransientError) as ended:
        query(browser.place.lake("default"), slow, timeout=0.2, fixes=OVER_HTTP)
    assert ended.value.fix == "ask for fewer days, tables or columns at once"
    told = [missing, browser.words("/sql?q=copy (select 1) to '/tmp/x'", 422), browser.words("/sql.csv", 422)]
    for one in told:
        assert not re.search(r"--\w|eventlake \w+", one.partition("Ctrl Enter")[0]), one


def test_names_are_proposed_while_one_writes(browser: Browser) -> None:
    def proposed(word: str, sql: str = "", lake: str = "default") -> list[list[str]]:
        found: list[list[str]] = browser.client.get("/sql/names", params={"word": word, "q": sql, "lake": lake}).json()
        return found

    assert proposed("order") == [["web.track_order_completed", "table"]]
    assert proposed("web.track_o") == [["web.track_order_completed", "table"]]
    sql = "select properties_ from web.track_order_completed"
    assert ["properties_total", "bigint"] in proposed("properties_t", sql)
    assert proposed("total", sql)[0] == ["properties_total", "bigint"]
    assert proposed("properties_t") == []  # no table is named whose column it could be
    assert proposed("order", lake="mars") == []
    assert proposed("%") == []


def test_rows_that_a_spreadsheet_would_compute_are_marked_as_text(browser: Browser) -> None:
    csv = browser.client.get("/sql.csv", params={"q": "select '=1+1' as a, -5 as b, '-x' as c"})
    assert csv.text == "a,b,c\r\n'=1+1,-5,'-x\r\n"


def test_a_query_gives_its_first_thousand_rows(browser: Browser) -> None:
    assert "1,000 rows, and more" in browser.words("/sql?q=select * from range(1001)")
    assert "1,000 rows ·" in browser.words("/sql?q=select * from range(1000)")


def test_health_opens_a_day_to_its_sources_and_tables(browser: Browser) -> None:
    assert "2026-11-17 204 rows" in browser.words("/health")
    assert "web 204 100.0" in browser.words("/health")
    of_web = browser.words("/health?source=web&day=2026-11-17")
    assert "web.track_order_completed default 203 99.5" in of_web
    assert "No rows were loaded that day." in browser.words("/health?source=web&day=2026-11-01")


def test_rescued_values_are_counted_by_column(browser: Browser) -> None:
    assert "web.track_order_completed properties_total 2" in browser.words("/quality?view=rescued")


def test_search_finds_sources_tables_columns_and_runs(place: Workspace, browser: Browser) -> None:
    found = browser.words("/search?q=total")
    assert "column web.track_order_completed.properties_total" in found
    assert "source web" in browser.words("/search?q=web")
    assert "table web.track_order_completed" in browser.words("/search?q=order_com")
    run_id = place.runs.lines(1)[0].run_id
    assert f"run {run_id}" in browser.words(f"/search?q={run_id}")
    assert "Nothing has that in its name" in browser.words("/search?q=%25_%25zz")


# What can be done


def test_a_source_is_made_with_a_key_that_is_shown_once(fresh: Browser) -> None:
    told = fresh.send("/sources", slug="shop", name="Shop")
    key = re.search(r"shown this once: (\w{32})", told)
    assert key
    assert f"curl -u {key[1]}: http://127.0.0.1:8020/v1/track" in told
    assert fresh.place.sources.key_hashes()
    assert key[1] not in fresh.see("/sources/shop")
    assert "is not a slug" in fresh.send("/sources", 422, slug="No Slug!")
    again = fresh.send("/sources/shop/keys")
    assert "shown this once" in again
    first = fresh.place.sources.keys("shop")[0].hash
    assert "The key is revoked" in fresh.send("/sources/shop/keys/revoke", hash=first)
    assert [key.hash for key in fresh.place.sources.keys("shop")] != [first]
    assert "shop is switched off" in fresh.send("/sources/shop/enable", enabled="false")
    assert not fresh.place.sources.get("shop").enabled


def test_a_sync_is_ordered_and_carried_out(fresh: Browser) -> None:
    fresh.place._given = InProcess()
    told = fresh.send("/connections/ios/default/sync")
    assert "A sync was ordered" in told
    assert "sync ordered by ann" in told
    carry_out(fresh.place)
    assert "ios → default ✓ well" in fresh.words("/")
    assert "✓ Success" in fresh.words("/connections/ios/default")


def test_a_wrong_setting_is_told_beside_its_field_and_nothing_is_saved(fresh: Browser) -> None:
    told = fresh.send("/connections/web/default/settings", 422, schedule="whenever", lookback_days="7")
    assert "✕ 'whenever' is not a schedule: use every 2h" in told
    assert fresh.place.connections.get("web").settings.schedule == "every 2h"
    saved = fresh.send("/connections/web/default/settings", schedule="at 06:00", lookback_days="unlimited")
    assert "Saved: lookback_days, schedule." in saved
    settings = fresh.place.connections.get("web").settings
    assert (settings.schedule, settings.lookback_days) == ("at 06:00", None)
    (entry,) = fresh.place.audit_log.latest(1)
    assert (entry.who, entry.action, entry.target) == ("ann", "change settings", "web/default")
    assert entry.before == {"lookback_days": 7, "schedule": "every 2h"}
    assert entry.after == {"lookback_days": None, "schedule": "at 06:00"}


def test_a_setting_that_would_break_tables_is_changed_by_writing_them_anew(fresh: Browser) -> None:
    page = fresh.see("/connections/web/default")
    assert 'name="database"' not in page, "it cannot be saved like the others"
    assert "207 lines in 3 raw files" in words(page)
    here = "/connections/web/default/rebuild"
    wrong = fresh.send(here, 422, key="database", value="No!")
    assert "is not allowed" in wrong
    told = fresh.words(f"{here}?key=database&value=shop")
    assert re.search(r"This changes \d+ tables, reads 207 lines in 3 raw files \([^)]+\) and rewrites", told)
    assert "it takes about 1 s" in told
    assert "web.track_order_completed shop.track_order_completed" in told
    fresh.send(here, key="database", value="shop")
    carry_out(fresh.place)
    assert "shop.track_order_completed" in fresh.words("/tables")


def test_what_a_setting_would_change_is_told_before_it_does(fresh: Browser) -> None:
    here = "/connections/web/default/rebuild"
    told = fresh.words(f"{here}?key=date_partition&value=day")
    assert "The partition columns are day , no longer day, hr" in told
    assert re.search(r"segment_type=\S+/day=\S+ , no longer segment-data/data/src1/segment_type=\S+/hr=\d\d", told)
    assert "other names" not in told
    told = fresh.words(f"{here}?key=partition_by_slug&value=true")
    assert re.search(r"segment-data/data/web/\S+ , no longer segment-data/data/src1/", told)
    assert "partition columns" not in told
    told = fresh.words(f"{here}?key=table_naming&value=plain")
    assert "web.track_order_completed web.order_completed" in told
    assert "segment_type=order_completed" in told
    assert "Track events get new tables" in told
    assert "nothing would change" in fresh.words(f"{here}?key=database&value=web", 422)
    assert "no table depends on schedule" in fresh.words(f"{here}?key=schedule&value=manual", 422)
    assert "there is no setting 'datbase'; perhaps database" in fresh.words(f"{here}?key=datbase&value=x", 422)
    assert fresh.place.runs.lines(1)[0].kind != "rebuild"


def test_an_order_is_placed_once_and_one_that_fails_is_told_until_the_day_is_over(fresh: Browser) -> None:
    here = "/connections/web/default"
    for _ in range(2):
        fresh.send(f"{here}/rebuild", key="datePartition", value="day")  # as Segment calls it
    (order,) = fresh.place.orders.open()
    entry = fresh.place.audit_log.latest(1)[0]
    assert (entry.action, entry.before, entry.after) == (
        "order rebuild",
        {"date_partition": "day_hour"},
        {"settings": {"datePartition": "day"}},
    )
    assert order.kind == "rebuild"
    for path in fresh.place.archive.files("segment-logs/src1"):
        fresh.place.archive.delete(path.path)
    carry_out(fresh.place)
    told = fresh.words(here)
    assert "The rebuild that ann ordered" in told
    assert "no longer in the raw archive" in told
    assert "web: a rebuild that ann ordered failed" in fresh.words("/")
    run = fresh.words(f"/runs/{fresh.place.runs.lines(1)[0].run_id}")
    assert "It is not tried again by itself" in run
    assert "Sync now" not in run
    assert "nothing would change" in fresh.send(f"{here}/rebuild", 422, key="date_partition", value="day_hour")


def test_a_source_that_is_connected_nowhere_is_not_called_missing(fresh: Browser) -> None:
    for one in fresh.place.connections.all():
        fresh.place.connections.disconnect(one.full_name)
    assert "No source is connected to a lake." in fresh.words("/")


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("schedule", "/connections/web/default#settings"),
        ("look-back", "/connections/web/default#settings"),
        ("date partition", "/connections/web/default#danger"),
        ("web/def", "/connections/web/default"),
        ("plans", "/plans"),
    ],
)
def test_search_finds_settings_connections_and_pages(fresh: Browser, text: str, link: str) -> None:
    assert f'href="{link}"' in fresh.see(f"/search?q={text}")


def test_a_replay_is_counted_first(fresh: Browser) -> None:
    here = "/connections/web/default/replay"
    counted = fresh.words(f"{here}?start=2026-11-17&stop=&events=")
    assert "This would read 206 lines in 2 raw files" in counted  # the third has events of another day
    assert "is not a time" in fresh.words(f"{here}?start=yesterday&stop=&events=", 422)
    assert "has no table for the event 'Nothing'" in fresh.words(f"{here}?start=&stop=&events=Nothing", 422)
    assert "the period ends before it begins" in fresh.send(here, 422, start="2026-11-17", stop="2026-11-01", events="")
    assert "A replay was ordered" in fresh.send(here, start="2026-11-17", stop="", events="Order Completed")
    carry_out(fresh.place)
    assert fresh.place.runs.lines(1)[0].kind == "replay"


def test_a_connection_is_switched_copied_and_disconnected(fresh: Browser) -> None:
    assert "Switched off" in fresh.send("/connections/web/default/enable", enabled="false")
    assert "web/default is disabled" in fresh.send("/connections/web/default/sync", 422)
    fresh.send("/connections/web/default/enable", enabled="true")
    fresh.place.connections.change("web", {"schedule": "every 5m"})
    assert "The settings are those of web/default now" in fresh.send(
        "/connections/ios/default/copy", origin="web/default"
    )
    assert fresh.place.connections.get("ios").settings.schedule == "every 5m"
    assert "its tables stay" in fresh.send("/connections/ios/default/disconnect")
    assert "connected to the lake 'default' already" in fresh.send("/connections", 422, source="web", lake="default")
    assert "Connected" in fresh.send("/connections", source="ios", lake="default")


def test_the_test_of_a_connection_shows_each_step_as_it_ends(fresh: Browser) -> None:
    told = fresh.send("/connections/web/default/check")
    shown = [told]
    assert "● testing" in told
    assert "○ waits spark" in told
    again = fresh.send("/connections/web/default/check")  # which is the same test
    assert "● testing" in again
    deadline = time.monotonic() + 100
    while 'hx-trigger="every 500ms"' in (part := fresh.see("/connections/web/default/_check")):
        assert time.monotonic() < deadline
        shown.append(words(part))
        time.sleep(0.1)
    assert any("✓ passed storage: upload" in one and "● trying spark" in one for one in shown)
    assert "A sync has all that it needs" in words(part)
    assert "✓ passed spark local[*]" in words(part)
    assert "✓ passed spark local[*]" in fresh.words("/connections/web/default")  # also later


def test_a_test_that_fails_says_what_to_do(fresh: Browser) -> None:
    staging = fresh.place.folder / "lake" / "segment-data"
    shutil.rmtree(staging)
    staging.write_text("a file where a folder must be")
    fresh.send("/connections/web/default/check")
    deadline = time.monotonic() + 100
    while 'hx-trigger="every 500ms"' in (part := fresh.see("/connections/web/default/_check")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "A sync would not work" in words(part)
    assert "✕ failed storage: upload" in words(part)


def test_a_run_that_goes_on_shows_how_far_it_is_and_can_be_stopped(fresh: Browser) -> None:
    place = fresh.place
    runner = Slow()
    place._given = runner
    fresh.send("/connections/ios/default/sync")
    scheduler = Scheduler(place)
    scheduler.tick()
    assert runner.begun.wait(30)
    run = place.runs.lines(1)[0]
    live = fresh.see(f"/runs/{run.run_id}")
    assert "● stage" in live
    assert 'hx-trigger="every 500ms"' in live
    assert "It will stop in a moment" in fresh.send(f"/runs/{run.run_id}/stop")
    scheduler._threads.shutdown(wait=True)
    ended = fresh.see(f"/runs/{run.run_id}/_run")
    assert "hx-trigger" not in ended
    assert "Somebody stopped it" in words(ended)
    assert "Stopped" in words(ended)
    assert re.search(r"ios → default \S stopped", fresh.words("/connections"))


def test_alerts_are_subscribed_to_and_tried(fresh: Browser) -> None:
    assert "Nobody is told yet" in fresh.words("/alerts")
    fresh.send("/alerts/subscribe", kind="no_data", channel="ops", source="web", threshold="3")
    text = fresh.words("/alerts")
    assert "no_data Nothing was loaded for this many hours. web 3.0 ops" in text
    assert "'x' is not a number" in fresh.send("/alerts/subscribe", 422, kind="no_data", channel="ops", threshold="x")
    assert "there is no channel" in fresh.send("/alerts/subscribe", 422, kind="no_data", channel="nobody")
    assert "ops did not take it" in fresh.send("/alerts/test", 422, channel="ops")
    (one,) = fresh.place.alerts.subscriptions()
    fresh.send("/alerts/unsubscribe", id=one.id)
    assert fresh.place.alerts.subscriptions() == []
    assert "s3cr3t-of-ops" not in fresh.see("/alerts")


# Who may


def test_who_may_only_look_is_offered_nothing_else_and_refused_it(place: Workspace) -> None:
    reader = Browser(place, requests_per_second=0).sign_in("ron", Scope.READ)
    assert "Sync now" not in reader.words("/connections/web/default")
    assert "Add a source" not in reader.words("/sources")
    assert "Audit log" not in reader.words("/settings")
    for path in ("/connections/web/default/sync", "/sources", "/settings/token", "/runs/1/stop", "/alerts/test"):
        assert "may read, and this needs" in reader.send(path, 403)
    operator = Browser(place, requests_per_second=0).sign_in("olga", Scope.OPERATE)
    assert "Sync now" in operator.words("/connections/web/default")
    assert "may operate, and this needs admin" in operator.send("/connections/web/default/settings", 403)


def test_forms_of_other_sites_and_sessions_are_refused(place: Workspace, browser: Browser) -> None:
    answer = browser.client.post("/connections/web/default/enable", data={"enabled": "false"})
    assert answer.status_code == 403
    assert "from another session" in words(answer.text)
    token = re.search(r'name="csrf" value="([^"]+)"', browser.see("/"))
    assert token
    answer = browser.client.post(
        "/connections/web/default/enable",
        data={"enabled": "false", "csrf": token[1]},
        headers={"origin": "https://evil.example"},
    )
    assert answer.status_code == 403
    assert place.connections.get("web").enabled


def test_signing_in_and_out(place: Workspace) -> None:
    Browser(place, requests_per_second=0).sign_in("dora")
    browser = Browser(place, requests_per_second=0)
    wrong = browser.client.post("/sign-in", data={"name": "dora", "password": "wrong"})
    assert wrong.status_code == 403
    assert "the name or the password is wrong, or the name is locked" in wrong.text
    nobody = browser.client.post("/sign-in", data={"name": "nobody", "password": "wrong"})
    assert words(nobody.text) == words(wrong.text)  # it does not tell whether there is such a user
    answer = browser.client.post(
        "/sign-in", data={"name": "dora", "password": PASSWORD, "next": "/runs"}, follow_redirects=False
    )
    assert answer.headers["location"] == "/runs"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    browser.see("/runs")
    browser.send("/sign-out")
    assert "Sign in to eventlake" in browser.see("/runs")


@pytest.mark.parametrize(
    "onward", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "//["]
)
def test_nobody_is_led_elsewhere_after_signing_in(place: Workspace, onward: str) -> None:
    if not any(user.name == "eve" for user in place.people.users()):
        Browser(place).sign_in("eve")
    answer = Browser(place, requests_per_second=0).client.post(
        "/sign-in", data={"name": "eve", "password": PASSWORD, "next": onward}, follow_redirects=False
    )
    assert answer.headers["location"] == "/"


def test_too_many_wrong_passwords_lock_a_name_for_a_while(fresh: Browser) -> None:
    clock = fresh.place.clock
    assert isinstance(clock, SetClock)
    stranger = Browser(fresh.place, requests_per_second=0)
    wrong = [stranger.client.post("/sign-in", data={"name": "ann", "password": "wrong"}) for _ in range(5)]
    right = stranger.client.post("/sign-in", data={"name": "ann", "password": PASSWORD})
    assert right.status_code == 403
    assert words(right.text) == words(wrong[0].text)  # whoever guesses does not learn that this one was right
    clock.forward(hours=0.02)
    assert stranger.client.post("/sign-in", data={"name": "ann", "password": PASSWORD}).status_code == 200


def test_many_guesses_at_once_are_counted_as_many(fresh: Browser) -> None:
    people = fresh.place.people
    refused = 0
    with ThreadPoolExecutor(12) as threads:
        for error in threads.map(lambda _: _refusal(people), range(24)):
            refused += isinstance(error, SignInRefusedError)
    assert refused == 24
    with pytest.raises(SignInRefusedError):
        people.sign_in("ann", PASSWORD)


def _refusal(people: People) -> Exception | None:
    try:
        people.sign_in("ann", "a guess")
    except SignInRefusedError as error:
        return error
    return None


def test_a_link_makes_one_user_once(fresh: Browser) -> None:
    text = fresh.send("/settings/invite", role="operate")
    link = re.search(r"http://127.0.0.1:8021(/welcome/\S+)", text)
    assert link
    guest = Browser(fresh.place, requests_per_second=0)
    assert "makes you a user who may look at everything, and start and stop runs" in guest.words(link[1])
    short = guest.client.post(link[1], data={"name": "gus", "password": "short"})
    assert "at least 12 characters" in short.text
    assert guest.client.post(link[1], data={"name": "gus", "password": PASSWORD}).status_code == 200
    assert re.search(r"gus\s*<span class=\"dim\">\(operate\)", guest.see("/"))
    assert "was used already" in Browser(fresh.place).words(link[1], 404)
    assert "the only administrator" in fresh.send("/settings/remove-user", 422, name="ann")
    assert "the only administrator" in fresh.send("/settings/role", 422, name="ann", role="read")
    fresh.send("/settings/role", name="gus", role="admin")
    guest.send("/settings/token", name="of gus", scope="admin")
    fresh.send("/settings/role", name="gus", role="operate")
    assert fresh.place.people.tokens() == []  # it could do more than who made it
    fresh.send("/settings/role", name="gus", role="admin")
    guest.send("/settings/token", name="of gus", scope="read")
    fresh.send("/settings/remove-user", name="gus")
    assert fresh.place.people.tokens() == []
    assert "Sign in" in guest.see("/")  # and is signed out


def test_a_password_is_changed_by_who_knows_it(fresh: Browser) -> None:
    assert "the name or the password is wrong" in fresh.send("/settings/password", 422, old="wrong", new=PASSWORD + "2")
    fresh.send("/settings/password", old=PASSWORD, new=PASSWORD + "2")
    assert "Sign in to eventlake" in fresh.see("/")
    answer = fresh.client.post("/sign-in", data={"name": "ann", "password": PASSWORD + "2"})
    assert "Overview" in answer.text


def test_tokens_are_shown_once_and_everything_is_in_the_audit_log(fresh: Browser) -> None:
    text = fresh.send("/settings/token", name="airflow", scope="operate")
    secret = re.search(r"shown this once: (el_\S+)", text)
    assert secret
    page = fresh.see("/settings")
    assert secret[1] not in page
    assert "ann add token airflow" in words(page)
    token = fresh.place.people.tokens()[0]
    fresh.send("/settings/revoke-token", id=token.id)
    assert fresh.place.people.token(secret[1]) is None


def test_what_every_answer_bears(browser: Browser) -> None:
    for path in ("/", "/static/console.css", "/api/v1/openapi.json", "/nothing"):
        headers = browser.client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
    assert browser.client.get("/").headers["cache-control"] == "no-store"


def test_it_answers_only_to_its_own_names_and_to_requests_of_a_size(browser: Browser) -> None:
    assert browser.client.get("/", headers={"host": "evil.example"}).status_code == 421
    assert browser.client.get("/", headers={"host": "localhost:8021"}).status_code == 200
    too_much = b"x" * (MOST_BYTES + 1)
    assert browser.client.post("/sign-in", content=too_much).status_code == 413
    assert browser.client.post("/sign-in", content=iter([too_much])).status_code == 413  # nobody says how long it is
    assert browser.client.post("/sign-in", content=b"x" * MOST_BYTES).status_code == 403


def test_odd_requests_are_answered(browser: Browser) -> None:
    assert browser.client.get("/sign-in?next=//[").status_code == 200
    assert browser.client.post("/sign-in", data={"name": "x"}, headers={"origin": "http://["}).status_code == 403
    fields = "&".join(f"f{number}=1" for number in range(300))
    assert browser.client.post("/sign-in", content=fields).status_code == 422
    for odd in ("'infinity'::timestamp", "'-infinity'::date", "'0044-03-15 (BC)'::date", "'294000-01-01'::timestamp"):
        assert browser.client.get("/sql", params={"q": f"select {odd} as t"}).status_code == 200
        assert browser.client.get("/sql.csv", params={"q": f"select {odd} as t"}).status_code == 200


def test_no_link_can_put_words_into_the_consoles_mouth(browser: Browser) -> None:
    assert "Call 555" not in browser.words("/sources?told=Call 555")


def test_each_connection_shows_its_own_numbers(tmp_path: Path) -> None:
    place = full_place(tmp_path / "place", settings='[lakes.second]\nroot = "second"\n')
    place.connections.connect("web", "second")
    text = Browser(place, requests_per_second=0).sign_in().words("/")
    assert re.search(r"web → default ✓ well .*? 0 0 1 2 204", text)
    assert re.search(r"web → second ○ waiting for first events \S with the first events 0 0 0 0 0", text)
    place.close()


def test_whoever_asks_too_often_is_told_to_wait(place: Workspace) -> None:
    browser = Browser(place, requests_per_second=2)
    answers = [browser.client.get("/welcome/x") for _ in range(4)]
    assert [one.status_code for one in answers] == [404, 404, 429, 429]
    assert int(answers[-1].headers["retry-after"]) >= 1
    quick = Browser(place, requests_per_second=50)
    with ThreadPoolExecutor(8) as threads:  # at once: each attempt takes a while, on a busy machine half a second
        tries = threads.map(lambda _: quick.client.post("/sign-in", data={"name": "x", "password": "y"}), range(8))
        assert {one.status_code for one in tries} == {403, 429}


def test_a_page_is_light(browser: Browser) -> None:
    static = sum(
        len(browser.client.get(f"/static/{name}").content) for name in ("console.css", "console.js", "htmx.min.js")
    )
    empty = len(browser.see("/alerts"))
    assert static + empty < 150_000


def test_what_is_not_reached_does_not_break_a_page(tmp_path: Path) -> None:
    place = full_place(tmp_path / "place")
    browser = Browser(place, requests_per_second=0).sign_in()
    for path in (tmp_path / "place" / "lake" / "segment-data" / "data").rglob("*.parquet"):
        path.write_bytes(b"broken")
    assert "The values cannot be shown" in browser.words("/tables/default/web.track_order_completed/_columns")
    assert "properties_total" in browser.words("/tables/default/web.track_order_completed")
    place._given = Failing()
    place.close()


def test_people_are_kept_out_without_being_shown(place: Workspace, browser: Browser) -> None:
    told = browser.send("/privacy/suppress", subjects="u-hidden-1\n\n u-hidden-2 \n", path="userId", source="")
    assert "2 subjects added" in told
    browser.send("/privacy/suppress", subjects="a@hidden.example", path="traits.email", source="web")
    shown = browser.words("/privacy")
    assert "userId all sources 2" in shown
    assert "traits.email web 1" in shown
    assert "hidden" not in shown
    assert "On the list, for all sources." in browser.send("/privacy/look-up", subject="u-hidden-1", path="userId")
    assert "On the list, for web." in browser.send("/privacy/look-up", subject="a@hidden.example", path="traits.email")
    assert "Not on the list." in browser.send("/privacy/look-up", subject="u-hidden-3", path="userId")
    assert place.suppressions.of_source("src1").hides({"userId": "u-hidden-2"})
    assert "1 subject removed" in browser.send("/privacy/let-in", subjects="u-hidden-2", path="userId", source="")
    assert not place.suppressions.of_source("src1").hides({"userId": "u-hidden-2"})
    assert "nobody is named" in browser.send("/privacy/suppress", 422, subjects=" ", path="userId")
    assert "is not a path" in browser.send("/privacy/suppress", 422, subjects="x", path="a..b")
    assert "hidden" not in str([entry for entry in place.audit_log.latest() if "suppress" in entry.action])
    place.suppressions.remove(["u-hidden-1"])
    place.suppressions.remove(["a@hidden.example"], "traits.email", "src1")


def test_who_may_only_look_suppresses_nobody(place: Workspace) -> None:
    looker = Browser(place, requests_per_second=0).sign_in("pat", Scope.READ)
    assert "Suppress, or let in again" not in looker.words("/privacy")
    looker.send("/privacy/suppress", 403, subjects="x", path="userId")
    looker.send("/privacy/let-in", 403, subjects="x", path="userId")
