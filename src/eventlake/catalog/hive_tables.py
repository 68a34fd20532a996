"""Tables as a Hive metastore takes and gives them. Pure: from what `described` tells of them to thrift, and back.

A metastore remembers less of a column than Glue does. So what else we know of columns is in parameters of their table,
in parts, as Spark does it: before Hive 2.3 a parameter has at most 4,000 characters. It is ASCII, whatever the events
hold: many metastores are in databases that know Latin letters only.
"""

import json
import re
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any
from urllib.parse import unquote

from pymetastore.hive_metastore import ttypes as hive

from eventlake.catalog import described
from eventlake.catalog.described import Described
from eventlake.lake.report_columns import REPORT_COLUMNS

LONGEST_DATABASE, LONGEST_TABLE, LONGEST_COLUMN = 128, 256, 767
VERSION = "transient_lastDdlTime"  # which Hive, Spark and we change whenever we change a table

_LONGEST_PARAMETER = 4000
_COLUMNS = "eventlake.columns"
_SCHEMA = "spark.sql.sources.schema"
# What Hive may take for true without looking at files, though a sync has written to them since.
_TRUSTED = "COLUMN_STATS_ACCURATE"
_COUNTED = (_TRUSTED, "numFiles", "numRows", "rawDataSize", "totalSize")
_ESCAPED = frozenset("\"#%'*/:=?\\\x7f{[]^").union(map(chr, range(1, 32)))  # in names of partitions

MOST_AT_ONCE = 250  # partitions
_COLUMNS_AT_ONCE = 100_000  # over all partitions of a call: a metastore takes 100 MB, and each has all columns


def as_told(table: Any) -> Described:
    """A table of a metastore as `described` speaks of it."""
    parameters = dict(table.parameters or {})
    known = _remembered(parameters)
    columns = [_column(field) for field in table.sd.cols or ()]
    for column in columns:
        if column["Name"] in known:
            column["Parameters"] = known[column["Name"]]
    return {
        "DatabaseName": table.dbName,
        "Name": table.tableName,
        "TableType": table.tableType,
        "Parameters": {key: value for key, value in parameters.items() if not _is_our_own(key)},
        "PartitionKeys": [_column(field) for field in table.partitionKeys or ()],
        "StorageDescriptor": {
            "Columns": columns,
            "Location": _plain(table.sd.location or ""),
            "InputFormat": table.sd.inputFormat,
            "OutputFormat": table.sd.outputFormat,
            "SerdeInfo": {
                "SerializationLibrary": table.sd.serdeInfo.serializationLib,
                "Parameters": table.sd.serdeInfo.parameters or {},
            },
        },
    }


def as_table(new: Described, database: str, found: Any | None, *, scheme: str = "s3") -> Any:
    """A table for a metastore that has `found`, of which everything stays that `new` does not speak of."""
    table = copy(found) if found else hive.Table(owner="eventlake", createTime=0, lastAccessTime=0, retention=0)
    table.dbName, table.tableName, table.tableType = database, new["Name"], new["TableType"]
    table.partitionKeys = [_field(key) for key in new["PartitionKeys"]]
    storage = new["StorageDescriptor"]
    table.sd = _storage(storage, storage["Location"], table.sd, scheme)
    version = {VERSION: table.parameters[VERSION]} if found and VERSION in (found.parameters or {}) else {}
    table.parameters = {**new["Parameters"], **_in_parts(_COLUMNS, _to_remember(storage["Columns"])), **version}
    if not table.partitionKeys:
        # A metastore counts the files of such a table when it is made, and never again: Spark would plan by it.
        table.parameters = {key: value for key, value in table.parameters.items() if key not in _COUNTED}
        # Files may be in folders that are no partitions. Spark looks into them if it is told to.
        table.sd.serdeInfo.parameters["recursiveFileLookup"] = "true"
    return table


def as_partition(
    table: Described,
    database: str,
    values: Sequence[str],
    found: Any | None = None,
    *,
    folder: str = "",
    scheme: str = "s3",
) -> Any:
    """A partition of a table, with its columns, in a `folder` of its own, by default where Hive would look for it.

    As long as they are the same as the table's, with their comments, a metastore keeps them once for all partitions.
    """
    keys = described.keys_of(table)
    folder = folder or "/".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
    storage = table["StorageDescriptor"]
    partition = copy(found) if found else hive.Partition(createTime=0, lastAccessTime=0)
    partition.dbName, partition.tableName, partition.values = database, table["Name"], list(values)
    partition.sd = _storage(storage, f"{storage['Location']}/{folder}", partition.sd, scheme)
    partition.parameters = {key: value for key, value in (partition.parameters or {}).items() if key != _TRUSTED}
    return partition


def newer(table: Any, found: Any, now: int) -> Any:
    """The table that comes after another, with a version that none had before."""
    new, old = copy(table), (found.parameters or {}).get(VERSION, "")
    new.parameters = {**table.parameters, VERSION: str(max(now, int(old) + 1) if old.isdecimal() else now)}
    return new


def cut(table: Any, found: Any) -> Any | None:
    """The table without the first column whose type changes, and those after it; None if no type does.

    A metastore refuses types that do not go together with those that a table has in the same places. What comes new
    after the last of them may have any.
    """
    pairs = zip(found.sd.cols, table.sd.cols, strict=False)
    for number, (old, new) in enumerate(pairs):
        if old.type != new.type:
            shorter = copy(table)
            shorter.sd = copy(table.sd)
            shorter.sd.cols = table.sd.cols[:number]
            return shorter
    return None


