"""Numbers of the console lead to what they count, and it is as many."""

import html
import re
from collections.abc import Iterator

import pytest

from consoles import Browser, full_place, order, put
from eventlake.control.collected import Taken
from eventlake.library import Workspace
from eventlake.policies.plan import Rule, of_rules
from runner_without_spark import InProcess

_TWO_LAKES = '[lakes.second]\nroot = "second"\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """Two lakes, in which events went all the ways there are."""
    found = full_place(tmp_path_factory.mktemp("counted") / "place", settings=_TWO_LAKES)
    inner = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
    schema = {"type": "object", "properties": {"properties": inner}}
    found.plans.save(of_rules("Shop", [Rule("TRACK", schema, "Order Completed")]))
    found.plans.connect("Shop", "src1")
    found.plans.enforce("src1", {"track.allowEventOnViolations": "false"})
    found.suppressions.add(["hidden"])
    put(found, "src1", "d", [order(400, total="a lot"), order(401) | {"userId": "hidden"}, order(2), order(3), "bad"])
    found.connections.connect("web", "second")
    found.connections.change("web/second", {"select": "-track_script_*"})
    found._given = InProcess()
    found.sync("web/default")
    found.sync("web/second")
    found.collected.begin("here", found.clock.now(), {"src1": Taken(0, 0, 0)})
    found.collected.note("here", found.clock.now(), {"src1": Taken(210, 12, 3)})
    yield found
    found.close()


@pytest.fixture(scope="module")
def browser(place: Workspace) -> Browser:
    return Browser(place, requests_per_second=0).sign_in()


def steps(text: str) -> dict[str, tuple[int, str]]:
    """The numbers of a funnel that are links, and where they lead."""
    found = re.findall(r'<a href="([^"]+)"><b>([\d,]+)</b><span class="small">([^<]+)<', text)
    return {name: (int(number.replace(",", "")), html.unescape(link)) for link, number, name in found}


def counted(browser: Browser, name: str, link: str) -> str:
    """What a list says it has of something."""
    text = browser.words(link)
    if name == "loaded":
        (number,) = re.findall(r"2026-11-17 ([\d,]+) rows?", text) or re.findall(r", ([\d,]+) loaded in all", text)
        return str(number)
    word = {"quarantined": r"lines? of ([\d,]+) of 2026", "rescued values": r"([\d,]+) rescued values"}
    word["rescued"] = word["rescued values"]
    word |= {"blocked": r"([\d,]+) blocked", "lines read": r", ([\d,]+) lines in all"}
    (number, *_) = re.findall(word.get(name, rf", ([\d,]+) {name} in all"), text)
    return str(number)


@pytest.mark.parametrize("page", ["/", "/sources/web"])
def test_each_number_of_a_funnel_leads_to_as_many(browser: Browser, page: str) -> None:
    found = steps(browser.see(page))
    books = ["lines read", "suppressed", "blocked", "duplicates", "quarantined", "loaded", "rescued values"]
    assert set(found) == {"received", "refused", "accepted", *books}
    assert found["lines read"][0] == sum(found[name][0] for name in books[1:-1])
    for name in books:
        number, link = found[name]
        assert counted(browser, name, link) == f"{number:,}", (name, link)
    assert "Last events" in browser.words(steps(browser.see("/sources/web"))["received"][1])
    assert "did not take" in browser.words(found["refused"][1])


def test_each_connection_counts_what_went_which_way_and_leads_there(place: Workspace, browser: Browser) -> None:
    text = browser.see("/")
    headings = re.findall(r"<th[^>]*>([^<]+)</th>", text.partition("<h2>Connections")[2])
    names = ["Suppressed", "Blocked", "Duplicates", "Quarantined", "Loaded", "Rescued"]
    assert headings[-6:] == names
    books = place.runs.counts(0, 2**62, per=2**61)
    for lake in ("default", "second"):
        row = re.search(rf'<a href="/connections/web/{lake}">.*?</tr>', text, re.S)
        assert row
        cells = re.findall(r'<td class="n">(.*?)</td>', row[0])[-6:]
        (counts,) = [one for (_, source, of), one in books.items() if (source, of) == ("src1", lake)]
        numbers = [
            counts.suppressed,
            counts.blocked,
            counts.duplicates,
            counts.quarantined,
            counts.loaded,
            counts.rescued,
        ]
        for name, number, cell in zip(names, numbers, cells, strict=True):
            if (name, lake) == ("Rescued", "second"):  # what would not fit was blocked
                assert cell == '<span class="dim">0</span>'
                continue
            assert number > 0, name
            link = re.fullmatch(r'<a href="([^"]+)">([\d,]+)</a>', cell)
            assert link
            assert link[2] == f"{number:,}"
            assert counted(browser, name.lower(), html.unescape(link[1])) == f"{number:,}", (name, lake)


def test_quality_shows_all_lakes_or_one_and_its_tabs_keep_it(browser: Browser) -> None:
    both = browser.words("/quality")
    assert "web default not_json" in both
    assert "web second not_json" in both
    one = browser.see("/quality?lake=second&source=web&day=2026-11-17")
    assert "<option selected>second</option>" in one
    assert ">default</td>" not in one
    for view in ("rescued", "blocked", "violations", "refused"):
        assert f'href="/quality?view={view}&amp;source=web&amp;lake=second&amp;day=2026-11-17"' in one
    assert "No line is in quarantine from 2026-11-01" in browser.words("/quality?day=2026-11-01")
    violations = browser.words("/quality?view=violations&days=30")
    assert re.search(r"web default Order Completed .* blocked 1", violations)
    assert re.search(r"web second Order Completed .* blocked 1", violations)
    assert " default Order" not in browser.words("/quality?view=violations&days=30&lake=second")


def test_what_was_blocked_is_told_by_reason(browser: Browser) -> None:
    text = browser.words("/quality?view=blocked&lake=second")
    assert "web → second schema violation 3 which, and why" in text
    assert "web → second not selected 1 its settings" in text


def test_runs_are_chosen_by_day_lake_and_what_they_counted(browser: Browser) -> None:
    second = browser.see("/runs?lake=second&day=2026-11-17&having=duplicates")
    assert "Duplicates</th>" in second
    assert browser.words("/runs?lake=second&day=2026-11-17").count("✓ Success") == 1
    assert "No run is like that" in browser.words("/runs?day=2026-11-16")
    assert "1 of web on 2026-11-17 (UTC), 1 suppressed in all" in browser.words(
        "/runs?connection=web&lake=default&day=2026-11-17&having=suppressed"
    )
    browser.see("/runs?day=no&having=run_id&lake=")  # whatever an address says
