"""The wheel as people install it: into an empty environment, alone and with each extra, nothing of ours beside it."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from conftest import new_bucket
from eventlake.demo.events import Recipe, write_archive
from needs import not_there
from servers import AzureServer, PostgresServer, S3Server
from test_java import SPARK_TOOLS

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
LOCKS = [ROOT / "requirements" / f"{name}.txt" for name in ("dev", "java")]


class Installed(NamedTuple):
    """An environment with the wheel."""

    folder: Path
    wheel: Path
    versions: Path

    def add(self, extra: str = "") -> None:
        words = [str(self.folder / "bin" / "pip"), "install", "-qq", "--disable-pip-version-check", "--constraint"]
        what = [str(self.versions), f"{self.wheel}{extra}"]
        done = subprocess.run([*words, *what], capture_output=True, text=True, check=False)
        if done.returncode:
            not_there("package index", done.stderr[-500:])

    def __call__(self, *words: str, code: int = 0, environment: Mapping[str, str] | None = None) -> str:
        """What eventlake prints, run in an empty folder by someone who has nothing set up."""
        mine = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EVENTLAKE_"))}
        done = subprocess.run(
            [self.folder / "bin" / "eventlake", *words],
            cwd=self.folder,
            env={**mine, **(environment or {})},
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def eventlake(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
    pinned = [line for lock in LOCKS for line in re.findall(r"^\S+==\S+", lock.read_text(), re.MULTILINE)]
    (folder / "versions.txt").write_text("\n".join(pinned))
    (wheel,) = folder.glob("*.whl")
    installed = Installed(folder / "environment", wheel, folder / "versions.txt")
    installed.add()
    return installed


def test_alone_it_runs_the_demo(eventlake: Installed, tmp_path: Path) -> None:
    told = eventlake("demo", "--events", "1000", "--dir", str(tmp_path / "demo"))
    assert re.search(r"\d+ page views in \d+ hours", told)


def test_with_the_extra_aws_it_has_a_lake_in_a_bucket(eventlake: Installed, s3: S3Server, tmp_path: Path) -> None:
    lake = ("-C", str(tmp_path))
    settings = {
        "EVENTLAKE_LAKE__ROOT": f"s3://{new_bucket(s3)}/lake",
        "EVENTLAKE_S3__ENDPOINT": s3.endpoint,
        "EVENTLAKE_S3__PATH_STYLE": "true",
    }
    eventlake("init", str(tmp_path))
    assert "pip install 'eventlake[aws]'" in eventlake(*lake, "doctor", code=1, environment=settings)
    eventlake.add("[aws]")
    eventlake(*lake, "source", "add", "web", environment=settings)
    write_archive(Recipe(events=1000), tmp_path / "raw", files=2)
    eventlake(*lake, "import", "web", str(tmp_path / "raw"), environment=settings)
    eventlake(*lake, "sync", environment=settings)
    told = eventlake(
        *lake, "query", "select count(*) > 100 as many_pages from web.page", "--json", environment=settings
    )
    assert json.loads(told) == {"many_pages": True}


def test_with_the_extra_azure_it_has_a_lake_in_a_container(
    eventlake: Installed, azure: AzureServer, tmp_path: Path
) -> None:
    lake = ("-C", str(tmp_path))
    settings = {
        "EVENTLAKE_LAKE__ROOT": f"{azure.root(new_bucket(azure))}/lake",
        "EVENTLAKE_AZURE__ENDPOINT": azure.endpoint,
        "EVENTLAKE_AZURE__ACCOUNT_KEY": azure.key,
    }
    eventlake("init", str(tmp_path))
    eventlake.add("[azure]")
    eventlake(*lake, "source", "add", "web", environment=settings)
    write_archive(Recipe(events=1000), tmp_path / "raw", files=2)
    eventlake(*lake, "import", "web", str(tmp_path / "raw"), environment=settings)
    eventlake(*lake, "sync", environment=settings)
    told = eventlake(*lake, "query", "select count(*) > 100 as many from web.page", "--json", environment=settings)
    assert json.loads(told) == {"many": True}


@pytest.mark.parametrize(
    ("extra", "setting", "missing", "after"),
    [
        ("hive", '[catalog]\nkind = "hive"\nuri = "thrift://127.0.0.1:9"\n', "eventlake[hive]", "127.0.0.1:9"),
        (
            "databricks",
            '[lake]\nroot = "s3://some-bucket/lake"\n[runner]\nkind = "databricks"\nhost = "http://127.0.0.1:9"\n'
            'cluster_id = "1118-053000-abcdefgh"\nvolume = "/Volumes/a/b/c"\ntoken = "t"\n',
            "eventlake[databricks]",
            "127.0.0.1:9",
        ),
        ("connect", 'runner = { kind = "connect", url = "sc://127.0.0.1:9" }\n', "eventlake[connect]", "127.0.0.1:9"),
    ],
)
def test_what_an_extra_brings_is_named_and_then_there(
    eventlake: Installed, tmp_path: Path, extra: str, setting: str, missing: str, after: str
) -> None:
    eventlake("init", str(tmp_path))
    (tmp_path / "eventlake.toml").write_text(f'workspace_id = "w"\n{setting}')
    assert missing in eventlake("-C", str(tmp_path), "doctor", "--json", code=1)
    eventlake.add(f"[{extra}]")
    told = eventlake("-C", str(tmp_path), "doctor", "--json", code=1)
    assert missing not in told
    assert after in told


def test_with_the_extra_postgres_its_database_may_be_on_a_server(
    eventlake: Installed, postgres: PostgresServer, tmp_path: Path
) -> None:
    lake = ("-C", str(tmp_path))
    settings = {"EVENTLAKE_DATABASE": postgres.new_database()}
    eventlake("init", str(tmp_path))
    assert "pip install 'eventlake[postgres]'" in eventlake(*lake, "source", "list", code=2, environment=settings)
    eventlake.add("[postgres]")
    eventlake(*lake, "source", "add", "web", environment=settings)
    assert "web" in eventlake(*lake, "source", "list", environment=settings)


def test_with_the_extra_java_it_needs_no_java_of_the_machine(eventlake: Installed, tmp_path: Path) -> None:
    eventlake.add("[java]")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in SPARK_TOOLS:
        (tools / name).symlink_to(str(shutil.which(name)))
    demo = ("demo", "--events", "1000", "--dir", str(tmp_path / "demo"))
    told = eventlake(*demo, environment={"PATH": str(tools), "JAVA_HOME": ""})
    assert re.search(r"\d+ page views in \d+ hours", told)
