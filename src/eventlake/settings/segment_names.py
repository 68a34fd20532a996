"""The settings of a lake by the names that Segment has for them. Pure."""

from collections.abc import Mapping
from typing import Any

# Where they are in a lake's section of eventlake.toml.
OF_LAKES = {
    "s3Bucket": "root",
    "awsRegion": "aws.region",
    "iamRoleArn": "aws.role_arn",
    "glueCatalogId": "catalog.catalog_id",
    "emrClusterId": "runner.cluster_id",
}
# Those of the default lake are in sections of their own.
OF_DEFAULT_LAKE = OF_LAKES | {
    "s3Bucket": "lake.root",
    "glueCatalogId": "catalog.glue_catalog_id",
    "emrClusterId": "emr.cluster_id",
}
_KINDS = {"catalog.catalog_id": "glue", "catalog.glue_catalog_id": "glue", "runner.cluster_id": "emr"}


def in_our_words(section: Any) -> Any:
    """The section of a lake, with what it has by Segment's names in its place."""
    return _moved(section, section, OF_LAKES) if isinstance(section, Mapping) else section


def with_default_lake_in_our_words(values: Any) -> Any:
    """All settings, with what [lake] has by Segment's names in its place."""
    section = values.get("lake") if isinstance(values, Mapping) else None
    if not isinstance(section, Mapping) or not section.keys() & OF_LAKES.keys():
        return values
    rest = {**values, "lake": {name: value for name, value in section.items() if name not in OF_LAKES}}
    found = _moved(rest, section, OF_DEFAULT_LAKE)
    return {"runner": "emr", **found} if "emrClusterId" in section else found


def _moved(into: Mapping[str, Any], section: Mapping[str, Any], places: Mapping[str, str]) -> dict[str, Any]:
    found = {name: value for name, value in into.items() if name not in OF_LAKES}
    for name, place in places.items():
        if name not in section:
            continue
        value = f"s3://{section[name]}" if name == "s3Bucket" else section[name]
        table, _, key = place.rpartition(".")
        beside = found.get(table, {}) if table else found
        if not isinstance(beside, Mapping):
            continue  # which is a mistake of its own, and told as such
        inner = dict(beside) if table else found
        if key in inner:
            raise ValueError(f"{name} and {place} are the same: keep one of them")
        inner[key] = value
        if place in _KINDS:
            inner.setdefault("kind", _KINDS[place])
        if table:
            found[table] = inner
    return found
