"""Connections, and the lakes that they need, from settings which somebody has elsewhere."""

import tomllib
import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from eventlake.control.connections import Connection
from eventlake.control.segment_names import Told, lake_name
from eventlake.errors import InvalidSettingsError
from eventlake.library import workspace as library
from eventlake.library.changes import Changes
from eventlake.settings import LakeSettings
from eventlake.settings.file import CONFIG, lake_section, read_settings
from eventlake.settings.mistakes import mistakes
from eventlake.storage import private
from eventlake.workspace import Workspace


class Connected(NamedTuple):
    connection: Connection
    has_new_lake: bool


def connect_as_told(
    workspace: Workspace, slug: str, told: Told, changes: Mapping[str, str], lake: str = "", *, who: str
) -> Connected:
    """Connect a source as Segment's settings say, to the lake that they mean; it is made if it is not there.

    Nothing is changed if anything is wrong. Whoever has opened the workspace before does not see a new lake.
    """
    source = workspace.sources.get(slug)
    if told.source_id not in ("", source.id):
        raise InvalidSettingsError(
            f"the settings are those of Segment's source {told.source_id}, and {slug} has the id {source.id}: its "
            "archive and its tables would lie in other folders",
            fix=f"`eventlake source add SLUG --id {told.source_id}` makes a source with that id; "
            "or remove sourceId from the file",
        )
    if workspace.settings.wrong_lakes:  # which may be the very lake
        raise workspace.connections.no_lake(next(iter(workspace.settings.wrong_lakes)))
    settings = _validated(told.lake)
    name, text = _lake_for(workspace, told.lake, settings, lake)
    opened = library.Workspace(workspace.folder, read_settings(tomllib.loads(text), CONFIG), workspace.clock)
    try:
        wanted = {**_of_connection(opened.lake(name).settings, settings), **told.connection, **changes}
        opened.connections.planned(slug, name, wanted)
        if name not in workspace.settings.all_lakes:
            _replace(workspace, text)
        return Connected(Changes(opened, who).connect(slug, name, wanted), name not in workspace.settings.all_lakes)
    finally:
        opened.close()


def _validated(wanted: Mapping[str, Any]) -> LakeSettings:
    try:
        return LakeSettings.model_validate(wanted)
    except ValidationError as error:
        raise InvalidSettingsError(f"no lake can be made of this: {mistakes(error)}", fix="correct it") from error


def _lake_for(workspace: Workspace, wanted: Mapping[str, Any], settings: LakeSettings, name: str) -> tuple[str, str]:
    """The lake in the same place, or a new one; and the settings file with it. A place has one lake at most."""
    lakes = workspace.settings.all_lakes
    text = (workspace.folder / CONFIG).read_text()
    for known, lake in lakes.items():
        if lake.root.rstrip("/") != settings.root.rstrip("/"):
            continue
        unlike = _unlike(lake, settings)
        if unlike:
            raise InvalidSettingsError(
                f"the lake {known} is in {lake.root} already, with other settings: {'; '.join(unlike)}",
                fix=f"let eventlake.toml and the file agree; what the file leaves out is as the lake {known} has it",
            )
        if name not in ("", known):
            raise InvalidSettingsError(
                f"the lake in {lake.root} is called {known}", fix=f"say {known} instead of {name}, or leave it out"
            )
        return known, text
    if name in lakes:
        raise InvalidSettingsError(
            f"the lake {name!r} is another one: {lakes[name].root}", fix="choose another name, or leave it out"
        )
    name = name or lake_name(wanted, lakes)
    return name, text + lake_section(name, wanted)


def _unlike(lake: LakeSettings, wanted: LakeSettings) -> list[str]:
    """In what a lake is not as it is wanted. What it leaves open, or is not asked for, is no difference."""
    compared = {
        "dialect": (lake.dialect, wanted.dialect),
        "region": (lake.aws.region, wanted.aws.region),
        "role": (lake.aws.role_arn, wanted.aws.role_arn),
        "catalog": (lake.catalog.kind, wanted.catalog.kind),
        "account of the catalog": (
            getattr(lake.catalog, "catalog_id", None),
            getattr(wanted.catalog, "catalog_id", None),
        ),
        "runner": (lake.runner.kind, wanted.runner.kind if _cluster_of(wanted) else None),
    }
    return [
        f"{what} {here}, not {there}" for what, (here, there) in compared.items() if here and there and here != there
    ]


def _of_connection(lake: LakeSettings, wanted: LakeSettings) -> dict[str, str]:
    """Segment has a cluster for each source, of several over one bucket perhaps; here a lake has one, for the most."""
    cluster_id = _cluster_of(wanted)
    return {"emr_cluster_id": cluster_id} if cluster_id not in ("", _cluster_of(lake)) else {}


def _cluster_of(lake: LakeSettings) -> str:
    return lake.runner.cluster_id if lake.runner.kind == "emr" else ""


def _replace(workspace: Workspace, text: str) -> None:
    """Write the settings file, whole or not at all."""
    file = workspace.folder / CONFIG
    aside = file.with_name(f".{uuid.uuid4().hex}")
    private.make_file(aside)
    aside.write_text(text)
    aside.chmod(file.stat().st_mode)
    aside.replace(file)
