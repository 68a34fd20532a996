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
    folder.ask("sync")
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
    assert [one["next_sync_at"][13:] for one in found] == [":00:00Z", ":00:00Z"]  # at the next even hour
    screen = synced.ask("connection", "list").out
    assert "every 2h" in screen
    assert found[0]["next_sync_at"].replace("T", " ")[:16] in screen


def test_a_lake_that_is_not_there_is_told(synced: Folder) -> None:
    assert "there is no lake 'third'" in synced.refused("sync", "web/third")
    assert "there is no lake 'third'" in synced.refused("tables", "--lake", "third")
    assert "is connected to the lake 'second' already" in synced.refused("connect", "web", "second")


def test_a_wrong_setting_of_a_lake_fails_its_runs_and_no_others(folder: Folder, tmp_path: Path) -> None:
    settings = folder.path / CONFIG
    right = settings.read_text()
    wrong = right.replace('root = "second"', 'root = "second"\naws = { role_arn = "nobody" }\ntimeuot = 1')
    settings.write_text(wrong)
    (tmp_path / "more").write_bytes(ndjson(track(message_id="m3")))
    folder.ask("import", "web", str(tmp_path / "more"))
    shown = folder.run("sync")
    assert shown.code == 3
    assert "lakes.second.aws.role_arn: " in " ".join(shown.err.split())
    assert "lakes.second.timeuot: there is no such setting; perhaps timeout" in " ".join(shown.err.split())
    of_each = {one["source"]: one for one in reversed(folder.ask("runs", "--json").value)}
    assert (of_each["web"]["status"], of_each["web"]["rows"]) == ("Success", 1)
    assert of_each["web/second"]["status"] == "Failed"
    told = folder.ask("report", of_each["web/second"]["run_id"], "--json").lines[0]
    assert (told["status"], told["error_code"]) == ("failed", "invalid_settings.configuration")
    assert "role_arn" in told["error"]
    assert "role_arn" in folder.refused("query", "select 1", "--lake", "second")
    assert "second" in folder.ask("connection", "list").out
    settings.write_text(right)
    assert folder.ask("sync", "web/second", "--json").lines[0]["row_count"] == 1
    settings.write_text(right.replace("[lakes.second]", "[lakes.SECOND]"))
    assert "not the name of a lake" in folder.refused("sync")


