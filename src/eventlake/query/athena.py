"""The rows that a query gives on Athena: SQL that is carried out where the lake is, and paid by what it reads."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from eventlake.aws.service import Service
from eventlake.errors import EventLakeError, InvalidSettingsError, TransientError
from eventlake.query.answer import named_apart
from eventlake.workspace import Lake

_DOLLARS = 5 / 1e12  # for each byte that is read, in most regions
_LEAST = 10_000_000  # bytes that are paid for
_PAUSES = (0.2, 0.5, 1.0, 2.0)  # seconds between looks at a query; the last for the rest
_UNDER_WAY = ("QUEUED", "RUNNING")


class Athena(NamedTuple):
    """Where queries are carried out: what is None is as the workgroup has it."""

    workgroup: str = "primary"
    results: str | None = None  # s3://bucket/prefix


class Answer(NamedTuple):
    rows: pa.Table
    read_bytes: int
    seconds: float  # in Athena
    query_id: str

    @property
    def dollars(self) -> float:
        """What it cost, about: other regions have other prices, and commands that read nothing are free."""
        return max(self.read_bytes, _LEAST) * _DOLLARS if self.read_bytes else 0.0


Progress = Callable[[str, int], None]
"""Gets the state of a query and the bytes that it has read."""


def ask(
    lake: Lake,
    sql: str,
    athena: Athena = Athena(),  # noqa: B008 - immutable
    *,
    timeout: float | None = None,
    progress: Progress = lambda *_: None,
) -> Answer:
    """Carry out one statement. Whatever ends the waiting for it ends it on Athena, too."""
    if lake.settings.catalog.kind != "glue":
        raise InvalidSettingsError(
            f"the tables of the lake {lake.name!r} are not in Glue, where Athena looks for them",
            fix='set kind = "glue" below [catalog], or leave --athena out',
        )
    hint = "check the workgroup (--workgroup) and where it puts results (--results s3://bucket/prefix)"
    service = Service("athena", lake.settings.aws.options, hint=hint)
    asked: dict[str, Any] = {"QueryString": sql, "WorkGroup": athena.workgroup}
    if athena.results:
        asked["ResultConfiguration"] = {"OutputLocation": athena.results}
    query_id = service.ask("start_query_execution", "ask Athena", **asked)["QueryExecutionId"]
    try:
        done = _waited(service, query_id, timeout, progress)
    except BaseException:  # also Ctrl-C: nobody would look at it any more, and it costs
        with suppress(EventLakeError):  # who may not stop it shall still see why nobody waits for it
            service.ask("stop_query_execution", "stop the query on Athena", QueryExecutionId=query_id)
        raise
    told = done.get("Statistics", {})
    return Answer(
        _rows(service, query_id),
        told.get("DataScannedInBytes", 0),
        told.get("TotalExecutionTimeInMillis", 0) / 1000,
        query_id,
    )


def _waited(service: Service, query_id: str, timeout: float | None, progress: Progress) -> dict[str, Any]:
    began = time.monotonic()
    pauses = iter(_PAUSES)
    while True:
        asked = {"QueryExecutionId": query_id}
        found: dict[str, Any] = service.ask("get_query_execution", "follow the query on Athena", **asked)[
            "QueryExecution"
        ]
        status = found["Status"]
        progress(status["State"].lower(), found.get("Statistics", {}).get("DataScannedInBytes", 0))
        if status["State"] not in _UNDER_WAY:
            break
        if timeout is not None and time.monotonic() - began > timeout:
            raise TransientError(
                f"the query took longer than {timeout:g} seconds", fix="give it more time with --timeout"
            )
        time.sleep(next(pauses, _PAUSES[-1]))
    if status["State"] != "SUCCEEDED":
        why = status.get("StateChangeReason", "it does not say why")
        raise InvalidSettingsError(
            f"Athena ended the query ({status['State'].lower()}): {why}",
            fix="correct the SQL: Athena's differs from DuckDB's; names are in `eventlake tables`",
        )
    return found


def _rows(service: Service, query_id: str) -> pa.Table:
    asked: dict[str, Any] = {"QueryExecutionId": query_id}
    names: list[tuple[str, str]] = []
    rows: list[list[str | None]] = []
    is_first = True
    while True:
        page = service.ask("get_query_results", "fetch the rows from Athena", **asked)
        names = [
            (column["Name"], column["Type"]) for column in page["ResultSet"]["ResultSetMetadata"].get("ColumnInfo", ())
        ]
        found = [[cell.get("VarCharValue") for cell in row["Data"]] for row in page["ResultSet"]["Rows"]]
        if is_first and found and found[0] == [name for name, _ in names]:
            found = found[1:]  # of a SELECT, the first row has the names
        rows += found
        is_first = False
        if not page.get("NextToken"):
            return pa.table(dict(_columns(names, rows)))
        asked["NextToken"] = page["NextToken"]


def _columns(names: list[tuple[str, str]], rows: list[list[str | None]]) -> Iterator[tuple[str, pa.Array]]:
    for number, unique in enumerate(named_apart(name for name, _ in names)):
        kind = names[number][1]
        read, arrow = _TYPES.get(kind, (str, pa.string()))
        cells = (row[number] if number < len(row) else None for row in rows)
        yield unique, pa.array([None if cell is None else read(cell) for cell in cells], arrow)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


_TYPES: dict[str, tuple[Callable[[str], Any], pa.DataType | None]] = {
    "bigint": (int, pa.int64()),
    "integer": (int, pa.int64()),
    "smallint": (int, pa.int64()),
    "tinyint": (int, pa.int64()),
    "boolean": (lambda text: text == "true", pa.bool_()),
    "double": (float, pa.float64()),
    "float": (float, pa.float64()),
    "real": (float, pa.float64()),
    "decimal": (Decimal, None),
    "timestamp": (_instant, pa.timestamp("us", "UTC")),
}
