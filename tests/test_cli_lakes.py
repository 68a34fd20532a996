"""`lake`, `connect`, `disconnect`, `connection`, and SOURCE/LAKE in other commands, as people and scripts meet them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from conftest import track
from eventlake.workspace import CONFIG
from test_cli import Folder, failed, ndjson
from test_docs import COMMANDS


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A workspace whose source is connected to two lakes, both of which are loaded by one sync."""
    base = tmp_path_factory.mktemp("lakes")
    Folder(base).ask("init", "place")
    folder = Folder(base / "place")
    with (folder.path / CONFIG).open("a") as settings:
        settings.write('\n[lakes.second]\nroot = "second"\n')
    folder.ask("source", "add", "web", "--id", "src1")
    folder.ask("connect", "web", "second", "date_partition=day", "table_prefix=x")
    (base / "events").write_bytes(ndjson(track(message_id="m1"), track(message_id="m2"), b"no event"))
    folder.ask("import", "web", str(base / "events"))
    folder("sync")
    return folder


@pytest.fixture
def folder(synced: Folder, tmp_path: Path) -> Folder:
    return synced.copy(tmp_path / "place")


def test_one_sync_loads_a_source_into_all_its_lakes(synced: Folder) -> None:
    runs = synced.ask("runs", "--json").value
    assert {(run["source"], run["rows"]) for run in runs} == {("web", 2), ("web/second", 2)}
    assert [run["source"] for run in synced.ask("runs", "web/second", "--json").value] == ["web/second"]
    assert len(synced.ask("runs", "web", "--json").value) == 2
    tables = [
        t["table"] for lake in ("default", "second") for t in synced.ask("tables", "--lake", lake, "--json").value
    ]
    assert tables == ["track_clicked", "x_track_clicked"]
    sql = "select count(*) as n from web.x_track_clicked"
    assert synced.ask("query", sql, "--lake", "second", "--json").value == {"n": 2}
    assert "track_clicked" in synced.refused("query", sql)  # of the default lake, which has no such table
    report = synced.ask("report", "web/second", "--json").lines
    assert [line["table_name"] for line in report if line["table_name"]] == ["x_track_clicked"]
    assert "web/second" in synced.ask("report", "web/second").out
    assert "day" in synced.ask("describe", "web.x_track_clicked", "--lake", "second").out


def test_lakes_and_connections_are_shown(synced: Folder) -> None:
    lakes = synced.ask("lake", "list", "--json").value
    assert [(lake["lake"], lake["catalog"], lake["runner"], lake["sources"]) for lake in lakes] == [
        ("default", "embedded", "spark", ["web"]),
        ("second", "embedded", "spark", ["web"]),
    ]
    assert lakes[1]["root"] == str(synced.path / "second")
    screen = synced.ask("lake", "list").out
    assert "second" in screen
    found = synced.ask("connection", "list", "--json").value
    assert [(one["source"], one["lake"], one["enabled"]) for one in found] == [
        ("web", "default", True),
        ("web", "second", True),
    ]
    assert found[1]["settings"]["date_partition"] == "day"
    assert "day_hour" in synced.ask("connection", "list").out


def test_a_lake_that_is_not_there_is_told(synced: Folder) -> None:
    assert "there is no lake 'third'" in synced.refused("sync", "web/third")
    assert "there is no lake 'third'" in synced.refused("tables", "--lake", "third")
    assert "is connected to the lake 'second' already" in synced.refused("connect", "web", "second")


def test_a_connection_that_is_disabled_is_passed_over_and_then_catches_up(folder: Folder, tmp_path: Path) -> None:
    folder.ask("connection", "disable", "web/default")
    assert "eventlake connection enable web/default" in folder.refused("sync", "web/default")
    (tmp_path / "more").write_bytes(ndjson(track(message_id="m3")))
    folder.ask("import", "web", str(tmp_path / "more"))
    assert {line["row_count"] for line in folder("sync", "web", "--json").lines if line["type"] == "source"} == {1}
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 2}]
    folder.ask("connection", "enable", "web/default")
    loaded = folder("sync", "--json").lines
    assert {line["row_count"] for line in loaded if line["type"] == "source"} == {1, 0}
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 3}]


