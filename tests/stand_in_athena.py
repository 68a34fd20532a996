"""What of Athena a query needs, over HTTP: DuckDB carries it out over the tables of a lake."""

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pyarrow as pa

from eventlake.errors import EventLakeError

_TYPES = {"int64": "bigint", "bool": "boolean", "double": "double", "string": "varchar"}
PAGE = 1000  # rows that Athena gives at once


@dataclass
class _Query:
    looks: int  # how often it is still under way when it is asked for
    rows: pa.Table | None = None
    problem: str = ""
    stopped: bool = False


@dataclass
class StandIn:
    """Answers with what `carry_out` makes of the SQL; each query is looked at `looks` times before it has ended."""

    carry_out: Callable[[str], pa.Table]
    looks: int = 2
    may_not_stop: bool = False
    too_many: dict[str, int] = field(default_factory=dict)  # how often requests of a kind are refused for now
    address: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    queries: dict[str, _Query] = field(default_factory=dict)

    def answer(self, action: str, told: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.too_many.get(action, 0) > 0:
            self.too_many[action] -= 1
            return 400, {"__type": "ThrottlingException", "Message": "Rate exceeded"}
        if action == "StartQueryExecution":
            self.asked.append(told)
            if told["WorkGroup"] == "forbidden":
                return 400, {"__type": "AccessDeniedException", "Message": "not you"}
            if told["WorkGroup"] == "gone":
                return 400, {"__type": "InvalidRequestException", "Message": "WorkGroup gone is not found."}
            query, name = _Query(self.looks), str(uuid.uuid4())
            try:
                query.rows = self.carry_out(told["QueryString"])
            except EventLakeError as error:
                query.problem = f"SYNTAX_ERROR: {error.problem}"
            self.queries[name] = query
            return 200, {"QueryExecutionId": name}
        query = self.queries[told["QueryExecutionId"]]
        if action == "StopQueryExecution" and self.may_not_stop:
            return 400, {"__type": "AccessDeniedException", "Message": "not you"}
        if action == "StopQueryExecution":
            query.stopped = True
            return 200, {}
        return 200, self._state(query) if action == "GetQueryExecution" else self._rows(query, told)

    @staticmethod
    def _state(query: _Query) -> dict[str, Any]:
        query.looks -= 1
        state = "RUNNING" if query.looks >= 0 else "FAILED" if query.problem else "SUCCEEDED"
        status = {"State": state, **({"StateChangeReason": query.problem} if state == "FAILED" else {})}
        read = {"DataScannedInBytes": 20_000_000, "TotalExecutionTimeInMillis": 1500}
        return {"QueryExecution": {"Status": status, "Statistics": read}}

    @staticmethod
    def _rows(query: _Query, told: dict[str, Any]) -> dict[str, Any]:
        assert query.rows is not None
        columns = [{"Name": column.name, "Type": _type(column.type)} for column in query.rows.schema]
        start = int(told.get("NextToken", "0"))
        head = [{"Data": [{"VarCharValue": column["Name"]} for column in columns]}] if not start else []
        stop = start + PAGE - len(head)
        rows = [
            {"Data": [{} if cell is None else {"VarCharValue": _text(cell)} for cell in row.values()]}
            for row in query.rows.slice(start, stop - start).to_pylist()
        ]
        more = {"NextToken": str(stop)} if stop < query.rows.num_rows else {}
        return {"ResultSet": {"ResultSetMetadata": {"ColumnInfo": columns}, "Rows": [*head, *rows]}, **more}


def _type(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return "decimal" if pa.types.is_decimal(kind) else _TYPES.get(str(kind), "varchar")


def _text(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    return re.sub(r"\+00:00$", "", str(cell))


@contextmanager
def athena(stand_in: StandIn) -> Iterator[StandIn]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, answer = stand_in.answer(self.headers["x-amz-target"].rpartition(".")[2], told)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/x-amz-json-1.1")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        stand_in.address = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield stand_in
        server.shutdown()