WRONG = {
    "a key that there is not": ("[aws]\nregio = 1\n", "aws.regio: there is no such setting; perhaps region"),
    "a section that asks for another": ('[catalog]\nkind = "glue"\n', "catalog.kind = glue needs a lake in a bucket"),
    "one of Segment's": ("", "emr.cluster_id: must be the id of an EMR cluster"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_setting_of_the_default_lake_fails_its_runs_with_a_report(tmp_path: Path, case: str) -> None:
    """The others go on, if the raw archive is not in it; then all wait, and nothing is lost."""
    text, told = WRONG[case]
    Folder(tmp_path).ask("init", "place")
    folder = Folder(tmp_path / "place")
    settings = folder.path / CONFIG
    right = settings.read_text() + '\n[lakes.second]\nroot = "second"\n[archive]\nroot = "raw"\n'
    settings.write_text(right)
    folder.ask("source", "add", "web", "--id", "src1")
    folder.ask("connect", "web", "second")
    (tmp_path / "events").write_bytes(ndjson(track(message_id="m1")))
    folder.ask("import", "web", str(tmp_path / "events"))
    wrong = f"{right}{text}" if text else right.replace('root = "lake"', 'root = "lake"\nemrClusterId = "mine"')
    settings.write_text(wrong)
    shown = folder.run("sync")
    assert shown.code == 3
    assert f"eventlake.toml: {told}" in " ".join(shown.err.split())
    of_each = {one["source"]: one for one in reversed(folder.ask("runs", "--json").value)}
    assert {name: one["status"] for name, one in of_each.items()} == {"web": "Failed", "web/second": "Success"}
    kept = folder.ask("report", of_each["web"]["run_id"], "--json").lines[0]
    assert (kept["status"], kept["error_code"]) == ("failed", "invalid_settings.configuration")
    assert told in kept["error"]
    assert told in " ".join(folder.ask("lake", "list").err.split())
    assert "web" in folder.ask("source", "list").out
    for command in (("tables",), ("query", "select 1"), ("lake", "check"), ("source", "add", "ios")):
        assert told in folder.refused(*command), command
    found = folder.run("verify", "--json")
    assert (found.code, "not_verified" in found.out) == (3, True)
    settings.write_text(wrong.replace('[archive]\nroot = "raw"\n', ""))
    assert told in folder.refused("sync")
    assert [one["status"] for one in folder.ask("runs", "--json").value[:2]] == ["Failed", "Failed"]
    settings.write_text(right)
    assert folder.ask("sync", "web", "--json").lines[0]["row_count"] == 1


def test_where_the_only_lake_is_wrong_every_look_says_so(tmp_path: Path) -> None:
    Folder(tmp_path).ask("init", "place")
    folder = Folder(tmp_path / "place")
    folder.ask("source", "add", "web")
    settings = folder.path / CONFIG
    settings.write_text(settings.read_text().replace('root = "lake"', 'root = "s3://Wrong_Name"'))
    (tmp_path / "events").write_bytes(ndjson(track(message_id="m1")))
    for command in (("doctor",), ("verify",), ("restore",), ("sync",), ("import", "web", str(tmp_path / "events"))):
        assert "lake.root: " in folder.refused(*command), command


def test_a_connection_that_is_disabled_is_passed_over_and_then_catches_up(folder: Folder, tmp_path: Path) -> None:
    folder.ask("connection", "disable", "web/default")
    assert "eventlake connection enable web/default" in folder.refused("sync", "web/default")
    (tmp_path / "more").write_bytes(ndjson(track(message_id="m3")))
    folder.ask("import", "web", str(tmp_path / "more"))
    assert {line["row_count"] for line in folder.ask("sync", "web", "--json").lines if line["type"] == "source"} == {1}
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 2}]
    folder.ask("connection", "enable", "web/default")
    loaded = folder.ask("sync", "--json").lines
    assert {line["row_count"] for line in loaded if line["type"] == "source"} == {1, 0}
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 3}]


def test_a_lake_that_is_away_fails_alone(folder: Folder, tmp_path: Path) -> None:
    settings = (folder.path / CONFIG).read_text()
    (folder.path / "broken").write_text("a file, not a folder")
    (folder.path / CONFIG).write_text(settings.replace('root = "second"', 'root = "broken/second"'))
    (tmp_path / "more").write_bytes(ndjson(track(message_id="m3")))
    folder.ask("import", "web", str(tmp_path / "more"))
    answer = folder.run_here("sync", "--json")
    assert answer.code == 3, answer
    assert "web/second: " in answer.err
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 3}]
    checked = folder.run_here("lake", "check", "second", "--json")
    assert checked.code == 1
    steps: dict[str, Any] = {step["step"]: step for step in json.loads(checked.out)}
    assert steps["storage: upload to staging"]["status"] == "failed"
    assert steps["database"]["status"] == "passed"


def with_a_lake_away(folder: Folder) -> None:
    """The second lake is below what is a file."""
    settings = (folder.path / CONFIG).read_text()
    (folder.path / "broken").write_text("a file, not a folder")
    (folder.path / CONFIG).write_text(settings.replace('root = "second"', 'root = "broken/second"'))


def without_the_second(folder: Folder, name: str = "") -> None:
    """The second lake is gone from the settings, or has another name there."""
    settings = (folder.path / CONFIG).read_text()
    ours = '[lakes.second]\nroot = "second"\n'
    assert ours in settings
    (folder.path / CONFIG).write_text(settings.replace(ours, name and ours.replace("lakes.second", f"lakes.{name}")))


