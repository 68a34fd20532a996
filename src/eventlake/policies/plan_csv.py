"""Plans as spreadsheets: a row for each property, with the columns of Segment's editor.

An event without properties has a row of its own; so has one that must have properties, none of which it must have.
Properties of objects are written with dots, those of the items of an array with `$` for the item: `products.$.sku`.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from eventlake.policies.plan import Plan, PlanError, Rule, RuleType, of_rules
from eventlake.policies.trees import Path

COLUMNS = (
    "Event Type",
    "Event Name",
    "Event Version",
    "Event Description",
    "Property Name",
    "Property Description",
    "Property Status",
    "Property Data Type",
    "Permitted Values",
)
_ABOUT = ("Event Type", "Event Name", "Event Version", "Property Name")
_HAS_COLUMNS = frozenset(
    {"$schema", "type", "properties", "required", "description", "items", "enum", "pattern", "format"}
)
MAX_BYTES = 15_000_000  # as at Segment's
MAX_ROWS = 100_000

_TYPES = ("any", "array", "object", "boolean", "integer", "number", "string", "null", "date-time", "enum")
_RULE_TYPES = get_args(RuleType)
_MOST_ERRORS = 20


def decoded(name: str, content: bytes) -> Plan:
    """A plan from a CSV file. Raises PlanError with the line of each row that cannot be right."""
    if len(content) > MAX_BYTES:
        raise PlanError(f"more than {MAX_BYTES // 1_000_000} MB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlanError(f"not UTF-8: byte {error.start}") from error
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    events: dict[tuple[str, str, int], dict[str, Any]] = {}
    told: dict[tuple[str, ...], int] = {}  # in which line what a row is about was told
    problems: list[str] = []
    try:
        header = next(rows, [])
        places = _places(header)
        for row in rows:
            if rows.line_num > MAX_ROWS:
                raise PlanError(f"more than {MAX_ROWS:,} rows")
            try:
                if any(cell.strip() for cell in row[len(header) :]):
                    raise ValueError(f"there are {len(row)} cells, and {len(header)} columns")
                cells = {column: row[place].strip() for column, place in places.items() if place < len(row)}
                about = tuple(cells.get(column, "") for column in _ABOUT)
                if cells.get("Property Name") and told.setdefault(about, rows.line_num) != rows.line_num:
                    raise ValueError(f"{cells['Property Name']!r} is in line {told[about]} already")
                _take(cells, events)
            except ValueError as error:
                problems.append(f"line {rows.line_num}: {error}")
    except csv.Error as error:
        problems.append(f"line {rows.line_num}: {error}")
    if problems:
        more = [f"and {len(problems) - _MOST_ERRORS} more"] if len(problems) > _MOST_ERRORS else []
        raise PlanError("\n".join(problems[:_MOST_ERRORS] + more))
    made = [Rule(kind, schema, key, version) for (kind, key, version), schema in events.items()]  # type: ignore[arg-type]
    return of_rules(name, made)


def _places(header: list[str]) -> dict[str, int]:
    """Where each column is; their order and their capitals do not matter."""
    known = {_bare(column): column for column in COLUMNS}
    found = {known[_bare(name)]: place for place, name in enumerate(header) if _bare(name) in known}
    missing = {"Event Name", "Property Name"} - found.keys()
    if missing:
        raise PlanError(f"line 1: there is no column {' and no column '.join(sorted(missing))}")
    return found


def _bare(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def _take(row: dict[str, str], events: dict[tuple[str, str, int], dict[str, Any]]) -> None:
    if not any(row.values()):
        return
    kind = (row.get("Event Type") or "track").upper()
    if kind not in _RULE_TYPES:
        raise ValueError(f"{row['Event Type']!r} is no type of event: {', '.join(_RULE_TYPES).lower()}")
    key = row.get("Event Name", "") if kind not in ("COMMON", "IDENTIFY", "GROUP") else ""
    if kind == "TRACK" and not key:
        raise ValueError("the event has no name")
    version = row.get("Event Version") or "1"
    if not (version.isascii() and version.isdigit() and int(version) > 0):
        raise ValueError(f"{version!r} is no version: 1, 2, 3…")
    part = "traits" if kind in ("IDENTIFY", "GROUP") else "properties"
    whole = events.setdefault((kind, key, int(version)), _object())
    if told := row.get("Event Description"):
        whole["description"] = told
    below = whole["properties"].setdefault(part, _object()) if kind != "COMMON" else whole
    if row.get("Property Name"):
        _put(below, tuple(row["Property Name"].split(".")), row)
    if kind != "COMMON" and (below.get("required") or _is_required(row)):
        whole["required"] = [part]  # what lacks all of it lacks what is required of it


def _is_required(row: dict[str, str]) -> bool:
    status = (row.get("Property Status") or "optional").lower()
    if status not in ("required", "optional"):
        raise ValueError(f"{row['Property Status']!r} is no status: required or optional")
    return status == "required"


def _put(schema: dict[str, Any], path: Path, row: dict[str, str]) -> None:
    """Plan a property below an object."""
    key, *rest = path
    if not key or key == "$":
        raise ValueError(f"{row['Property Name']!r} is no property")
    is_required = _is_required(row)
    if not rest:
        schema["properties"][key] = {**schema["properties"].get(key, {}), **_property(row)}
        if is_required:
            schema["required"] = sorted({*schema.get("required", ()), key})
        return
    inner = schema["properties"].setdefault(key, {})
    if rest[0] == "$":
        inner.setdefault("type", "array")
        if rest[1:]:
            inner = inner.setdefault("items", _object())
            inner.setdefault("properties", {})
            _put(inner, tuple(rest[1:]), row)
        else:
            inner["items"] = _property(row)
        return
    inner.setdefault("type", "object")
    inner.setdefault("properties", {})
    _put(inner, tuple(rest), row)


def _property(row: dict[str, str]) -> dict[str, Any]:
    kinds = [kind.strip().lower() for kind in (row.get("Property Data Type") or "any").split(",")]
    unknown = [kind for kind in kinds if kind not in _TYPES]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no data type: {', '.join(_TYPES)}")
    found: dict[str, Any] = {}
    if told := row.get("Property Description"):
        found["description"] = told
    permitted = row.get("Permitted Values")
    if "date-time" in kinds:
        found["format"] = "date-time"
    types = ["string" if kind in ("date-time", "enum") else kind for kind in kinds]
    if "any" not in kinds:
        found["type"] = types[0] if len(types) == 1 else types
    if permitted and "enum" in kinds:
        found["enum"] = [one.strip() for one in permitted.split("|")]
    elif permitted:
        found["pattern"] = permitted
    return found


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


def encoded(plan: Plan) -> str:
    """A plan as CSV. What a spreadsheet has no column for is not in it."""
    out = io.StringIO(newline="")
    rows = csv.writer(out)
    rows.writerow(COLUMNS)
    for rule in plan.rules:
        schema = rule.json_schema if isinstance(rule.json_schema, dict) else {}
        head = (rule.type.lower(), rule.key, rule.version, _text(schema.get("description")))
        part = "traits" if rule.type in ("IDENTIFY", "GROUP") else "properties"
        below = schema if rule.type == "COMMON" else schema.get("properties", {}).get(part, {})
        told = list(_rows(below, ()))
        if not told or (part in schema.get("required", ()) and not below.get("required")):
            told.insert(0, ("", "", "required" if part in schema.get("required", ()) else "", "", ""))
        rows.writerows([*head, *row] for row in told)
    return out.getvalue()


def left_out(plan: Plan) -> set[str]:
    """Keywords of a plan for which a spreadsheet has no column, and which its CSV therefore lacks."""
    return set().union(*(_left_out(rule.json_schema) for rule in plan.rules))


def _left_out(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    found = schema.keys() - _HAS_COLUMNS
    if schema.get("format", "date-time") != "date-time":
        found = found | {"format"}
    if not all(isinstance(one, str) for one in schema.get("enum", ())):
        found = found | {"enum"}
    properties = schema.get("properties")
    inner = [*(properties.values() if isinstance(properties, dict) else ()), schema.get("items")]
    return found.union(*map(_left_out, inner))


def _rows(schema: Any, path: Path) -> Iterator[Iterable[str]]:
    if not isinstance(schema, dict):
        return
    required = schema.get("required", ())
    for key, inner in (schema.get("properties") or {}).items():
        if not isinstance(inner, dict):
            continue
        here = (*path, key)
        yield ".".join(here), *_described(inner, key in required)
        yield from _rows(inner, here)
        items = inner.get("items")
        if isinstance(items, dict):
            yield ".".join((*here, "$")), *_described(items, False)
            yield from _rows(items, (*here, "$"))


def _described(schema: dict[str, Any], is_required: bool) -> Iterable[str]:
    kinds = schema.get("type", "any")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    if schema.get("format") == "date-time":
        kinds = ["date-time" if kind == "string" else kind for kind in kinds]
    enum = schema.get("enum")
    if isinstance(enum, list):
        kinds = ["enum" if kind in ("string", "any") else kind for kind in kinds]
    permitted = "|".join(map(str, enum)) if isinstance(enum, list) else _text(schema.get("pattern"))
    status = "required" if is_required else "optional"
    return _text(schema.get("description")), status, ", ".join(kinds), permitted


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
