"""A stand-in for a workspace of Databricks: the calls that are made of it, and runs that are really executed.

It does by hand what Databricks does for a run: shows volumes as folders, and starts the file of the task with a Spark
of its own, in an interpreter that knows no libraries.
"""

import base64
import contextlib
import json
import os
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pyspark

from eventlake.runners.java import java_home
from stand_in import NODE_PYTHON

CLIENT = "66666666-7777-8888-9999-aaaaaaaaaaaa"
SECRET = "the-oauth-secret"
TOKEN = "dapi-0123456789"
CLUSTER = "1118-053000-abcdefgh"
VOLUME = "/Volumes/main/default/eventlake"
ENTRA_AUDIENCE = "2ff814a6-3304-4ab8-85cb-cd0e6f879c1d"


@dataclass
class Run:
    task: dict[str, Any]
    state: str = "PENDING"
    code: str = ""
    message: str = ""
    process: subprocess.Popen[bytes] | None = None

    def end(self, code: str, message: str = "") -> None:
        if self.state != "TERMINATED":
            self.state, self.code, self.message = "TERMINATED", code, message
            if self.process:
                self.process.kill()


@dataclass
class Place:
    """What the workspace has, and how it is today."""

    folder: Path
    environment: dict[str, str] = field(default_factory=dict)  # of its nodes
    runs: dict[int, Run] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    by_idempotency: dict[str, int] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=lambda: {CLUSTER: "RUNNING"})
    denied: set[str] = field(default_factory=set)  # paths, without what comes after them
    refusals: list[tuple[int, str, str]] = field(default_factory=list)  # of the next submissions
    is_lazy: bool = False  # takes runs, and does nothing
    asked: list[str] = field(default_factory=list)

    def local(self, path: str) -> Path:
        """A file of a volume, where it is on this machine."""
        return self.folder / path.removeprefix("/")

    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-4000:] for path in self.folder.glob("run-*.log"))

    def submit(self, asked: dict[str, Any]) -> int:
        token = asked.get("idempotency_token") or uuid.uuid4().hex
        if token not in self.by_idempotency:
            number = self.by_idempotency[token] = 1000 + len(self.runs)
            (task,) = asked["tasks"]
            run = self.runs[number] = Run(task)
            if not self.is_lazy:
                threading.Thread(target=self._execute, args=[number, run], daemon=True).start()
        return self.by_idempotency[token]

    def _execute(self, number: int, run: Run) -> None:
        python = run.task["spark_python_task"]
        words = [str(self.local(word)) if word.startswith("/Volumes/") else word for word in python["parameters"]]
        home = Path(pyspark.__file__).parent
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK", "PYSPARK", "PYTHON", "EVENTLAKE"))}
        mine = {"SPARK_HOME": str(home), "JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
        mine |= {"PYSPARK_PYTHON": NODE_PYTHON, "PYSPARK_DRIVER_PYTHON": NODE_PYTHON}
        place = self.folder / f"run-{number}"
        place.mkdir()
        with (self.folder / f"run-{number}.log").open("wb") as log:
            run.process = subprocess.Popen(
                [
                    str(home / "bin/spark-submit"),
                    "--master",
                    "local[2]",
                    str(self.local(python["python_file"])),
                    *words,
                ],
                cwd=place,
                env=kept | mine | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        run.state = "RUNNING"
        code = run.process.wait()
        run.end("SUCCESS" if code == 0 else "RUN_EXECUTION_ERROR", "" if code == 0 else f"exit code {code}")


class Databricks(ThreadingHTTPServer):
    place: Place
    daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Databricks
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def _answer(self, status: int, content: Any) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        kind = "application/octet-stream" if isinstance(content, bytes) else "application/json"
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: int, code: str, message: str) -> None:
        self._answer(status, {"error_code": code, "message": message})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _handle(self) -> None:
        place, url = self.server.place, urlsplit(self.path)
        body = self._body()
        path = unquote(url.path)
        place.asked.append(f"{self.command} {path}")
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if path == "/.well-known/databricks-config":
            self._answer(200, {"oidc_endpoint": f"{self.server.url}/oidc", "host_type": "workspace"})
        elif path == "/oidc/.well-known/oauth-authorization-server":
            ends = {f"{name}_endpoint": f"{self.server.url}/oidc/v1/{name}" for name in ("token", "authorization")}
            self._answer(200, ends)
        elif path == "/oidc/v1/token":
            self._give_token()
        elif not self._is_believed():
            self._refuse(401, "UNAUTHENTICATED", "Credential was not sent or was of an unsupported type for this API.")
        elif any(path.startswith(denied) for denied in place.denied):
            self._refuse(403, "PERMISSION_DENIED", "service principal does not have the permission for this")
        elif path.startswith("/api/2.0/fs/files/"):
            self._file(path.removeprefix("/api/2.0/fs/files"), body)
        else:
            self._call(path, asked | (json.loads(body) if body else {}))

    do_GET = do_POST = do_PUT = do_HEAD = _handle  # noqa: N815

    def _give_token(self) -> None:
        told = self.headers.get("Authorization", "").removeprefix("Basic ")
        if base64.b64decode(told).decode() != f"{CLIENT}:{SECRET}":
            self._answer(401, {"error": "invalid_client", "error_description": "Client authentication failed"})
            return
        token = uuid.uuid4().hex
        self.server.place.tokens.add(token)
        self._answer(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

    def _is_believed(self) -> bool:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        if token in self.server.place.tokens:
            return True
        try:
            claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
        except (IndexError, ValueError):
            return False
        return bool(claims["aud"] == ENTRA_AUDIENCE)

    def _file(self, path: str, body: bytes) -> None:
        file = self.server.place.local(path)
        if self.command == "PUT":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
            self._answer(204, b"")
        elif file.is_file():
            self._answer(200, file.read_bytes())
        else:
            self._refuse(404, "NOT_FOUND", "The file being accessed is not found.")

    def _call(self, path: str, asked: dict[str, Any]) -> None:
        place = self.server.place
        calls: dict[str, Callable[[], None]] = {
            "/api/2.2/jobs/runs/submit": lambda: self._submit(asked),
            "/api/2.2/jobs/runs/get": lambda: self._run(int(asked["run_id"])),
            "/api/2.2/jobs/runs/cancel": lambda: self._cancel(int(asked["run_id"])),
            "/api/2.0/preview/scim/v2/Me": lambda: self._answer(200, {"id": "1", "userName": CLIENT}),
            "/api/2.1/clusters/get": lambda: self._cluster(place, asked["cluster_id"]),
        }
        if path in calls:
            calls[path]()
        else:
            self._refuse(404, "ENDPOINT_NOT_FOUND", f"No API found for {path}")

    def _cluster(self, place: Place, cluster_id: str) -> None:
        if cluster_id in place.clusters:
            self._answer(200, {"cluster_id": cluster_id, "state": place.clusters[cluster_id]})
        else:
            self._refuse(400, "INVALID_PARAMETER_VALUE", f"Cluster {cluster_id} does not exist")

    def _submit(self, asked: dict[str, Any]) -> None:
        place = self.server.place
        if place.refusals:
            self._refuse(*place.refusals.pop(0))
            return
        cluster_id = asked["tasks"][0].get("existing_cluster_id")
        if cluster_id and cluster_id not in place.clusters:
            self._refuse(400, "INVALID_PARAMETER_VALUE", f"Cluster {cluster_id} does not exist")
            return
        self._answer(200, {"run_id": place.submit(asked)})

    def _run(self, number: int) -> None:
        run = self.server.place.runs[number]
        ended = {"termination_details": {"code": run.code, "message": run.message}} if run.code else {}
        page = f"{self.server.url}/jobs/runs/{number}"
        self._answer(200, {"run_id": number, "run_page_url": page, "status": {"state": run.state, **ended}})

    def _cancel(self, number: int) -> None:
        self.server.place.runs[number].end("USER_CANCELED", "Run cancelled.")
        self._answer(200, {})


@contextlib.contextmanager
def databricks_workspace(folder: Path, **environment: str) -> Iterator[Databricks]:
    with Databricks(("127.0.0.1", 0), _Handler) as server:
        server.place = Place(folder, environment)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            for run in server.place.runs.values():
                run.end("CANCELED")
            server.shutdown()