@pytest.mark.parametrize("lack", [with_a_lake_away, without_the_second])
def test_a_lake_that_cannot_be_verified_does_not_hold_up_the_others(folder: Folder, lack: Any) -> None:
    (file,) = (folder.path / "lake" / "segment-data" / "data").rglob("*.parquet")
    lack(folder)
    told = folder.run_here("verify", "--json")
    assert told.code == 3, told
    (finding,) = json.loads(told.out)
    assert (finding["source"], finding["kind"], finding["where"]) == ("web/second", "not_verified", "lake second")
    assert "broken" in finding["detail"] or "eventlake disconnect web/second" in finding["detail"]
    file.unlink()
    worse = folder.run_here("verify")
    assert worse.code == 1, worse
    assert "data_file_gone" in worse.out
    assert "not_verified" in worse.out
    assert folder.run_here("verify", "web/second").code == (1 if lack is with_a_lake_away else 2)
    assert folder.run_here("verify", "--repair").code == 3
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 2}]


def test_a_lake_that_is_gone_from_the_settings_is_told_once_with_both_ways_out(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "more").write_bytes(ndjson(track(message_id="m3")))
    folder.ask("import", "web", str(tmp_path / "more"))
    without_the_second(folder)
    answer = folder.run_here("sync")
    assert answer.code == 3, answer
    told = " ".join(answer.err.split())
    assert told.count("there is no lake 'second' in eventlake.toml") == 1
    assert "put [lakes.second] back" in told
    assert "`eventlake disconnect web/second`" in told
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 3}]
    steps = {step["step"]: step for step in json.loads(folder.run_here("doctor", "connections", "--json").out)}
    assert steps["connections"]["status"] == "failed"
    assert "web/second" in steps["connections"]["detail"]
    folder.ask("disconnect", "web/second")
    folder.ask("sync")
    folder.ask("verify")
    steps = {step["step"]: step for step in folder.ask("doctor", "connections", "--json").value}
    assert steps["connections"]["status"] == "passed"


def with_another_dialect(folder: Folder) -> None:
    settings = (folder.path / CONFIG).read_text()
    (folder.path / CONFIG).write_text(
        settings.replace('root = "second"\n', 'root = "second"\ndialect = "rudderstack"\n')
    )


def test_a_lake_whose_dialect_was_changed_fails_alone(folder: Folder, tmp_path: Path) -> None:
    with_another_dialect(folder)
    (tmp_path / "more").write_bytes(ndjson(track(message_id="m3")))
    folder.ask("import", "web", str(tmp_path / "more"))
    answer = folder.run_here("sync")
    assert answer.code == 3, answer
    told = " ".join(answer.err.split())
    assert "web/second: in the lake 'second', the connection of 'web' is in the dialect segment" in told
    assert 'put dialect = "segment" back' in told
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 3}]
    for command in (
        ("sync", "web/second"),
        ("replay", "web/second", "--all"),
        ("connection", "set", "web/second", "lookback_days=3"),
        ("query", "select 1", "--lake", "second"),
    ):
        assert "is in the dialect segment" in folder.refused(*command)
    assert sorted(path.name for path in (folder.path / "second").iterdir()) == ["segment-data", "segment-stage"]
    for others in ("sync web/default", "source list", "lake list", "connection list", "runs"):
        folder.ask(*others.split())
    folder.ask("connection", "set", "web/default", "lookback_days=3")
    (finding,) = json.loads(folder.run_here("verify", "--json").out)
    assert (finding["source"], finding["kind"]) == ("web/second", "not_verified")
    steps = {step["step"]: step for step in json.loads(folder.run_here("lake", "check", "second", "--json").out)}
    assert steps["connections"]["status"] == "failed"
    folder.ask("disconnect", "web/second")
    folder.ask("sync")


def test_a_lake_that_got_another_name_is_not_taken_for_a_copy_to_be_emptied(folder: Folder) -> None:
    without_the_second(folder, "zweite")
    folder.ask("connect", "web", "zweite", "date_partition=day", "table_prefix=x")
    assert "eventlake restore" in failed(folder.run_here("sync", "web/zweite"), 1)
    told = " ".join(folder.refused("restore", "--lake", "zweite").split())
    assert "call it [lakes.second] again" in told
    assert "empty" not in told