def partitions_at_once(table: Described) -> int:
    """How many partitions of a table one call may have."""
    return max(1, min(MOST_AT_ONCE, _COLUMNS_AT_ONCE // max(1, len(described.types_of(table)))))


def partition_names(table: Described, values: Sequence[Sequence[str]]) -> list[str]:
    """What Hive calls partitions.

    >>> partition_names({"PartitionKeys": [{"Name": "day"}, {"Name": "hr"}]}, [("2026-11-15", "10:30")])
    ['day=2026-11-15/hr=10%3A30']
    """
    keys = [_escaped(key) for key in described.keys_of(table)]
    return ["/".join(f"{key}={_escaped(value)}" for key, value in zip(keys, one, strict=True)) for one in values]


def values_of(name: str) -> tuple[str, ...]:
    """The values of a partition by its name.

    >>> values_of("day=2026-11-15/hr=10%3A30")
    ('2026-11-15', '10:30')
    """
    return tuple(unquote(part.partition("=")[2]) for part in name.split("/"))


def _escaped(text: str) -> str:
    return "".join(f"%{ord(letter):02X}" if letter in _ESCAPED else letter for letter in text)


def _storage(storage: Described, location: str, found: Any | None, scheme: str) -> Any:
    """How and where files are; of what is there, a location stays that is only written in another way."""
    empty = hive.StorageDescriptor(compressed=False, numBuckets=-1, bucketCols=[], sortCols=[], parameters={})
    new = copy(found) if found else empty
    new.cols = [_field(column) for column in storage["Columns"]]
    wanted = re.sub(r"^s3://", f"{scheme}://", location)
    if _written_alike(new.location or "") != wanted:
        new.location = wanted
    new.inputFormat, new.outputFormat = storage["InputFormat"], storage["OutputFormat"]
    serde = storage["SerdeInfo"]
    new.serdeInfo = copy(new.serdeInfo) or hive.SerDeInfo(parameters={})
    new.serdeInfo.serializationLib = serde["SerializationLibrary"]
    new.serdeInfo.parameters = {**(new.serdeInfo.parameters or {}), **serde["Parameters"]}
    return new


def _written_alike(location: str) -> str:
    """Hadoop writes files of a disk with one slash."""
    return re.sub(r"^file:/(?!/)", "file:///", location)


def _plain(location: str) -> str:
    return re.sub(r"^s3[an]://", "s3://", _written_alike(location))


def _column(field: Any) -> Described:
    comment = {} if field.comment is None else {"Comment": field.comment}
    return {"Name": field.name, "Type": field.type, **comment}


def _field(column: Described) -> Any:
    return hive.FieldSchema(column["Name"], column["Type"], column.get("Comment"))


def _is_our_own(key: str) -> bool:
    return key == VERSION or key.startswith(f"{_COLUMNS}.")


def _to_remember(columns: Sequence[Described]) -> str:
    known = [(column["Name"], column["Parameters"]) for column in columns if "Parameters" in column]
    entries = [[name, own[described.POINTER], json.loads(own.get(described.HISTORY, "[]"))] for name, own in known]
    return json.dumps(entries, separators=(",", ":")) if entries else ""


def _remembered(parameters: Mapping[str, str]) -> dict[str, Described]:
    """What is known of columns, by their names; nothing, if somebody else changed it."""
    try:
        count = int(parameters.get(f"{_COLUMNS}.numParts", "0"))
        text = "".join(parameters[f"{_COLUMNS}.part.{number}"] for number in range(count))
        return {
            name: {described.POINTER: pointer, described.HISTORY: json.dumps(events)}
            for name, pointer, events in json.loads(text or "[]")
        }
    except (KeyError, TypeError, ValueError):
        return {}


def _in_parts(key: str, text: str) -> dict[str, str]:
    """A long text in parameters, as Spark cuts it; in none, if there is no text."""
    parts = [text[start : start + _LONGEST_PARAMETER] for start in range(0, len(text), _LONGEST_PARAMETER)]
    count = {f"{key}.numParts": str(len(parts))} if parts else {}
    return {**count, **{f"{key}.part.{number}": part for number, part in enumerate(parts)}}


# The report of a run is in a folder of its own, and Hive, Trino and Spark look into no folders below a partition's.
_REPORT_KEYS = ("source_id", "day", "run_id")


def _spark_type(kind: str) -> Any:
    """A type of Hive's as Spark writes it."""
    if kind.startswith("array<"):
        return {"type": "array", "elementType": _spark_type(kind[6:-1]), "containsNull": True}
    if kind.startswith("struct<"):
        fields = [field.split(":") for field in kind[7:-1].split(",")]
        return {"type": "struct", "fields": [_spark_field(name, inner) for name, inner in fields]}
    return "long" if kind == "bigint" else kind


def _spark_field(name: str, kind: str) -> Described:
    return {"name": name, "type": _spark_type(kind), "nullable": True, "metadata": {}}


def _for_spark() -> dict[str, str]:
    """What lets Spark read reports by itself: Hive's class for JSON is not in it."""
    own = [(column.name, column.hive) for column in REPORT_COLUMNS if column.hive and column.name not in _REPORT_KEYS]
    fields = [_spark_field(name, kind) for name, kind in (*own, *((key, "string") for key in _REPORT_KEYS))]
    keys = {f"{_SCHEMA}.partCol.{number}": key for number, key in enumerate(_REPORT_KEYS)}
    return {
        "spark.sql.sources.provider": "json",
        "spark.sql.partitionProvider": "catalog",
        **_in_parts(_SCHEMA, json.dumps({"type": "struct", "fields": fields})),
        f"{_SCHEMA}.numPartCols": str(len(keys)),
        **keys,
    }


REPORTS = described.reports(_REPORT_KEYS, "org.apache.hive.hcatalog.data.JsonSerDe", marks=_for_spark())
