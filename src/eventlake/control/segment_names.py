"""The settings of Segment Data Lakes, by the names and values that Segment has for them. Pure."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from eventlake.errors import InvalidSettingsError
from eventlake.lake.layout import DatePartition
from eventlake.settings.segment_names import OF_LAKES, in_our_words

# Of a connection here, too.
_OF_CONNECTIONS = {
    "datePartition": "date_partition",
    "glueDatabase": "database",
    "partitionBySlugName": "partition_by_slug",
    "tablePrefix": "table_prefix",
    "emrClusterId": "emr_cluster_id",
}
_OF_LAKES = {name: place for name, place in OF_LAKES.items() if name not in _OF_CONNECTIONS}
_DATE = "year=__segment_received_year/month=__segment_received_month/day=__segment_received_day"
_PARTITIONS = {
    "day=__segment_day/hr=__segment_hr": DatePartition.DAY_HOUR,
    f"{_DATE}/hr=__segment_received_hour": DatePartition.YEAR_MONTH_DAY_HOUR,
    _DATE: DatePartition.YEAR_MONTH_DAY,
    "day=__segment_day": DatePartition.DAY,
}


class Told(NamedTuple):
    """What Segment's settings say, in ours."""

    lake: dict[str, Any]  # as [lakes.NAME] has it
    connection: dict[str, str]
    enabled: bool
    source_id: str  # Segment's, if it is told


def translated(changes: Mapping[str, str]) -> dict[str, str]:
    """Settings of a connection, of which some have Segment's names."""
    found: dict[str, str] = {}
    for name, value in changes.items():
        if name in _OF_LAKES:
            raise InvalidSettingsError(
                f"{name} is a setting of the lake, and not of one connection",
                fix=f"put {name} into [lakes.NAME] in eventlake.toml, or into [lake] for the default lake; `eventlake "
                "connect SOURCE --from-segment FILE` makes a lake from Segment's settings",
                fields={name: "a setting of the lake"},
            )
        ours = _OF_CONNECTIONS.get(name, name)
        if ours in found:
            raise InvalidSettingsError(f"{ours} is given twice", fix="give it once")
        known = _PARTITIONS.get(value.strip()) if ours == "date_partition" else None
        found[ours] = known.value if known else value
    return found


def told_by(document: Any) -> Told:
    """What a document of Segment's API says: a destination of the Public API, of the Config API, or bare settings."""
    settings, enabled, source_id = _settings_in(document)
    unknown = sorted(settings.keys() - OF_LAKES.keys() - _OF_CONNECTIONS.keys())
    missing = [name for name in ("s3Bucket", "awsRegion") if not settings.get(name)]
    if missing:
        told = f"; it has {', '.join(unknown[:10])}" if unknown else ""
        raise InvalidSettingsError(
            f"these are not the settings of a Segment Data Lake: {' and '.join(missing)} missing{told}",
            fix="give the JSON of the destination as Segment's API shows it, with its settings",
        )
    given = {name: value for name, value in settings.items() if value not in (None, "")}
    lake = in_our_words({"catalog": {"kind": "glue"}} | {name: given[name] for name in OF_LAKES if name in given})
    texts = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in given.items()
        if name in _OF_CONNECTIONS and name not in OF_LAKES
    }
    return Told(lake, translated(texts), enabled, source_id)


def _settings_in(document: Any) -> tuple[dict[str, Any], bool, str]:
    for one in _objects(document):
        enabled = one.get("enabled") is not False
        source_id = one["sourceId"] if isinstance(one.get("sourceId"), str) else ""
        if isinstance(one.get("settings"), dict):
            return one["settings"], enabled, source_id
        if isinstance(one.get("config"), list):  # of the older API: names are paths
            members = [member for member in one["config"] if isinstance(member, dict)]
            settings = {str(member.get("name")).rpartition("/")[2]: member.get("value") for member in members}
            return settings, enabled, source_id
        if "s3Bucket" in one:
            return one, enabled, source_id
    raise InvalidSettingsError(
        "there are no settings in it", fix="give the JSON of the destination as Segment's API shows it"
    )


def _objects(document: Any) -> Iterator[dict[str, Any]]:
    if isinstance(document, dict):
        yield document
        for name in ("data", "destination"):
            yield from _objects(document.get(name))


def lake_name(lake: Mapping[str, Any], taken: Mapping[str, Any]) -> str:
    """A name for a lake that has none: that of its bucket."""
    bare = re.sub(r"[^a-z0-9_-]+", "-", lake["root"].removeprefix("s3://").lower()).strip("-_")[:40] or "lake"
    number, name = 1, bare
    while name in taken:
        number += 1
        name = f"{bare}-{number}"
    return name
