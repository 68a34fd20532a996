"""Views as Athena keeps them in Glue: tables without data, with a query in a comment. Pure."""

import base64
import json

from eventlake.catalog import view_sql
from eventlake.catalog.described import SEGMENT_TYPES, SOURCE, Described
from eventlake.catalog.glue_tables import as_input
from eventlake.catalog.warehouse import View

LAKE = "eventlake.lake"  # a view without it is not ours
LONGEST = 262_144  # bytes of a query that Athena takes

_FIXED: Described = {
    "TableType": "VIRTUAL_VIEW",
    "ViewExpandedText": "/* Presto View */",
    "PartitionKeys": [],
}
_MARKS = {"presto_view": "true", "comment": "Presto View"}


def table_input(view: View, database: str, source_id: str, root: str, *, longest: int = LONGEST) -> Described | None:
    """The view as Glue takes it; None if Athena would not."""
    sql = view_sql.select(view, view_sql.ATHENA)
    if len(sql.encode()) > longest:
        return None
    kinds = {name: view_sql.ATHENA.types[kind] for name, kind in view.columns.items()}
    definition = {
        "originalSql": sql,
        "catalog": "awsdatacatalog",
        "schema": database,
        "columns": [{"name": name, "type": kind} for name, kind in kinds.items()],
    }
    text = base64.b64encode(json.dumps(definition).encode()).decode()
    columns = [{"Name": name, "Type": SEGMENT_TYPES.name(kind)} for name, kind in view.columns.items()]
    return {
        **_FIXED,
        "Name": view.name,
        "ViewOriginalText": f"/* Presto View: {text} */",
        "Parameters": {**_MARKS, SOURCE: source_id, LAKE: root},
        "StorageDescriptor": {"Columns": columns, "Location": "", "SerdeInfo": {}},
    }


def changed(wanted: Described, table: Described | None) -> Described:
    """A view with another query. What people added to it stays."""
    kept = as_input(table or {})
    return {**kept, **wanted, "Parameters": {**kept.get("Parameters", {}), **wanted["Parameters"]}}


def is_ours(table: Described, source_id: str, root: str) -> bool:
    """Whether this lake made a view for this source."""
    parameters = table.get("Parameters", {})
    return (parameters.get(LAKE), parameters.get(SOURCE)) == (root, source_id)


def is_same(table: Described, wanted: Described) -> bool:
    """Whether a view is as it should be; what people added to it does not matter."""
    return all(table.get(key) == wanted[key] for key in ("TableType", "ViewOriginalText"))
