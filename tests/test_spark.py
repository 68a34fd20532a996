"""Spark on this machine: what others can see of it, and what becomes of a sync when it dies."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eventlake.runners.java_process import _escaped

SECRET = 's3cr3t = \\ "é😀" #'

STARTED = """
import contextlib, json, os, signal, sys, time
from pathlib import Path

import psutil
import pyspark

from conftest import Lake, track
from eventlake.errors import TransientError
from eventlake.runners.spark import SparkRunner

folder, secret = Path(sys.argv[1]), sys.argv[2]
told = {}
"""

SEEN = (
    STARTED
    + """
def same(_, number):
    return number

runner = SparkRunner("local[2]", {"spark.hadoop.secret": secret, "spark.driver.memory": "700m"}, folder / "spark.log")
assert runner.run(same, None, [1, 2]) == [1, 2]
context = pyspark.SparkContext._active_spark_context
java = psutil.Process(pyspark.SparkContext._gateway.proc.pid)
family = [java, *java.children(recursive=True)]
everyone = [*family, psutil.Process()]
jvm = context._jvm
owner = jvm.org.apache.hadoop.security.UserGroupInformation.getCurrentUser()
commands, addresses = [], set()
for process in everyone:
    with contextlib.suppress(psutil.NoSuchProcess):  # a worker may end at any time; Java and the daemon stay
        addresses |= {one.laddr.ip for one in process.net_connections() if one.status == "LISTEN"}
        if process.pid != os.getpid():  # whose words are the test's
            commands.append(" ".join(process.cmdline()))
told = {
    "name": java.name(),
    "commands": commands,
    "addresses": sorted(addresses),
    "secret": context._jsc.hadoopConfiguration().get("secret"),
    "secret of the file": jvm.java.lang.System.getProperty("spark.hadoop.secret"),
    "of the defaults": context._jsc.hadoopConfiguration().get("of.defaults"),
    "secrets of Spark": owner.getCredentials().numberOfSecretKeys(),
    "conf": dict(context.getConf().getAll()),
    "variables": {name: value for name, value in os.environ.items() if "SUBMIT" in name},
    "left in the temporary folder": [str(path) for path in folder.rglob("spark.properties")],
}
runner.close()
print(json.dumps(told))
"""
)

KILLED = (
    STARTED
    + """
class Dies:
    # Spark, whose Java process is killed by a task in the middle of the first step.
    def __init__(self):
        self.spark = SparkRunner("local[2]", {}, folder / "spark.log")
        self.dies = True

    @property
    def parallelism(self):
        return self.spark.parallelism

    where = {}

    def run(self, function, context, tasks, progress=None):
        java = pyspark.SparkContext._gateway.proc.pid

        def stage(context, task):
            os.kill(java, signal.SIGKILL)
            time.sleep(60)

        dies, self.dies = self.dies, False
        return self.spark.run(stage if dies else function, context, tasks, progress)

runner = Dies()
first, second = Lake(folder / "first", runner), Lake(folder / "second", runner)
for lake in (first, second):
    lake.put(track("A", "m1"))
try:
    first.sync()
except TransientError as error:
    told = {"problem": error.problem, "fix": error.fix}
told["second"] = second.sync()[0]["books"]["loaded"]
os.kill(pyspark.SparkContext._gateway.proc.pid, signal.SIGKILL)  # and while nothing is done
pyspark.SparkContext._gateway.proc.wait()
told["first"] = first.sync()[0]["books"]["loaded"]
os.kill(pyspark.SparkContext._gateway.proc.pid, signal.SIGKILL)
runner.spark.close()
print(json.dumps(told))
"""
)

THERE_BEFORE = (
    STARTED
    + """
from eventlake.runners.java import java_home

def same(_, number):
    return number

os.environ |= {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable}
mine = pyspark.SparkContext("local[1]", conf=pyspark.SparkConf().set("spark.ui.enabled", "false"))
runner = SparkRunner("local[2]", {}, folder / "spark.log")
told = {"results": runner.run(same, None, [1, 2]), "parallelism": runner.parallelism}
runner.close()
told["still"] = mine.parallelize([1, 2, 3]).sum()
mine.stop()
told["own"] = runner.run(same, None, [3]), runner.parallelism
runner.close()
told["stopped"] = pyspark.SparkContext._active_spark_context is None
print(json.dumps(told))
"""
)


PACKAGES = (
    STARTED
    + """