def test_a_lake_that_is_away_fails_alone(folder: Folder, tmp_path: Path) -> None:
    settings = (folder.path / CONFIG).read_text()
    (folder.path / "broken").write_text("a file, not a folder")
    (folder.path / CONFIG).write_text(settings.replace('root = "second"', 'root = "broken/second"'))
    (tmp_path / "more").write_bytes(ndjson(track(message_id="m3")))
    folder.ask("import", "web", str(tmp_path / "more"))
    answer = folder.run("sync", "--json")
    assert answer.code == 3, answer
    assert "web/second: " in answer.err
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 3}]
    checked = folder.run("lake", "check", "second", "--json")
    assert checked.code == 1
    steps: dict[str, Any] = {step["step"]: step for step in json.loads(checked.out)}
    assert steps["storage: upload to staging"]["status"] == "failed"
    assert steps["database"]["status"] == "passed"


def test_an_archive_of_its_own_is_checked(folder: Folder) -> None:
    with (folder.path / CONFIG).open("a") as settings:
        settings.write(f'[archive]\nroot = "{folder.path}/lake"\n')
    steps = {step["step"]: step for step in json.loads(folder.run("lake", "check", "--json").out)}
    assert steps["raw archive"]["detail"] == f"1 source in {folder.path}/lake"


def test_settings_are_changed_copied_and_kept_apart(folder: Folder) -> None:
    told = folder.ask("connection", "set", "web/second", "lookback_days=30", "--json").value
    assert (told["lake"], told["settings"]["lookback_days"]) == ("second", 30)
    assert folder.ask("source", "set", "web", "column_limit=50", "--json").value["settings"]["lookback_days"] == 7
    assert "would break its existing tables" in folder.refused("connection", "copy", "web/second", "web/default")
    folder.ask("source", "add", "ios")
    made = folder.ask("connect", "ios", "second", "--like", "web/second", "numbers=decimal", "--json").value
    assert made["settings"]["table_prefix"] == "x"
    assert (made["settings"]["database"], made["settings"]["numbers"]) == ("ios", "decimal")
    copied = folder.ask("connection", "copy", "ios/second", "ios/default", "--json").value
    assert copied["settings"] == made["settings"]


def test_what_is_disconnected_stays_to_be_looked_at(folder: Folder) -> None:
    said = folder.ask("disconnect", "web/second").err
    assert "its tables stay" in said
    assert [one["lake"] for one in folder.ask("connection", "list", "--json").value] == ["default"]
    sql = "select count(*) as n from web.x_track_clicked"
    assert folder.ask("query", sql, "--lake", "second", "--json").value == {"n": 2}
    assert {run["source"] for run in folder.ask("runs", "--json").value} == {"web", "web/second"}
    assert [run["source"] for run in folder.ask("runs", "web/second", "--json").value] == ["web/second"]
    assert "date_partition" in folder.refused("connect", "web", "second", "date_partition=day_hour")
    assert folder.ask("connect", "web", "second", "--json").value["settings"]["table_prefix"] == "x"


@pytest.mark.parametrize("command", [name for name in COMMANDS if not name.endswith(("doctor", "verify"))])
def test_every_help_can_be_shown(synced: Folder, command: str) -> None:
    assert "Usage" in synced.ask(*command.split()[1:], "--help").out


def test_a_lake_can_be_given_either_way(folder: Folder) -> None:
    folder.ask("source", "add", "app")
    assert folder.ask("connect", "app/second", "lookback_days=3", "--json").value["lake"] == "second"
    assert "a lake comes before them" in folder.refused("connect", "web", "lookback_days=3", "second")
    assert "source add" not in folder.refused("sync", "What?")


