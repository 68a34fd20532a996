"""Settings of a source and of a workspace."""

from pathlib import Path

import pytest

from conftest import Lake, track
from eventlake.control.settings import ConnectionSettings
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.sync import jobs
from eventlake.workspace import CONFIG, Workspace


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("date_partition", "hourly", "day_hour"),
        ("database", "1web", "begins with a letter"),
        ("database", "Web Shop", "begins with a letter"),
        ("table_prefix", "_x", "begins with a letter"),
        ("table_naming", "camel", "prefixed"),
        ("lookback_days", "0", "must be at least 1"),
        ("lookback_days", "week", "unlimited"),
        ("column_limit", "5", "must be at least 20"),
        ("rescue_rounded", "perhaps", "must be true or false"),
        ("partition_by_slug", "2", "must be true or false"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(lake: Lake, setting: str, value: str, told: str) -> None:
    with pytest.raises(InvalidSettingsError, match=setting) as error:
        lake.workspace.connections.change("web", {setting: value})
    assert told in str(error.value)


def test_an_unknown_setting_is_refused_with_the_known_ones(lake: Lake) -> None:
    with pytest.raises(InvalidSettingsError) as error:
        lake.workspace.connections.change("web", {"datepartition": "day"})
    assert all(name in error.value.fix for name in ConnectionSettings.model_fields)


BREAKING = {
    "date_partition": "day",
    "table_prefix": "ios",
    "database": "other",
    "partition_by_slug": "true",
    "table_naming": "plain",
}


@pytest.mark.parametrize(("setting", "value"), BREAKING.items())
def test_what_would_break_existing_tables_is_refused_and_a_replay_does_it(lake: Lake, setting: str, value: str) -> None:
    lake.sync_of(track("A", "m1", receivedAt="2026-11-14T10:00:00Z"), track("B", "m2"))
    old_files = lake.data_files()
    with pytest.raises(InvalidSettingsError) as error:
        lake.workspace.connections.change("web", {setting: value})
    assert error.value.fix.startswith(f"`eventlake replay web --all --set {setting}={value}`")
    assert lake.data_files() == old_files

    report = lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {setting: value})))
    assert report[0]["books"]["loaded"] == 2
    assert not set(lake.data_files()) & set(old_files)
    names = {"table_prefix": "other.ios_track_a", "database": "other.track_a", "table_naming": "web.a"}
    names["table_prefix"] = "web.ios_track_a"
    table = names.get(setting, "web.track_a")
    assert [row["message_id"] for row in lake.query(f"select * from {table}")] == ["m1"]
    assert len(lake.tables()) == 2
    assert lake.connection.settings.model_dump(mode="json")[setting] in (value, True)
    again = lake.sync_of(track("A", "m1"), track("A", "m3"))
    assert (again[0]["books"]["loaded"], again[0]["books"]["duplicates"]) == (1, 1)


def test_before_anything_is_loaded_every_setting_can_change(lake: Lake) -> None:
    lake.workspace.connections.change("web", BREAKING)
    assert lake.connection.database == "other"


def test_a_rebuild_refuses_to_lose_rows_that_only_the_lake_has(lake: Lake) -> None:
    raw = lake.put(track("A", "m1"))
    lake.put(track("A", "m2"))
    lake.sync()
    raw.unlink()
    with pytest.raises(InvalidSettingsError, match="1 rows are in the lake but no longer in the raw archive"):
        lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"date_partition": "day"})))
    assert len(lake.rows("track_a")) == 2


def test_a_source_and_its_connection_have_a_switch_each(lake: Lake) -> None:
    lake.workspace.sources.enable("web", False)
    assert (lake.source.enabled, lake.connection.enabled) == (False, True)
    lake.workspace.connections.enable("web", False)
    lake.workspace.sources.enable("web", True)
    assert (lake.source.enabled, lake.connection.enabled) == (True, False)


def test_a_workspace_needs_its_file(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="not a workspace"):
        Workspace.open(tmp_path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("workspace_id = ", "Invalid value"),
        ('workspace_id = "x"\nlak = 1', "lak"),
        ('workspace_id = "x"\n[spark]\ncores = 1', "cores"),
        ("", "workspace_id"),
    ],
)
def test_a_typo_in_the_file_stops_the_program(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / CONFIG).write_text(text)
    with pytest.raises(InvalidSettingsError, match=told):
        Workspace.open(tmp_path).lake()  # what is wrong of a lake keeps only that lake shut


@pytest.mark.parametrize("kind", ["slack", "webhook"])
def test_the_address_of_a_channel_may_be_in_a_vault(tmp_path: Path, kind: str) -> None:
    channel = f'workspace_id = "x"\n[channels.ops]\nkind = "{kind}"\nurl = "keyvault://acme/hook"\n'
    (tmp_path / CONFIG).write_text(channel)
    assert Workspace.open(tmp_path).settings.channels["ops"].kind == kind
    (tmp_path / CONFIG).write_text(channel.replace("acme/hook", "acme"))
    with pytest.raises(InvalidSettingsError, match="not keyvault://vault/name"):
        Workspace.open(tmp_path)


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Workspace.create(tmp_path)
    monkeypatch.setenv("EVENTLAKE_SPARK__MASTER", "spark://host:7077")
    monkeypatch.setenv("EVENTLAKE_LAKE__ROOT", "elsewhere")
    settings = Workspace.open(tmp_path).settings
    assert settings.spark.master == "spark://host:7077"
    assert settings.lake.root == "elsewhere"


def test_a_rebuild_keeps_the_types_of_columns(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"price": 1}))
    lake.sync_of(track("A", "m2", properties={"price": 1.5}))
    types = lake.types("track_a")
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"date_partition": "day"})))
    assert lake.types("track_a") == types
    assert [row["properties_price"] for row in lake.rows("track_a")] == [1, 1]
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"table_prefix": "x"})))
    assert lake.types("x_track_a") == types
    assert {str(lake.parquet("track_a").schema.field("properties_price").type)} == {"int64"}