import tarfile

from pyspark import SparkConf, SparkContext

from eventlake.runners.java import java_home

os.environ |= {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
context = SparkContext(conf=SparkConf().setMaster("local[2]").set("spark.ui.enabled", "false"))

def version(shared, task):
    raise AssertionError("that of the package is called")

version.__module__ = "packaged"

def of_package(number):
    made = folder / str(number) / "lib"
    made.mkdir(parents=True)
    (made / "packaged.py").write_text(f"def version(shared, task):\\n    return {number}\\n")
    tarball = folder / f"eventlake-{number}.tar.gz"
    with tarfile.open(tarball, "w:gz") as tar:
        tar.add(made, "lib")
    return SparkRunner(None, {}, None, package=str(tarball)).run(version, None, [0, 0, 0, 0])

told = [of_package(1), of_package(2)]
context.stop()
print(json.dumps(told))
"""
)


def ended(program: str, folder: Path, *, is_quiet: bool = True, **variables: str) -> Any:
    """What a program in a process of its own told; if it is quiet, nothing else may be on its screen."""
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), SECRET],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent), "TMPDIR": str(folder)} | variables,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" or not is_quiet
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What can be seen of a Spark with a secret among its settings, on a machine that has defaults for Spark."""
    folder = tmp_path_factory.mktemp("seen")
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text("# of the machine\nspark.hadoop.of.defaults  yes\n")
    told: dict[str, Any] = ended(SEEN, folder, SPARK_CONF_DIR=str(folder / "conf"))
    return told


def test_settings_are_not_among_the_words_of_a_command(seen: dict[str, Any]) -> None:
    assert seen["name"] == "java"
    assert "pyspark.daemon" in " ".join(seen["commands"][1:])  # which starts Python's workers
    assert not [command for command in seen["commands"] if "s3cr3t" in command]
    assert seen["secret"] == seen["secret of the file"] == SECRET
    assert "-Xmx700m" in seen["commands"][0]  # what Java must know when it starts is known
    assert seen["left in the temporary folder"] == []
    assert seen["variables"] == {}


def test_the_machines_defaults_for_spark_hold(seen: dict[str, Any]) -> None:
    assert seen["of the defaults"] == "yes"


def test_a_local_spark_listens_to_this_machine_only_and_asks_for_a_secret(seen: dict[str, Any]) -> None:
    assert seen["addresses"]
    assert {address.removeprefix("::ffff:") for address in seen["addresses"]} == {"127.0.0.1"}
    assert seen["conf"]["spark.authenticate"] == "true"
    assert seen["secrets of Spark"] == 1  # made up when it started, and kept where no setting shows it
    assert "spark.authenticate.secret" not in seen["conf"]
    assert seen["conf"]["spark.ui.enabled"] == "false"


@pytest.mark.parametrize("text", ["", " a ", "a=b:c", "#!\\", "\n\t", "é😀", "spark.x"])
def test_a_setting_in_the_file_has_no_letter_that_java_reads_as_something_else(text: str) -> None:
    escaped = _escaped(text)
    assert escaped.isascii()
    assert escaped.replace("\\u", "").isalnum() or not text
    assert escaped.encode().decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16") == text


@pytest.mark.timeout(300)
def test_a_java_process_that_is_killed_is_told_as_that_and_the_next_source_is_loaded(tmp_path: Path) -> None:
    told = ended(KILLED, tmp_path)
    assert told["problem"] == "Spark could not stage: its Java process was killed (SIGKILL)"
    assert "enough memory" in told["fix"]
    assert str(tmp_path / "spark.log") in told["fix"]
    assert told["second"] == told["first"] == 1


@pytest.mark.timeout(300)
def test_a_spark_that_was_there_before_is_used_and_stays(tmp_path: Path) -> None:
    told = ended(THERE_BEFORE, tmp_path, is_quiet=False)  # that Spark logs as its maker chose
    assert told["results"] == [1, 2]
    assert told["parallelism"] == 1  # as it was made
    assert told["still"] == 6
    assert told["own"] == [[3], 2]  # after it was stopped by whoever had made it
    assert told["stopped"]


def test_on_a_spark_that_outlives_us_the_workers_run_the_package_of_now(tmp_path: Path) -> None:
    """As on a cluster that stays, when another version of eventlake comes."""
    assert ended(PACKAGES, tmp_path, is_quiet=False) == [[1] * 4, [2] * 4]