def test_an_archive_of_its_own_is_checked(folder: Folder) -> None:
    with (folder.path / CONFIG).open("a") as settings:
        settings.write(f'[archive]\nroot = "{folder.path}/lake"\n')
    steps = {step["step"]: step for step in json.loads(folder.run_here("lake", "check", "--json").out)}
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
    assert "eventlake restore" in failed(folder.run_here("verify"), 1)
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


def test_one_lake_is_given_back_while_another_is_away_and_keys_are_told_of_until_there_are_some(
    folder: Folder, tmp_path: Path
) -> None:
    settings = (folder.path / CONFIG).read_text()
    for file in folder.path.glob("eventlake.db*"):
        file.unlink()
    with_a_lake_away(folder)
    told = folder.run_here("restore")
    assert told.code == 3, told
    assert "lake second: " in told.err
    assert "src1" in told.out
    assert "Nothing" not in told.err
    assert folder.query("select count(*) as n from web.track_clicked") == [{"n": 2}]
    (folder.path / CONFIG).write_text(settings)
    assert "source add-key web" in folder.ask("restore", "--lake", "second").err
    again = folder.ask("restore")
    assert "nothing to restore" in again.err
    assert "source add-key web" in again.err  # still
    folder.ask("verify")


def test_what_was_switched_off_or_changed_after_the_last_run_comes_back_so(folder: Folder, tmp_path: Path) -> None:
    folder.ask("source", "add", "ios", "--id", "src2")
    folder.ask("connect", "ios", "second")
    (tmp_path / "more").write_bytes(ndjson(track(message_id="i1")))
    folder.ask("import", "ios", str(tmp_path / "more"))
    folder.ask("sync")
    folder.ask("connection", "set", "web/default", "lookback_days=21")
    folder.ask("connection", "disable", "web/second")
    folder.ask("disconnect", "ios/default")
    folder.ask("source", "disable", "ios")
    sources = [{**one, "keys": 0} for one in folder.ask("source", "list", "--json").value]
    before = folder.ask("connection", "list", "--json").value
    for file in folder.path.glob("eventlake.db*"):
        file.unlink()
    told = folder.ask("restore")
    said = " ".join(told.err.split())
    assert "web/second: it was switched off, and is" in said
    assert "ios: it was disconnected, and is" in said
    assert "ios was switched off, and is" in said
    assert folder.ask("connection", "list", "--json").value == before
    assert [{**one, "keys": 0} for one in folder.ask("source", "list", "--json").value] == sources
    done = {line["source_id"] for line in folder.ask("sync", "--json").lines if line["type"] == "source"}
    assert done == {"src1", "src2"}
    assert folder.ask("runs", "ios/default", "--json").value[0]["kind"] == "sync"  # as before
    assert len(folder.ask("runs", "ios/default", "--json").value) == 1
    folder.ask("verify")


def test_what_only_the_archive_has_is_told(folder: Folder, tmp_path: Path) -> None:
    folder.ask("source", "add", "late", "--id", "src9")
    (tmp_path / "more").write_bytes(ndjson(track(message_id="l1")))
    folder.ask("import", "late", str(tmp_path / "more"))
    (folder.path / "lake" / "segment-data" / "connections" / "source=src9.json").unlink()  # as if it was elsewhere
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
    before = sorted((folder.path / "lake").rglob("*"))
    told = {one["step"]: one["status"] for one in folder.ask("connection", "check", "web", "--json").value}
    steps = ("storage: upload to staging", "storage: conditional create", "catalog", "spark")
    assert [told[step] for step in steps] == ["passed"] * 4
    assert [path for path in (folder.path / "lake").rglob("*") if path.is_file() and path not in before] == []
    assert folder.ask("lake", "list", "--json").value[0]["dialect"] == "rudderstack"
