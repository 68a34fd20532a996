"""Tables as Hive's metastore describes them, and Glue, which took it over. Pure: what to ask for, given what is there.

The form is that of Glue's API. Which of it a Hive metastore has, and how, `hive_tables` tells.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from eventlake.catalog.base import CatalogTable, SchemaEvent, TableChange
from eventlake.errors import InvalidSettingsError
from eventlake.lake.report_columns import REPORT_COLUMNS
from eventlake.schema.evolve import Column, TableSchema
from eventlake.schema.types import ColumnType

Described = dict[str, Any]

SOURCE = "eventlake.source_id"  # a table without it is not ours
TABLE_KEY = "eventlake.table_key"
_KEY_BEFORE = "eventlake.segment_type"  # what tables of earlier versions have in place of it
POINTER = "eventlake.pointer"
HISTORY = "eventlake.history"
_ADOPTED = "eventlake.adopted"  # somebody else made it, and has files in it
_INCOMPLETE = "eventlake.incomplete"  # until all partitions that it began with are there

_PARQUET = "org.apache.hadoop.hive.ql.io.parquet"
_FORMAT: Described = {
    "InputFormat": f"{_PARQUET}.MapredParquetInputFormat",
    "OutputFormat": f"{_PARQUET}.MapredParquetOutputFormat",
    "SerdeInfo": {
        "SerializationLibrary": f"{_PARQUET}.serde.ParquetHiveSerDe",
        "Parameters": {"serialization.format": "1"},
    },
}


def is_ours(table: Described, root: str) -> bool:
    """Whether this lake made a table: another workspace, or whoever wrote there before, may use the same database."""
    location = table.get("StorageDescriptor", {}).get("Location", "")
    return SOURCE in table.get("Parameters", {}) and location.startswith(f"{root}/")


def refuse_foreign(table: Described | None, change: TableChange, root: str, catalog: str) -> None:
    """Two must not write to one table. One that is adopted was somebody else's, and is ours from now on."""
    if table is None or (change.adopted and not is_ours(table, root)):
        return
    if not is_ours(table, root) or table["Parameters"][SOURCE] != change.source_id:
        raise InvalidSettingsError(
            f"{change.database}.{change.table} in {catalog} was not made by this lake for this source",
            fix=f"two must not write to one table: choose another database, or drop that table in {catalog}",
        )


def is_adopted(table: Described) -> bool:
    """Whether somebody else made a table that is ours now. Its partitions may hold files of theirs."""
    return _ADOPTED in table.get("Parameters", {})


def released(table: Described) -> Described:
    """A table that was taken over, as far as it is no longer ours: what its makers have in it stays."""
    storage = table["StorageDescriptor"]
    columns = [_without(column, POINTER, HISTORY) for column in storage["Columns"]]
    return {
        **_without(table, SOURCE, TABLE_KEY, _KEY_BEFORE, _ADOPTED, _INCOMPLETE),
        "StorageDescriptor": {**storage, "Columns": columns},
    }


def _without(thing: Described, *names: str) -> Described:
    """A table or a column without some parameters."""
    rest = {name: value for name, value in thing.get("Parameters", {}).items() if name not in names}
    bare = {name: value for name, value in thing.items() if name != "Parameters"}
    return {**bare, "Parameters": rest} if rest else bare


def is_complete(table: Described) -> bool:
    return _INCOMPLETE not in table.get("Parameters", {})


def completed(table: Described) -> Described:
    return _without(table, _INCOMPLETE)


def begun(table: Described) -> Described:
    """A table that is made anew, of which some partitions are still missing."""
    return {**table, "Parameters": {**table.get("Parameters", {}), _INCOMPLETE: "true"}}


class Types(NamedTuple):
    """What column types are called."""

    text: str = "string"

    def name(self, kind: ColumnType) -> str:
        return self.text if kind is ColumnType.STRING else kind.value


SEGMENT_TYPES, RUDDERSTACK_TYPES = Types(), Types("varchar(65535)")
_NAMED = {kind.value: kind for kind in ColumnType} | dict.fromkeys(
    ("varchar(65535)", "varchar(512)"), ColumnType.STRING
)


def changed(
    table: Described | None,
    change: TableChange,
    location: str,
    *,
    run_id: str,
    at: int,
    types: Types = SEGMENT_TYPES,
    marks: Mapping[str, str] | None = None,
) -> Described:
    """The table after a change. What people added to it stays: comments, parameters, columns of their own."""
    now = table or {}
    storage = dict(now.get("StorageDescriptor", {}))
    columns = [dict(column) for column in storage.get("Columns", ())]
    known = {column["Name"]: column for column in columns}
    for column in change.added:
        if column.name not in known:
            known[column.name] = {"Name": column.name, "Type": types.name(column.type)}
            columns.append(known[column.name])
            _remember(known[column.name], "added", None, run_id, at)
        known[column.name].setdefault("Parameters", {})[POINTER] = column.pointer
    for name, new_type in change.retyped:
        is_theirs = is_adopted(now) and name in known and known[name]["Type"] not in _NAMED
        if name in known and _NAMED.get(known[name]["Type"]) is not new_type and not is_theirs:
            old = known[name]["Type"]
            known[name]["Type"] = types.name(new_type)
            _remember(known[name], "retyped", old, run_id, at)
    ours = {"EXTERNAL": "TRUE", **(marks or {}), SOURCE: change.source_id, TABLE_KEY: change.table_key}
    if table is not None and change.adopted:
        ours[_ADOPTED] = "true"
    if table is None and change.partitions:
        ours[_INCOMPLETE] = "true"
    return {
        **now,
        "Name": change.table,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**_without(now, _KEY_BEFORE).get("Parameters", {}), **ours},
        "PartitionKeys": _keys(now.get("PartitionKeys", ()), change.partition_keys),
        "StorageDescriptor": {**storage, **_FORMAT, "Columns": columns, "Location": location},
    }


