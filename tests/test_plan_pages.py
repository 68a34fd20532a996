"""The console's pages about plans, violations and transformations."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from consoles import HOSTILE, Browser, full_place, order, put
from eventlake.control.people import Scope
from eventlake.schedule.scheduler import Scheduler


def plan(**types: str) -> str:
    """A plan of orders, as somebody pastes it."""
    members = {name: {"type": kind} for name, kind in types.items()}
    inner = {"type": "object", "properties": members, "required": ["total"]}
    schema = {"type": "object", "properties": {"properties": inner}}
    rules = [{"type": "TRACK", "key": "Order Completed", "jsonSchema": schema}]
    return json.dumps({"name": f"Shop {HOSTILE}", "rules": rules})


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    place = full_place(tmp_path / "place")
    yield Browser(place, requests_per_second=0).sign_in()
    place.close()


def plan_id(browser: Browser) -> str:
    return browser.place.plans.all()[0].id


def test_a_plan_is_imported_compared_with_its_versions_and_deleted(browser: Browser) -> None:
    assert "No plan yet" in browser.words("/plans")
    assert "version 1, 1 rule." in browser.send("/plans", content=plan(total="number", coupon="string"))
    shown = browser.send("/plans", content=plan(total="string", coupon="string"))
    assert "± changed TRACK 'Order Completed' properties.properties.properties.total.type" in shown
    assert '"number" "string"' in shown
    assert "TRACK Order Completed total*, coupon" in shown
    here = f"/plans/{plan_id(browser)}"
    assert "twice the same" in browser.words(f"{here}?old=2&new=2")
    assert "version 1 of 2" in browser.words(f"{here}?new=1")
    assert "is not a version" in browser.words(f"{here}?old=x", 422)
    browser.see(f"{here}?old=7", 404)
    assert "<script>alert" not in browser.see(here) + browser.see("/plans")
    told = browser.send("/plans", 422, content="{", name="")
    assert "not JSON" in told
    assert "give it one" in browser.send("/plans", 422, content="Event Name,Property Name\nA,b", name=" ")
    csv = "Event Type,Event Name,Property Name,Property Data Type\ntrack,Signed Up,plan,string\n"
    assert "From CSV: version 1, 1 rule." in browser.send("/plans", content=csv, name="From CSV")
    assert "The plan is forgotten." in browser.send(f"{here}/delete")
    assert HOSTILE not in browser.words("/plans")


def test_a_source_gets_a_plan_enforces_it_and_its_violations_are_shown_with_samples(browser: Browser) -> None:
    browser.send("/plans", content=plan(total="number", coupon="string"))
    assert "none: everything gets in" in browser.words("/plans")
    browser.send("/sources/web/rules/plan", plan=plan_id(browser))
    settings = {"track.allowEventOnViolations": "false", "forwardingBlockedEventsTo": "src2", "unknown": "1"}
    assert "Saved." in browser.send("/sources/web/rules/enforcement", 200, **settings)
    text = browser.see("/sources/web/rules")
    assert re.search(r'name="track.allowEventOnViolations">.*?<option value="false" selected>block the event', text)
    assert '<option value="src2" selected>ios' in text
    wrong = browser.send("/sources/web/rules/enforcement", 422, **{"track.allowEventOnViolations": "maybe"})
    assert "use true or false" in wrong

    put(browser.place, "src1", "d", [order(400, total="a lot"), order(401, total=4), order(402, total="<b>it's</b>")])
    browser.place.sync("web")
    shown = browser.words("/quality?view=violations&source=web")
    assert "web Order Completed properties.total Invalid Type ✕ blocked 2" in shown
    link = re.search(r'<td class="n"><a href="([^"]+)">2</a>', browser.see("/quality?view=violations"))
    assert link
    samples = browser.see(link[1].replace("&amp;", "&"))
    assert "a lot" in samples
    assert "&lt;b&gt;it&#39;s&lt;/b&gt;" in samples
    assert "Nothing: every event of ios is as planned" in browser.words("/quality?view=violations&source=ios&days=1")
    assert '<a href="/quality?view=blocked&amp;day=2026-11-17"><b>2</b>' in browser.see("/")
    assert "web → default schema violation 2 which, and why" in browser.words("/quality?view=blocked&day=2026-11-17")

    browser.send("/sources/web/rules/enforcement", 200, **{"track.allowEventOnViolations": "true"})
    browser.send("/sources/ios/rules/release", 404)  # nothing of it was blocked
    assert "Ordered: a replay" in browser.send("/sources/web/rules/release")
    scheduler = Scheduler(browser.place)
    scheduler.tick()
    scheduler._threads.shutdown(wait=True)
    (row,) = browser.place.query(
        "select count(*) as n from web.track_order_completed where message_id = 'o400'"
    ).to_pylist()
    assert row == {"n": 1}
    browser.send("/sources/web/rules/plan", plan="")
    assert "none: everything gets in" in browser.words("/plans")


def transformation(**more: Any) -> str:
    return json.dumps({"name": f"buy {HOSTILE}", "if": "event = 'Order Completed'", **more})


def test_a_transformation_is_previewed_saved_edited_and_removed(browser: Browser) -> None:
    here = "/sources/web/rules"
    assert "None: events get in as they were sent." in browser.words(here)
    assert "the last 1,000 events" in browser.words(here)
    seen = browser.send(f"{here}/transformations/preview", content=transformation(newEventName="Bought"))
    assert "204 of the last 205 events would be changed" in seen
    assert 'event "Order Completed" "Bought"' in seen
    dropped = browser.send(f"{here}/transformations/preview", content=transformation(drop=True))
    assert "0 of the last 205 events would be changed, 204 dropped." in dropped
    assert "None: events" in browser.words(here)  # a preview changes nothing
    assert "not JSON" in browser.send(f"{here}/transformations/preview", 422, content="{")
    csrf = re.search(r'name="csrf" value="([^"]+)"', browser.see("/settings"))
    assert csrf
    part = browser.client.post(
        f"{here}/transformations/preview",
        data={"csrf": csrf[1], "content": '{"name": "x", "if": "event ="}'},
        headers={"hx-request": "true"},
    )
    assert part.status_code == 200  # or a script would not show it
    assert "at character" in part.text
    assert "<html" not in part.text

    key = {"hashPropertiesConfiguration": {"key": "s3cr3t", "paths": ["coupon"]}}
    assert "saved" in browser.send(f"{here}/transformations", content=transformation(newEventName="Bought", **key))
    (made,) = browser.place.plans.transformations.of_source("src1")
    page = browser.see(f"{here}?edit={made.id}")
    assert "Bought" in page
    assert "s3cr3t" not in page
    assert "<script>alert" not in page
    text = re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.S)
    assert text
    edited = json.loads(
        text[1]
        .replace("&#34;", '"')
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
    )
    browser.send(f"{here}/transformations", content=json.dumps({**edited, "newEventName": "Sold"}))
    (made,) = browser.place.plans.transformations.of_source("src1")
    assert made.new_event_name == "Sold"
    assert made.hash_properties_configuration
    assert made.hash_properties_configuration.key == "s3cr3t"
    assert "is off." in browser.send(f"{here}/transformations/switch", id=made.id, enabled="false")
    assert "Switch on" in browser.words(here)
    assert "is on." in browser.send(f"{here}/transformations/switch", id=made.id, enabled="true")
    assert "is removed" in browser.send(f"{here}/transformations/remove", id=made.id)
    assert "None: events" in browser.words(here)


def test_who_may_only_look_sees_rules_and_changes_none(browser: Browser) -> None:
    browser.send("/plans", content=plan(total="number"))
    looker = Browser(browser.place, requests_per_second=0).sign_in("eve", Scope.READ)
    assert "Import a plan" not in looker.words("/plans")
    page = looker.see("/sources/web/rules")
    assert '<select id="plan" name="plan" disabled>' in page
    assert ">Save</button>" not in page
    here = "/sources/web/rules"
    for path in (
        "/plans",
        f"/plans/{plan_id(browser)}/delete",
        f"{here}/plan",
        f"{here}/enforcement",
        f"{here}/release",
    ):
        looker.send(path, 403)
    for path in ("", "/switch", "/remove"):
        looker.send(f"{here}/transformations{path}", 403)
    assert "would be changed" in looker.send(f"{here}/transformations/preview", content=transformation(drop=True))
