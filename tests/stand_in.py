"""A stand-in for an EMR cluster: takes the steps and job runs that moto has, and really executes their spark-submit.

It does by hand what YARN and EMR's file system do: fetches what is in the bucket, unpacks archives into the folder of
the application, sets the environment that was asked for, and runs the driver there.
"""

import contextlib
import os
import shlex
import subprocess
import sys
import tarfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import boto3
from moto.core.responses import ActionResult
from moto.emr.models import emr_backends
from moto.emr.responses import ElasticMapReduceResponse
from moto.emrserverless.models import EMRServerlessBackend, emrserverless_backends

from aws import ACCOUNT, REGION
from eventlake.runners.java import java_home

# An interpreter that knows no libraries: all that the driver needs must be in the package.
NODE_PYTHON = str(Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))


_DONE = ("COMPLETED", "FAILED", "CANCELLED")


class Cluster:
    """Executes everything that is submitted to the account from now on, for as long as the context lasts."""

    def __init__(self, folder: Path, spark_home: Path, s3_endpoint: str, *, lazy: bool = False) -> None:
        self._folder = folder
        self._spark_home = spark_home
        # With the credentials of now: boto3 keeps those that it found first.
        self._s3 = boto3.session.Session().client("s3", endpoint_url=s3_endpoint)
        self._lazy = lazy  # takes steps, and does nothing
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._seen: set[str] = set()
        self._ended = threading.Event()
        self.commands: list[list[str]] = []

    @contextlib.contextmanager
    def running(self) -> Iterator["Cluster"]:
        thread = threading.Thread(target=self._follow, daemon=True)
        self._seen |= {step.id for cluster in _clusters() for step in cluster.steps} | {run.id for run in _job_runs()}
        with (
            mock.patch.object(ElasticMapReduceResponse, "cancel_steps", _cancel_steps(self), create=True),
            mock.patch.object(ElasticMapReduceResponse, "get_managed_scaling_policy", no_policy, create=True),
            mock.patch.object(EMRServerlessBackend, "start_job_run", _submitted(EMRServerlessBackend.start_job_run)),
        ):
            thread.start()
            try:
                yield self
            finally:
                self._ended.set()
                thread.join()
                for name in list(self._processes):
                    self.kill(name)

    def kill(self, name: str) -> None:
        process = self._processes.pop(name, None)
        if process:
            process.kill()
            process.wait()

    def log(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in self._folder.glob("*/driver.log"))

    def _follow(self) -> None:
        while not self._ended.wait(0.1):
            for cluster in _clusters():
                gone = cluster.state in ("TERMINATED", "TERMINATING")
                for step in list(cluster.steps):
                    if gone:
                        self.kill(step.id)
                    elif step.id not in self._seen and step.state in ("PENDING", "RUNNING"):
                        self._seen.add(step.id)
                        step.state = "RUNNING"
                        self._take(step.id, list(step.args), step)
                is_done = cluster.steps and all(step.state in _DONE for step in cluster.steps)
                if is_done and not cluster.keep_job_flow_alive_when_no_steps:
                    cluster.state = "TERMINATED"
            for run in _job_runs():
                if run.state == "CANCELLED":
                    self.kill(run.id)
                elif run.id not in self._seen:
                    self._seen.add(run.id)
                    run.state = "RUNNING"
                    self._take(run.id, _words(run.job_driver["sparkSubmit"]), run)

    def _take(self, name: str, words: list[str], job: Any) -> None:
        self.commands.append(words)
        if not self._lazy:
            threading.Thread(target=self._execute, args=[name, words, job], daemon=True).start()

    def _execute(self, name: str, words: list[str], job: Any) -> None:
        code = -1
        try:
            code = self._submit(name, words)
        finally:
            if job.state != "CANCELLED":
                done = "COMPLETED" if hasattr(job, "args") else "SUCCESS"
                job.state = done if code == 0 else "FAILED"

    def _submit(self, name: str, words: list[str]) -> int:
        place = self._folder / name
        place.mkdir()
        options, (entry, *arguments), environment = self._understood(place, words)
        command = [str(self._spark_home / "bin" / "spark-submit"), "--master", "local[2]", *options]
        with (place / "driver.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [*command, str(self._fetched(place, entry)), *arguments],
                cwd=place,
                env=self._environment() | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        return self._processes[name].wait()

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK", "PYSPARK", "PYTHON", "EVENTLAKE"))}
        return kept | {
            "SPARK_HOME": str(self._spark_home),
            "JAVA_HOME": str(java_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def _understood(self, place: Path, words: Sequence[str]) -> tuple[list[str], list[str], dict[str, str]]:
        """Spark's options without what is YARN's and EMR's; the entry and its arguments; the driver's environment."""
        assert words[0] == "spark-submit"
        options: list[str] = []
        environment: dict[str, str] = {}
        rest = list(words[1:])
        while rest and rest[0].startswith("--"):
            option, value, *rest = rest
            if option == "--deploy-mode":
                assert value == "cluster"
                continue
            key, _, setting = value.partition("=")
            if option == "--conf" and key == "spark.archives":
                address, _, folder = setting.partition("#")
                with tarfile.open(self._fetched(place, address)) as archive:
                    archive.extractall(place / folder, filter="data")
                continue
            for prefix in ("spark.yarn.appMasterEnv.", "spark.emr-serverless.driverEnv."):
                if key.startswith(prefix):
                    environment[key.removeprefix(prefix)] = setting
            options += [option, value]
        return options, rest, environment

    def _fetched(self, place: Path, address: str) -> Path:
        bucket, _, key = address.removeprefix("s3://").partition("/")
        here = place / f"{uuid.uuid4().hex}-{Path(key).name}"
        self._s3.download_file(bucket, key, str(here))
        return here


def _clusters() -> list[Any]:
    return list(emr_backends[ACCOUNT][REGION].clusters.values())


def _job_runs() -> list[Any]:
    return [run for runs in list(emrserverless_backends[ACCOUNT][REGION].job_runs.values()) for run in list(runs)]


def _submitted(start: Any) -> Any:
    """Moto's job runs have succeeded before they begin."""

    def start_job_run(*args: Any, **kwargs: Any) -> Any:
        run = start(*args, **kwargs)
        run.state = "SUBMITTED"
        return run

    return start_job_run


def no_policy(_: Any) -> Any:
    return ActionResult({})


def _words(driver: dict[str, Any]) -> list[str]:
    options = shlex.split(driver["sparkSubmitParameters"])
    return ["spark-submit", *options, driver["entryPoint"], *driver["entryPointArguments"]]


def _cancel_steps(cluster: Cluster) -> Any:
    """What moto lacks."""

    def cancel_steps(self: Any) -> Any:
        wanted = self._get_param("StepIds", [])
        for step in self.backend.clusters[self._get_param("ClusterId")].steps:
            if step.id in wanted:
                step.state = "CANCELLED"
                cluster.kill(step.id)
        return ActionResult({"CancelStepsInfoList": [{"StepId": name, "Status": "SUBMITTED"} for name in wanted]})

    return cancel_steps


def wait_until(holds: Any, what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:g} seconds: {what}"
        time.sleep(0.05)
