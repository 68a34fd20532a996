"""Two connections on AWS, of which one lacks something: it fails with a report, and the other is loaded."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from aws import REGION, rights_checked
from conftest import InProcess, track
from eventlake.archive import layout
from eventlake.errors import EventLakeError
from eventlake.library.workspace import Workspace
from eventlake.workspace import CONFIG
from test_aws import DENIED, EXTERNAL_ID, OnAws, on_aws  # noqa: F401 - a fixture

MICROS = 1_794_700_800_000_000


class Lack(NamedTuple):
    """What the connection to the default lake lacks: rights, or a setting that is right."""

    code: str
    aws: Callable[[OnAws], dict[str, str]]  # settings of the lake that lacks it


def without(*actions: str, below: str = "*") -> Callable[[OnAws], dict[str, str]]:
    def settings(here: OnAws) -> dict[str, str]:
        resource = below if below == "*" else f"arn:aws:s3:::{here.bucket}/lake/{below}"
        return {"role_arn": here.aws.role(without=actions, below=resource)}

    return settings


def guarded(**given: str) -> Callable[[OnAws], dict[str, str]]:
    return lambda here: {"role_arn": here.aws.role(external_id=EXTERNAL_ID), **given}


# The permissions and settings of which Segment's documents say what a report tells when they are missing. Of those on
# the cluster tests/test_emr.py has tests.
LACKS = {
    **{
        name: Lack(f"insufficient_permissions.{denied.code}", without(*denied.actions, below=denied.below))
        for name, denied in DENIED.items()
        if name != "download"
    },
    "download": Lack("insufficient_permissions.download_object", without("s3:GetObject", below="segment-data/*")),
    "a field": Lack("invalid_settings.configuration", lambda _: {"role_arn": "nobody"}),
    "external id": Lack("invalid_settings.external_id_invalid", guarded(external_id="another")),
    "no external id": Lack("invalid_settings.external_id_not_set", guarded()),
}


def workspace(here: OnAws, **aws: str) -> Workspace:
    """The default lake acts with these settings; archive and second lake with those of the user."""
    way_in = f's3 = {{ endpoint = "{here.aws.endpoint}", path_style = true }}\naws = {{ region = "{REGION}" }}\n'
    (here.folder / CONFIG).write_text(
        f'workspace_id = "test"\n{here.settings(**aws)}\n'
        f'[archive]\nroot = "s3://{here.bucket}/archive"\n{way_in}\n'
        f'[lakes.healthy]\nroot = "s3://{here.bucket}/healthy"\ncatalog = {{ kind = "glue" }}\n{way_in}'
    )
    found = Workspace.open(here.folder)
    found._given = InProcess()
    return found


def put(place: Workspace, name: str, *events: object) -> None:
    content = "\n".join(json.dumps(event) for event in events).encode()
    place.archive.write(layout.path("src1", MICROS, name), content)


def rows(place: Workspace, lake: str) -> list[str]:
    (table,) = [one for one in place.tables(lake) if one.table_key == "track_a"]
    sql = f'select message_id from {table.database}."{table.name}" order by 1'
    return [row["message_id"] for row in place.query(sql, lake=lake).to_pylist()]


@pytest.mark.long
@pytest.mark.parametrize("what", LACKS)
def test_what_one_connection_lacks_is_reported_and_holds_up_no_other(
    on_aws: OnAws,  # noqa: F811
    what: str,
) -> None:
    code, settings = LACKS[what]
    here = on_aws._replace(folder=Path(on_aws.folder, uuid.uuid4().hex))
    here.folder.mkdir()
    with workspace(here) as place:
        place.connections.add_source("web", source_id="src1")
        place.connections.change("web", {"database": f"db_{uuid.uuid4().hex}"})
        place.connections.connect("web", "healthy", {"database": f"db_{uuid.uuid4().hex}"})
        put(place, "1", track("A", "m1"))
        place.sync()
        put(place, "2", track("A", "m2", properties={"price": 1}), track("B", "m3"))
    with workspace(here, **settings(here)) as place, rights_checked():
        if what == "delete table":
            with pytest.raises(EventLakeError):
                place.rebuild("web", {"table_prefix": "new"})
        with pytest.raises(EventLakeError) as caught:
            place.sync()
        assert caught.value.code == code
        ended = {run.lake: run for run in reversed(place.runs.latest(10))}
        assert ended["healthy"].status == "finished"
        report = ended["default"].report
        assert report
        assert (report[0]["status"], report[0]["error_code"], bool(report[0]["fix"])) == ("failed", code, True)
        assert rows(place, "healthy") == ["m1", "m2"]
        assert place.verify("web/healthy") == {"web/healthy": []}
    with workspace(here) as place:
        place.sync()
        assert rows(place, "default") == ["m1", "m2"]
        assert place.verify() == {"web": [], "web/healthy": []}
