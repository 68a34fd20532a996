"""Settings of Segment Data Lakes as Segment has them: its names, its API's JSON, and the lake that they mean."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import InProcess, Lake, track
from eventlake.control import segment_names
from eventlake.control.settings import SegmentSettings
from eventlake.errors import ConfigurationError, InvalidSettingsError, NotFoundError
from eventlake.lake.segment import SegmentDialect, TableNaming
from eventlake.library.new_lakes import Connected, connect_as_told
from eventlake.settings import LakeSettings
from eventlake.settings.segment_names import OF_LAKES
from eventlake.workspace import CONFIG, Workspace

ROLE = "arn:aws:iam::123456789012:role/SegmentDataLakeRole"
SETTINGS: dict[str, Any] = {
    "awsRegion": "eu-west-1",
    "emrClusterId": "j-2AXXXXXXGAPLF",
    "glueCatalogId": "123456789012",
    "iamRoleArn": ROLE,
    "s3Bucket": "acme-events",
    "datePartition": "day=__segment_day",
    "glueDatabase": "prod",
    "partitionBySlugName": True,
}
ARCHIVE = '[archive]\nroot = "s3://acme-raw"\n'
LAKE = {
    "root": "s3://acme-events",
    "aws": {"region": "eu-west-1", "role_arn": ROLE},
    "catalog": {"kind": "glue", "catalog_id": "123456789012"},
    "runner": {"kind": "emr", "cluster_id": "j-2AXXXXXXGAPLF"},
}


FORMS: dict[str, Any] = {
    "public API": {"data": {"destination": {"id": "x", "enabled": True, "settings": SETTINGS, "sourceId": "src1"}}},
    "destination": {"id": "x", "enabled": True, "settings": SETTINGS},
    "config API": {
        "name": "workspaces/a/sources/b/destinations/data-lakes",
        "enabled": True,
        "config": [{"name": f"workspaces/a/config/{name}", "value": value} for name, value in SETTINGS.items()],
    },
    "bare": SETTINGS,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_segments_settings_is_understood(form: str) -> None:
    told = segment_names.told_by(json.loads(json.dumps(FORMS[form])))
    assert told.lake == LAKE
    assert told.connection == {"date_partition": "day", "database": "prod", "partition_by_slug": "true"}
    assert told.enabled


def test_what_is_off_at_segment_is_told_and_what_is_left_out_is_left_out() -> None:
    told = segment_names.told_by({"enabled": False, "settings": {"s3Bucket": "b1", "awsRegion": "eu-west-1"}})
    assert told == ({"root": "s3://b1", "aws": {"region": "eu-west-1"}, "catalog": {"kind": "glue"}}, {}, False, "")


@pytest.mark.parametrize("wrong", [{}, [], "x", {"settings": {}}, {"settings": {"s3Bucket": "b1"}}, {"config": [1]}])
def test_what_is_no_data_lake_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidSettingsError):
        segment_names.told_by(wrong)


@pytest.mark.parametrize(
    ("template", "ours"),
    [
        ("day=__segment_day/hr=__segment_hr", "day_hour"),
        (
            "year=__segment_received_year/month=__segment_received_month/day=__segment_received_day"
            "/hr=__segment_received_hour",
            "year_month_day_hour",
        ),
        ("year=__segment_received_year/month=__segment_received_month/day=__segment_received_day", "year_month_day"),
        ("day=__segment_day", "day"),
        ("day_hour", "day_hour"),
    ],
)
def test_segments_names_of_settings_are_names_of_ours(tmp_path: Path, template: str, ours: str) -> None:
    connections = Lake(tmp_path / "place", InProcess()).workspace.connections
    names = {
        "datePartition": template,
        "glueDatabase": "prod",
        "partitionBySlugName": "true",
        "tablePrefix": "iOS_Prod",
    }
    settings = connections.change("web", names).settings
    assert isinstance(settings, SegmentSettings)
    assert settings.date_partition.value == ours
    assert (settings.database, settings.partition_by_slug, settings.table_prefix) == ("prod", True, "ios_prod")
    with pytest.raises(InvalidSettingsError, match="awsRegion is a setting of the lake") as caught:
        connections.change("web", {"awsRegion": "eu-west-1"})
    assert "[lakes.NAME]" in caught.value.fix
    with pytest.raises(InvalidSettingsError, match="does not run on EMR"):
        connections.change("web", {"emrClusterId": "j-1"})
    with pytest.raises(InvalidSettingsError, match="database is given twice"):
        connections.change("web", {"glueDatabase": "a", "database": "b"})
    with pytest.raises(InvalidSettingsError, match="is not allowed"):
        connections.change("web", {"datePartition": "hr=__segment_hr"})


def place_with(folder: Path, more: str) -> Workspace:
    Workspace.create(folder)
    with (folder / CONFIG).open("a") as file:
        file.write(more)
    return Workspace.open(folder)


def moved_in(place: Workspace, slug: str = "web", lake: str = "", **more: Any) -> Connected:
    """Connect a source as the settings of the documents say, some of them changed."""
    told = segment_names.told_by({"settings": {**SETTINGS, **more}})
    return connect_as_told(Workspace.open(place.folder), slug, told, {}, lake, who="me")


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    found = place_with(tmp_path / "place", ARCHIVE)
    for slug in ("web", "ios", "server"):
        found.connections.add_source(slug, source_id=f"id-{slug}")
    return found


def test_a_lake_is_made_once_for_each_bucket(place: Workspace) -> None:
    mode = (place.folder / CONFIG).stat().st_mode
    made = moved_in(place)
    assert (made.connection.name, made.has_new_lake) == ("web/acme-events", True)
    assert (place.folder / CONFIG).stat().st_mode == mode
    assert moved_in(place, "ios", glueDatabase="ios") == (
        Workspace.open(place.folder).connections.get("ios/acme-events"),
        False,
    )
    found = Workspace.open(place.folder).settings.all_lakes["acme-events"]
    assert (found.root, found.aws.region, found.aws.role_arn) == ("s3://acme-events", "eu-west-1", ROLE)
    moved_in(place, "server", s3Bucket="acme-others", awsRegion="us-west-2", glueDatabase="server")
    assert list(Workspace.open(place.folder).settings.all_lakes) == ["default", "acme-events", "acme-others"]
    with pytest.raises(InvalidSettingsError, match="is another one"):
        moved_in(place, "server", lake="acme-events", s3Bucket="acme-new")
    with pytest.raises(InvalidSettingsError, match="is called acme-events"):
        moved_in(place, "server", lake="aws", glueDatabase="server")


def test_sources_of_one_bucket_may_have_a_cluster_each(place: Workspace) -> None:
    """Segment's settings are per source, and its guide advises a cluster of its own for a large one."""
    moved_in(place)
    made = moved_in(place, "ios", glueDatabase="ios", emrClusterId="j-OTHER")
    assert (made.connection.name, made.has_new_lake) == ("ios/acme-events", False)
    opened = Workspace.open(place.folder)
    clusters = {
        one.source.slug: one.settings.emr_cluster_id for one in opened.connections.all() if one.lake != "default"
    }
    assert clusters == {"web": "", "ios": "j-OTHER"}


