"""A real Spark cluster: a master and two workers, each a process of its own."""

import contextlib
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil  # type: ignore[import-untyped]
import pyspark
import pytest

from eventlake.runners.java import java_home
from servers import free_ports, server, wait_for

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
WORKERS = 2


class Cluster(NamedTuple):
    master: str
    page: str
    folder: Path

    def state(self) -> dict[str, Any]:
        """What the master's page tells; nothing while there is none."""
        try:
            # Without the proxy that the environment may name: this is our own machine.
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(self.page, timeout=10) as page:
                told: dict[str, Any] = json.load(page)
                return told
        except (urllib.error.URLError, OSError, json.JSONDecodeError):
            return {}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with contextlib.ExitStack() as servers:
        port, page = free_ports(2)
        cluster = Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{page}/json/", folder)
        place = ["--host", "127.0.0.1"]
        master = ["master.Master", *place, "--port", str(port), "--webui-port", str(page)]
        processes = [servers.enter_context(spark_server(folder / "master.log", *master))]
        wait_for("Spark cluster", folder, processes, lambda: cluster.state().get("status") == "ALIVE")
        for number in range(WORKERS):
            size = ["--cores", "1", "--memory", "700m", "--work-dir", str(folder / f"worker-{number}")]
            worker = ["worker.Worker", *place, "--webui-port", "0", *size, cluster.master]
            processes.append(servers.enter_context(spark_server(folder / f"worker-{number}.log", *worker)))
        wait_for("Spark cluster", folder, processes, lambda: cluster.state().get("aliveworkers") == WORKERS)
        yield cluster


def environment() -> dict[str, str]:
    """Everything on this machine and with this Python, whatever the caller's shell sets for Spark."""
    ours = {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "512m",
    }
    return {k: v for k, v in os.environ.items() if not k.startswith(("EVENTLAKE_", "SPARK_", "PYSPARK_"))} | ours


def spark_server(log: Path, *words: str) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    name, *options = words
    return server(log, str(SPARK_CLASS), f"org.apache.spark.deploy.{name}", *options, environment=environment())


def executors(cluster: Cluster) -> list[psutil.Process]:
    """The executors of the application that runs on the cluster now."""
    (application,) = cluster.state()["activeapps"]
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in words and application["id"] in words:
                found.append(process)
    return found