def test_a_source_may_begin_in_another_lake(folder: Folder) -> None:
    made = folder.ask("source", "add", "app", "--lake", "second", "--json").value
    assert made["settings"]["database"] == "app"
    shown = {source["slug"]: source["settings"] for source in folder.ask("source", "list", "--json").value}
    assert shown["app"] is None
    assert shown["web"] is not None
    assert "is not connected to the lake 'default'" in folder.refused("source", "set", "app", "lookback_days=1")
    assert "KEY=VALUE" in folder.refused("connect", "app", "default", "lookback_days")


def test_a_lost_database_is_given_back(folder: Folder, tmp_path: Path) -> None:
    before = folder.ask("runs", "--json").value
    for file in folder.path.glob("eventlake.db*"):
        file.unlink()
    assert "eventlake restore" in failed(folder.run("verify"), 1)
    assert "eventlake restore" in failed(folder.run_here("sync"), 1)
    told = folder.ask("restore", "--json").value
    assert [(one["source"], one["runs"], one["rows"]) for one in told["restored"]] == [
        ("web", 1, 2),
        ("web/second", 1, 2),
    ]
    assert told["unknown_sources"] == []
    assert folder.ask("runs", "--json").value == before
    assert "nothing to restore" in folder.ask("restore").err
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 2}]


def test_what_only_the_archive_has_is_told(folder: Folder, tmp_path: Path) -> None:
    folder.ask("source", "add", "late", "--id", "src9")
    (tmp_path / "more").write_bytes(ndjson(track(message_id="l1")))
    folder.ask("import", "late", str(tmp_path / "more"))
    for file in folder.path.glob("eventlake.db*"):
        file.unlink()
    told = folder.ask("restore")
    assert "src1" in told.out
    assert "source add-key" in told.err
    assert "src9" in told.err
    assert "eventlake source add SLUG --id ID" in told.err


def test_runs_of_another_workspace_are_told_with_its_id(folder: Folder) -> None:
    for file in folder.path.glob("eventlake.db*"):
        file.unlink()
    settings = (folder.path / CONFIG).read_text()
    theirs = re.search('workspace_id = "(.*)"', settings)
    assert theirs
    (folder.path / CONFIG).write_text(settings.replace(theirs[1], "another"))
    told = folder.ask("restore").err
    assert "nothing to restore" in told
    assert f'put workspace_id = "{theirs[1]}" into eventlake.toml' in " ".join(told.split())
    assert folder.ask("restore", "--json").value["of_other_workspaces"] == {"src1": theirs[1]}


def test_names_of_folders_and_words_of_manifests_cannot_drive_a_terminal(folder: Folder) -> None:
    odd = "[/b][red]\x1b[2J"
    (folder.path / "lake" / "segment-logs" / "s [b]\x1b[31m").mkdir()
    (manifest,) = (folder.path / "second" / "segment-data" / "commits").rglob("*.json")
    told = json.loads(manifest.read_text())
    told["entry"]["report"][0]["workspace_id"] = odd
    theirs = folder.path / "second" / "segment-data" / "commits" / "source=src7"
    theirs.mkdir()
    (theirs / manifest.name).write_text(json.dumps(told))
    said = folder.ask("restore").err
    assert "\x1b" not in said
    assert "[/b][red]" in said
    assert "s [b]" in said


def test_a_connection_is_tried_part_by_part_and_nothing_of_that_is_left(tmp_path: Path) -> None:
    Folder(tmp_path).ask("init", "place", "--dialect", "rudderstack")
    folder = Folder(tmp_path / "place")
    folder.ask("source", "add", "web")
    told = {one["step"]: one["status"] for one in folder.ask("connection", "check", "web", "--json").value}
    steps = ("storage: upload to staging", "storage: conditional create", "catalog", "spark")
    assert [told[step] for step in steps] == ["passed"] * 4
    assert [path for path in (folder.path / "lake").rglob("*") if path.is_file()] == []
    assert folder.ask("lake", "list", "--json").value[0]["dialect"] == "rudderstack"