@pytest.mark.parametrize(
    ("lake", "unlike"),
    [
        ('aws = { region = "us-west-2" }', "region us-west-2, not eu-west-1"),
        (f'aws = {{ role_arn = "{ROLE}2" }}', f"role {ROLE}2, not {ROLE}"),
        ("", "catalog embedded, not glue"),
        ('catalog = { kind = "glue", catalog_id = "999999999999" }', "account of the catalog 999999999999, not"),
        ('dialect = "rudderstack"\ncatalog = { kind = "glue" }', "dialect rudderstack, not segment"),
        ('catalog = { kind = "glue" }', "runner spark, not emr"),
    ],
)
def test_a_bucket_that_is_another_lakes_is_refused_and_nothing_is_changed(
    place: Workspace, lake: str, unlike: str
) -> None:
    with (place.folder / CONFIG).open("a") as file:
        file.write(f'[lakes.ours]\nroot = "s3://acme-events/"\n{lake}\n')
    before = (place.folder / CONFIG).read_text()
    with pytest.raises(InvalidSettingsError, match=re.escape(unlike)):
        moved_in(place)
    assert (place.folder / CONFIG).read_text() == before
    assert [one.lake for one in Workspace.open(place.folder).connections.all()] == ["default"] * 3


def test_what_the_lake_of_a_bucket_leaves_open_is_no_difference(tmp_path: Path) -> None:
    Workspace.create(tmp_path / "place")
    (tmp_path / "place" / CONFIG).write_text(
        'workspace_id = "w"\nrunner = "emr"\n[lake]\nroot = "s3://acme-events"\n[catalog]\nkind = "glue"\n'
        '[emr]\ncluster_id = "j-2AXXXXXXGAPLF"\n'
    )
    place = Workspace.open(tmp_path / "place")
    place.connections.add_source("web", lake="default")
    place.connections.disconnect("web")
    made = moved_in(place)
    assert (made.connection.name, made.has_new_lake) == ("web", False)
    assert Workspace.open(place.folder).connections.get("web").database == "prod"


