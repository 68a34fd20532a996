"""The settings of a connection as fields of a form."""

from enum import Enum
from typing import Any, Literal, NamedTuple, get_args, get_origin

from eventlake.control.connections import Connection
from eventlake.control.settings import ConnectionSettings

# As Segment's and RudderStack's own pages call them.
_TITLES = {
    "database": "Glue Database Name",
    "table_prefix": "Table Prefix",
    "date_partition": "Date Partition",
    "partition_by_slug": "Partition by Slug Name",
    "table_naming": "Table Naming",
    "namespace": "Namespace",
    "time_window_layout": "Time Window Layout",
    "skip_tracks_table": "Skip Tracks Table",
    "skip_users_table": "Skip Users Table",
    "schedule": "Sync Schedule",
    "start_at": "Sync Starting At",
    "exclude_window": "Exclude Window",
    "lookback_days": "Look-back",
    "new_tables_per_run": "New Tables per Sync",
    "emr_cluster_id": "EMR Cluster ID",
}
_SCHEDULE = ("schedule", "time_zone", "start_at", "exclude_window")


class SettingField(NamedTuple):
    name: str
    title: str
    help: str
    value: str
    choices: list[str]
    wrong: str


class Form(NamedTuple):
    """The settings that can be saved, in groups, and those for which tables that exist have to be written anew."""

    groups: dict[str, list[SettingField]]
    fixed: list[SettingField]


def form(
    connection: Connection, *, is_loaded: bool, given: dict[str, str] | None = None, wrong: dict[str, str] | None = None
) -> Form:
    """All settings; with what was given instead of what is saved, and what is wrong with it."""
    settings = connection.settings
    groups: dict[str, list[SettingField]] = {"Schedule": [], "Fixed once loaded": [], "Loading": []}
    for name, info in type(settings).model_fields.items():
        is_fixed = name in settings.fixed_once_loaded
        group = "Schedule" if name in _SCHEDULE else "Fixed once loaded" if is_fixed else "Loading"
        groups[group].append(
            SettingField(
                name,
                title_of(name),
                (info.description or "").replace("`", ""),
                (given or {}).get(name, text_of(getattr(settings, name))),
                _choices(info.annotation),
                (wrong or {}).get(name, ""),
            )
        )
    return Form(groups, groups.pop("Fixed once loaded") if is_loaded else [])


def title_of(name: str) -> str:
    return _TITLES.get(name) or name.replace("_", " ").capitalize()


def changed(settings: ConnectionSettings, given: dict[str, str]) -> dict[str, str]:
    """What of a form differs from what is saved."""
    return {
        name: given[name].strip()
        for name in type(settings).model_fields
        if name in given and given[name].strip() != text_of(getattr(settings, name))
    }


def _choices(annotation: Any) -> list[str]:
    if annotation is bool:
        return ["true", "false"]
    if get_origin(annotation) is Literal:
        return [str(value) for value in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(one.value) for one in annotation]
    return []


def text_of(value: Any) -> str:
    if value is None:
        return "unlimited"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value.value) if isinstance(value, Enum) else str(value)
