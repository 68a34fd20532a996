"""Spark Connect servers that tests need, from PySpark's own package, each on a free port and stopped again."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import grpc  # type: ignore[import-untyped]
import psutil  # type: ignore[import-untyped]
import pyspark
import pytest
from pyspark.sql.connect.proto import base_pb2

from eventlake.runners.java import java_home
from servers import AwsUser, answers, free_ports, server, wait_for

SPARK_SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
TESTS = Path(__file__).parent
_LISTENS = "org.apache.spark.sql.connect.service.SparkConnectServer"


class ConnectServer(NamedTuple):
    port: int
    process: psutil.Process

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"


@contextlib.contextmanager
def connect_server(
    folder: Path,
    *,
    master: str = "local[2,4]",  # each task up to four times, as on a cluster
    python: str = sys.executable,
    conf: Mapping[str, str] | None = None,
    port: int | None = None,
) -> Iterator[ConnectServer]:
    """A server whose workers know the modules of the tests."""
    port = port or free_ports(1)[0]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.log.level": "WARN",
        "spark.ui.enabled": "false",
        **(conf or {}),
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    words = [str(SPARK_SUBMIT), "--master", master, "--class", _LISTENS, *options, "spark-internal"]
    with server(folder / "connect.log", *words, environment=_environment(python), farewell=5) as process:
        wait_for("Spark Connect", folder, [process], lambda: answers(port))
        yield ConnectServer(port, psutil.Process(process.pid))


def _environment(python: str) -> dict[str, str]:
    ours = {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": python,
        "PYTHONPATH": str(TESTS),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("EVENTLAKE_", "SPARK_", "PYSPARK_"))}
    return kept | ours


@pytest.fixture(scope="session")
def connect(tmp_path_factory: pytest.TempPathFactory, aws_user: AwsUser) -> Iterator[ConnectServer]:
    """One Connect server for all tests; its workers are the same user of S3 as they are."""
    with connect_server(tmp_path_factory.mktemp("connect")) as found:
        yield found


class Pretender:
    """Stands before a Connect server and says that it is of another version, or that the client's Python is.

    Notes what it is asked for.
    """

    def __init__(self, behind: ConnectServer, *, spark: str | None = None, python: str | None = None) -> None:
        self._behind = behind
        self._spark = spark  # the version that clients are told
        self._python = python  # the version that workers are told
        self.asked: list[str] = []

    @contextlib.contextmanager
    def listening(self) -> Iterator[str]:
        """The URL under which it can be reached."""
        with ThreadPoolExecutor(20) as threads, grpc.insecure_channel(f"127.0.0.1:{self._behind.port}") as channel:
            listener = grpc.server(threads)
            listener.add_generic_rpc_handlers((_Handler(self._forwarded(channel)),))
            port = listener.add_insecure_port("127.0.0.1:0")
            listener.start()
            try:
                yield f"sc://127.0.0.1:{port}"
            finally:
                listener.stop(None).wait()

    def _forwarded(self, channel: grpc.Channel) -> Callable[[str], Any]:
        def handler(method: str) -> Any:
            name = method.rpartition("/")[2]
            self.asked.append(name)
            if name == "ExecutePlan":
                return grpc.unary_stream_rpc_method_handler(
                    lambda asked, _: channel.unary_stream(method)(self._with_python(asked))
                )
            if name == "ReattachExecute":
                return grpc.unary_stream_rpc_method_handler(lambda asked, _: channel.unary_stream(method)(asked))
            if name == "AddArtifacts":
                return grpc.stream_unary_rpc_method_handler(lambda asked, _: channel.stream_unary(method)(asked))
            if name == "AnalyzePlan":
                return grpc.unary_unary_rpc_method_handler(
                    lambda asked, _: self._with_version(channel.unary_unary(method)(asked))
                )
            return grpc.unary_unary_rpc_method_handler(lambda asked, _: channel.unary_unary(method)(asked))

        return handler

    def _with_version(self, answer: bytes) -> bytes:
        told = base_pb2.AnalyzePlanResponse.FromString(answer)
        if self._spark and told.HasField("spark_version"):
            told.spark_version.version = self._spark
        return bytes(told.SerializeToString())

    def _with_python(self, request: bytes) -> bytes:
        asked = base_pb2.ExecutePlanRequest.FromString(request)
        if self._python:
            asked.plan.root.map_partitions.func.python_udf.python_ver = self._python
        return bytes(asked.SerializeToString())


class _Handler(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self, handler: Callable[[str], Any]) -> None:
        self._handler = handler

    def service(self, asked: Any) -> Any:
        return self._handler(asked.method)