def test_what_cannot_be_a_lake_leaves_the_file_as_it_is(place: Workspace, tmp_path: Path) -> None:
    before = (place.folder / CONFIG).read_text()
    for kind, wrong, slug, more in (
        (InvalidSettingsError, r"aws\.region", "web", {"awsRegion": "nowhere"}),
        (NotFoundError, "no source", "nosuch", {}),
        (InvalidSettingsError, "database='1' is not allowed", "web", {"glueDatabase": "1"}),
    ):
        with pytest.raises(kind, match=wrong):
            moved_in(place, slug, **more)
        assert (place.folder / CONFIG).read_text() == before
    other = place_with(tmp_path / "other", "")
    other.connections.add_source("web")
    with pytest.raises(ConfigurationError, match="needs a raw archive in a bucket"):
        moved_in(other)
    assert (other.folder / CONFIG).read_text().count("[lakes.") == 0


def test_the_settings_of_another_source_are_refused(place: Workspace) -> None:
    """Archive and tables lie below the id of a source."""
    told = segment_names.told_by({"sourceId": "rh5BDZp6", "settings": SETTINGS})
    with pytest.raises(InvalidSettingsError, match="source rh5BDZp6, and web has the id id-web") as caught:
        connect_as_told(place, "web", told, {}, who="me")
    assert "--id rh5BDZp6" in caught.value.fix
    place.connections.add_source("theirs", source_id="rh5BDZp6")
    assert connect_as_told(place, "theirs", told, {}, who="me").connection.source.id == "rh5BDZp6"


def test_a_lake_may_be_written_down_by_segments_names(tmp_path: Path) -> None:
    names = "".join(f'{name} = "{SETTINGS[name]}"\n' for name in OF_LAKES)
    Workspace.create(tmp_path)
    (tmp_path / CONFIG).write_text(
        f'workspace_id = "w"\n[lake]\n{names}[lakes.b]\n{names.replace("acme-events", "acme-others")}'
    )
    default, other = Workspace.open(tmp_path).settings.all_lakes.values()
    assert default == LakeSettings.model_validate(LAKE)
    assert other == LakeSettings.model_validate(LAKE | {"root": "s3://acme-others"})
    for twice in ('aws = { region = "eu-west-1" }', 'root = "s3://b2"'):
        (tmp_path / CONFIG).write_text(f'workspace_id = "w"\n[lakes.b]\n{names}{twice}\n')
        with pytest.raises(ConfigurationError, match="are the same: keep one of them"):
            Workspace.open(tmp_path).lake("b")


def test_on_the_command_line(tmp_path: Path) -> None:
    place = place_with(tmp_path / "place", ARCHIVE)
    place.connections.add_source("web", source_id="src1")
    file = tmp_path / "destination.json"
    file.write_text(json.dumps(FORMS["public API"]))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "eventlake", "-C", str(place.folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run("connect", "web", "--from-segment", str(file), "lookback_days=14", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    settings = shown["settings"]
    assert (shown["lake"], settings["database"], settings["lookback_days"]) == ("acme-events", "prod", 14)
    assert "The lake acme-events is new: see [lakes.acme-events] in eventlake.toml." in " ".join(done.stderr.split())
    done = run("connection", "set", "web/acme-events", "tablePrefix=iOS_Prod")
    assert "the table prefix is ios_prod" in " ".join(done.stderr.split())
    assert "small letters" not in run("connection", "set", "web/acme-events", "table_prefix=ios").stderr
    file.write_text("{")
    assert "is not JSON" in run("connect", "web", "--from-segment", str(file)).stderr
    assert "cannot be read" in run("connect", "web", "--from-segment", str(tmp_path / "none")).stderr


# Names of tables as the first documents had them


def test_tables_may_have_plural_names(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "place", InProcess())
    lake.workspace.connections.change("web", {"table_naming": "plural", "table_prefix": "ios"})
    calls = [
        {"type": kind, "messageId": kind, "userId": "u", "receivedAt": "2026-11-15T10:00:00Z"}
        for kind in ("identify", "page", "screen", "group", "alias")
    ]
    lake.sync_of(*calls, track("Order Completed", "m1"), track("Page", "m2"))
    names = ["aliases", "groups", "identifies", "pages", "screens", "tracks_order_completed", "tracks_page"]
    assert [table.name for table in lake.place.catalog.tables()] == [f"ios_{name}" for name in names]
    assert lake.query("select count(*) as n from web.ios_tracks_order_completed") == [{"n": 1}]
    assert any("segment_type=track_order_completed" in path for path in lake.data_files())
    dialect = SegmentDialect("s", "web", naming=TableNaming.PLURAL)
    assert dialect.event_of("track_order_completed") == "order_completed"