def _keys(current: Sequence[Described], names: Sequence[str]) -> list[Described]:
    known = {key["Name"]: key for key in current}
    return [known.get(name, {"Name": name, "Type": "string"}) for name in names]


def _remember(column: Described, change: str, old_type: str | None, run_id: str, at: int) -> None:
    parameters = column.setdefault("Parameters", {})
    events = json.loads(parameters.get(HISTORY, "[]"))
    parameters[HISTORY] = json.dumps([*events, [change, column["Type"], old_type, run_id, at]])


def types_of(table: Described) -> list[tuple[str, str]]:
    return [(column["Name"], column["Type"]) for column in table.get("StorageDescriptor", {}).get("Columns", ())]


def keys_of(table: Described) -> list[str]:
    return [key["Name"] for key in table.get("PartitionKeys", ())]


def by_location(tables: Sequence[Described], root: str) -> dict[str, tuple[tuple[str, ...], dict[str, str]]]:
    """Tables below a root, whoever made them: by location, their partition keys and the types of their columns."""
    found = {}
    for table in tables:
        location = table.get("StorageDescriptor", {}).get("Location", "").rstrip("/")
        if location.startswith(f"{root}/"):
            found[location.removeprefix(f"{root}/")] = (tuple(keys_of(table)), dict(types_of(table)))
    return found


def is_moved(old: Described, new: Described) -> bool:
    places = [str(table["StorageDescriptor"].get("Location", "")).rstrip("/") for table in (old, new)]
    return places[0] != places[1]


def is_retyped(old: Described, new: Described) -> bool:
    """Whether a column has another type than before, or the partitions other keys."""
    types = dict(types_of(new))
    return keys_of(old) != keys_of(new) or any(types.get(name) != kind for name, kind in types_of(old))


def partition(table: Described, values: Sequence[str]) -> Described:
    """A partition of a table, with the table's columns, where Hive would look for it."""
    storage = table["StorageDescriptor"]
    folder = "/".join(f"{key}={value}" for key, value in zip(keys_of(table), values, strict=True))
    columns = [{"Name": name, "Type": kind} for name, kind in types_of(table)]
    return {
        "Values": list(values),
        "StorageDescriptor": {**storage, "Columns": columns, "Location": f"{storage['Location']}/{folder}"},
    }


def ours(tables: Iterable[Described], root: str, source_id: str | None) -> list[CatalogTable]:
    """Of tables, those that this lake made and finished, or those of one source, in order of their names."""
    found = [_catalog_table(table, root) for table in tables if is_ours(table, root) and is_complete(table)]
    return sorted(
        (table for table in found if source_id in (None, table.source_id)),
        key=lambda table: (table.database, table.name),
    )


def _catalog_table(table: Described, root: str) -> CatalogTable:
    parameters = table["Parameters"]
    storage = table["StorageDescriptor"]
    return CatalogTable(
        table["DatabaseName"],
        table["Name"],
        parameters[SOURCE],
        parameters.get(TABLE_KEY) or parameters.get(_KEY_BEFORE, table["Name"]),
        storage["Location"].removeprefix(f"{root}/"),
        tuple(keys_of(table)),
        TableSchema(
            tuple(
                Column(column["Name"], _NAMED[column["Type"]], column.get("Parameters", {}).get(POINTER, ""))
                for column in storage["Columns"]
                if column["Type"] in _NAMED  # others are somebody else's
            )
        ),
    )


def history(table: Described) -> list[SchemaEvent]:
    events = [
        SchemaEvent(column["Name"], change, kind, old_type, run_id, at)
        for column in table["StorageDescriptor"]["Columns"]
        for change, kind, old_type, run_id, at in json.loads(column.get("Parameters", {}).get(HISTORY, "[]"))
    ]
    return sorted(events, key=lambda event: (event.at, event.column))


def reports(keys: Sequence[str], serde: str, marks: Mapping[str, str]) -> Described:
    """The table of sync reports, which are lines of JSON."""
    return {
        "Name": "sync_reports",
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {"EXTERNAL": "TRUE", **marks},
        "PartitionKeys": [{"Name": name, "Type": "string"} for name in keys],
        "StorageDescriptor": {
            "Columns": [
                {"Name": column.name, "Type": column.hive}
                for column in REPORT_COLUMNS
                if column.hive and column.name not in keys
            ],
            "InputFormat": "org.apache.hadoop.mapred.TextInputFormat",
            "OutputFormat": "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            "SerdeInfo": {"SerializationLibrary": serde, "Parameters": {"serialization.format": "1"}},
        },
    }
