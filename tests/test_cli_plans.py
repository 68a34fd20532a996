"""`eventlake plan` and `eventlake transform`, as people and scripts meet them."""

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import track
from test_cli import Folder, failed, ndjson

ORDERS = [
    track("Order Completed", "m1", receivedAt="2026-11-14T10:00:00Z", properties={"total": 5, "mail": "a@b.de"}),
    track("Order Completed", "m2", receivedAt="2026-11-15T10:00:00Z", properties={"total": 7, "mail": "b@b.de"}),
    track("Order Completed", "m3", receivedAt="2026-11-15T11:00:00Z", properties={"total": "much"}),
    track("Signed Up", "m4", receivedAt="2026-11-15T12:00:00Z"),
]


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A source of which the archive has some events, and the lake none."""
    base = tmp_path_factory.mktemp("plans")
    Folder(base).ask("init", "place")
    folder = Folder(base / "place")
    folder.ask("source", "add", "web", "--id", "src1")
    for day in ("2026-11-14", "2026-11-15"):
        file = base / "events" / "src1" / day / "raw"
        file.parent.mkdir(parents=True)
        file.write_bytes(ndjson(*(one for one in ORDERS if one["receivedAt"].startswith(day))))
        folder.ask("import", "web", str(file))
    return folder


@pytest.fixture
def folder(sent: Folder, tmp_path: Path) -> Folder:
    return sent.copy(tmp_path / "place")


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"properties": {"type": "object", "properties": properties}}}


def plan_file(folder: Folder, **properties: Any) -> str:
    rules = [{"type": "TRACK", "key": "Order Completed", "version": 1, "jsonSchema": schema(**properties)}]
    (folder.path / "shop.json").write_text(json.dumps({"name": "Shop", "type": "LIVE", "rules": rules}))
    return "shop.json"


def test_a_plan_is_inferred_imported_corrected_compared_and_exported(folder: Folder) -> None:
    assert "2 rules" in folder.ask("plan", "infer", "web", "inferred.json", "--name", "Inferred").out
    inferred = {
        rule["key"]: rule["jsonSchema"] for rule in json.loads((folder.path / "inferred.json").read_text())["rules"]
    }
    total = inferred["Order Completed"]["properties"]["properties"]["properties"]["total"]
    assert total["type"] == ["integer", "string"]
    assert "1 rule" in folder.ask("plan", "infer", "web", "day.json", "--to", "2026-11-15").out
    assert "Inferred: version 1, 2 rules" in folder.ask("plan", "import", "inferred.json").out
    assert "Shop: version 1, 1 rule" in folder.ask("plan", "import", plan_file(folder, total={"type": "number"})).out
    told = folder.ask("plan", "import", plan_file(folder, total={"type": "number", "minimum": 0})).out
    assert "Shop: version 2" in told
    (change,) = folder.ask("plan", "diff", "Shop", "1", "--json").value
    assert "minimum" in json.dumps(change)
    folder.ask("plan", "connect", "Shop", "web")
    listed = {one["name"]: one for one in folder.ask("plan", "list", "--json").value}
    assert (listed["Shop"]["version"], listed["Shop"]["sources"], listed["Inferred"]["sources"]) == (2, ["web"], [])
    exported = folder.ask("plan", "export", "Shop", "shop.csv")
    assert "A spreadsheet has no place for minimum, which the plan has; .json has all." in exported.err
    assert "no place" not in folder.ask("plan", "export", "Shop", "shop.csv", "--version", "1").err
    assert "Copy: version 1, 1 rule" in folder.ask("plan", "import", "shop.csv", "--name", "Copy").out
    assert "Shop" in folder.refused("plan", "delete", "Shop")  # a source has it
    folder.ask("plan", "disconnect", "web")
    folder.ask("plan", "delete", "Shop")
    assert {one["name"] for one in folder.ask("plan", "list", "--json").value} == {"Copy", "Inferred"}


def test_a_plan_is_tried_on_what_was_sent(folder: Folder) -> None:
    file = plan_file(folder, total={"type": "number"}, mail={"type": "string"})
    assert "1 rule, each can be used" in folder.ask("plan", "check", file).out
    answer = folder.run_here("plan", "check", file, "--source", "web", "--json")
    assert answer.code == 1
    found = json.loads(answer.out)
    assert found["events"] == 4
    wrong = [(one["event"], one["type"], one["field"], one["events"]) for one in found["violations"]]
    assert ("Order Completed", "Invalid Type", "properties.total", 1) in wrong
    before = folder.run_here("plan", "check", file, "--source", "web", "--to", "2026-11-15", "--json")
    assert (before.code, json.loads(before.out)["events"]) == (0, 1)
    later = folder.run_here("plan", "check", file, "--source", "web", "--from", "2026-11-15T11:30:00Z", "--json")
    assert json.loads(later.out)["events"] == 1
    shown = folder.run_here("plan", "check", file, "--source", "web", "--to", "2026-11-15")
    assert "1 event tried; blocked: none" in shown.out


def test_a_raw_file_whose_folder_names_no_day_is_read_whatever_the_period(folder: Folder, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / "raw"
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(ndjson(track("Elsewhere", "m9", receivedAt="2026-11-15T12:00:00Z")))
    folder.ask("import", "web", "--in-place", str(elsewhere.parent))
    file = plan_file(folder)
    found = folder.run_here("plan", "check", file, "--source", "web", "--from", "2026-11-15T11:30:00Z", "--json")
    assert json.loads(found.out)["events"] == 2


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('track,A,"x,number\n', "line 2"),
        ("track,A,x,number,more,and more\n", "line 2: there are 6 cells, and 4 columns"),
        ("track,A,x,number\ntrack,A,x,string\n", "line 3: 'x' is in line 2 already"),
        ("track,A,x,nothing\n", "line 2: 'nothing' is no data type"),
    ],
)
def test_a_spreadsheet_that_cannot_be_right_is_told_with_its_line(folder: Folder, content: str, told: str) -> None:
    (folder.path / "p.csv").write_text("Event Type,Event Name,Property Name,Property Data Type\n" + content)
    assert told in " ".join(folder.refused("plan", "import", "p.csv").split())


def test_too_many_names_to_make_a_plan_of_are_told(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "many").write_bytes(ndjson(*(track(f"E{number}", f"x{number}") for number in range(10_001))))
    folder.ask("import", "web", str(tmp_path / "many"))
    assert "rules" in folder.refused("plan", "infer", "web", "p.json")


def test_what_was_blocked_is_let_in_when_the_plan_is_corrected(folder: Folder) -> None:
    folder.ask("plan", "import", plan_file(folder, total={"type": "number"}))
    folder.ask("plan", "connect", "Shop", "web")
    folder.ask("plan", "enforce", "web", "track.allowEventOnViolations=false", "track.allowUnplannedEvents=false")
    assert folder.ask("plan", "enforce", "web", "--json").value["track"]["allowUnplannedEvents"] is False
    (head, *_) = folder.ask("sync", "--json").lines
    assert (head["books"]["loaded"], head["blocked_by"]) == (2, {"schema violation": 1, "unplanned event": 1})
    folder.ask("plan", "import", plan_file(folder, total={"type": ["number", "string"]}))
    (head, *_) = folder.ask("plan", "release", "web", "--json").lines
    assert (head["books"]["loaded"], head["replay"]) == (1, True)
    assert [
        row["message_id"] for row in folder.query("select message_id from web.track_order_completed order by 1")
    ] == [*("m1", "m2", "m3")]


def test_a_transformation_is_tried_added_switched_and_removed(folder: Folder) -> None:
    rename = {"name": "short", "if": "event = 'Order Completed'", "newEventName": "Order"}
    hashed = {
        "name": "hash",
        "if": "type = 'track'",
        "hashPropertiesConfiguration": {"paths": ["mail"], "key": "s3cret"},
    }
    (folder.path / "both.json").write_text(json.dumps([rename, hashed]))
    tried = folder.ask("transform", "preview", "web", "both.json", "--json").value
    assert (tried["events"], tried["changed"], tried["dropped"]) == (4, 3, 0)
    assert "s3cret" not in json.dumps(tried)
    folder.ask("transform", "add", "web", "both.json")
    listed = folder.ask("transform", "list", "web", "--json")
    assert [(one["name"], one["if"]) for one in listed.value] == [(one["name"], one["if"]) for one in (rename, hashed)]
    assert "s3cret" not in listed.out + folder.ask("transform", "list", "web").out
    folder.ask("transform", "disable", "web", "short")
    assert [one.get("enabled", True) for one in folder.ask("transform", "list", "web", "--json").value] == [False, True]
    folder.ask("sync")
    mails = folder.query("select properties_mail from web.track_order_completed where properties_mail is not null")
    assert {len(row["properties_mail"]) for row in mails} == {64}
    folder.ask("transform", "enable", "web", "short")
    folder.ask("replay", "web", "--all")
    assert len(folder.query("select 1 from web.track_order")) == 3
    folder.ask("transform", "remove", "web", "short")
    folder.ask("transform", "remove", "web", "hash")
    assert folder.ask("transform", "list", "web", "--json").value == []
    (folder.path / "bad.json").write_text(json.dumps({**rename, "if": "event = "}))
    assert "at character 9" in folder.refused("transform", "add", "web", "bad.json")
    assert "cannot be read" in folder.refused("transform", "add", "web", "nowhere.json")
    failed(folder.run_here("transform", "remove", "web", "nothing"), 2)
