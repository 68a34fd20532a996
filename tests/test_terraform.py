"""The Terraform module: formatted, valid against the provider's schema, tested with mocks, scanned, documented."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from needs import not_there

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
MODULE = HERE.parent / "deploy" / "terraform" / "aws"
TOOLS = HERE.parent / "requirements" / "terraform.txt"


def terraform(folder: Path, *words: str, config: Path | None = None) -> subprocess.CompletedProcess[str]:
    program = shutil.which("terraform")
    if not program:
        not_there("terraform", "it is not installed")
    variables = {"TF_CLI_CONFIG_FILE": str(config or os.devnull), "CHECKPOINT_DISABLE": "1"}
    return subprocess.run(
        [program, *words, "-no-color"],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture(scope="module")
def tools() -> Path:
    """An environment with what would not go with ours: checkov, and the library that providers are made with."""
    folder = Path.home() / ".cache" / "eventlake-tests" / "terraform"
    done = folder / ".done"
    if not done.exists() or done.read_text() != TOOLS.read_text():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        words = [str(folder / "bin" / "pip"), "install", "-qq", "--disable-pip-version-check", "--require-hashes"]
        made = subprocess.run([*words, "-r", str(TOOLS)], capture_output=True, text=True, check=False)
        if made.returncode:
            not_there("Terraform tools", made.stderr[-500:])
        done.write_text(TOOLS.read_text())
    return folder / "bin"


@pytest.fixture
def module(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODULE, tmp_path / "module"))


@pytest.fixture
def config(tools: Path, tmp_path: Path) -> Path:
    """Settings that let Terraform use our provider for AWS."""
    plugin = tmp_path / "plugins" / "terraform-provider-aws"
    plugin.parent.mkdir()
    plugin.write_text(f'#!/bin/sh\nexec {tools / "python"} {HERE / "terraform" / "provider.py"} "$@"\n')
    plugin.chmod(0o755)
    config = tmp_path / "terraform.rc"
    override = f'dev_overrides {{\n "hashicorp/aws" = "{plugin.parent}"\n }}'
    config.write_text(f"provider_installation {{\n {override}\n direct {{}}\n}}\n")
    return config


def test_the_module_is_formatted() -> None:
    done = terraform(MODULE, "fmt", "-check", "-diff", "-recursive")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_module_is_valid(module: Path, config: Path) -> None:
    done = terraform(module, "validate", config=config)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("  service_role  ", "  service_rol  ", "service_rol"),
        ("  policy      = data.aws_iam_policy_document.lake.json", "", '"policy" is required'),
        ("  compute_limits {", "  limits {", "limits"),
    ],
)
def test_what_the_provider_does_not_know_would_be_noticed(
    module: Path, config: Path, right: str, wrong: str, told: str
) -> None:
    changed = 0
    for file in module.glob("*.tf"):
        text = file.read_text()
        changed += text.count(right)
        file.write_text(text.replace(right, wrong, 1))
    assert changed
    done = terraform(module, "validate", config=config)
    assert done.returncode == 1
    assert told in done.stderr


def test_the_module_does_what_its_tests_say(module: Path, config: Path) -> None:
    done = terraform(module, "test", config=config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Success! [1-9]\d* passed, 0 failed", done.stdout)


def test_checkov_finds_nothing_that_is_not_explained(tools: Path) -> None:
    done = subprocess.run(
        [tools / "checkov", "-d", MODULE, "--framework", "terraform", "--compact", "--quiet", "-o", "json"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    told = json.loads(done.stdout[done.stdout.index("{") :])
    failed = [(check["check_id"], check["resource"]) for check in told["results"]["failed_checks"]]
    assert failed == []
    assert told["summary"]["passed"] > 20
    for file in MODULE.glob("*.tf"):
        for line in re.findall(r"checkov:skip=.*", file.read_text()):
            assert re.fullmatch(r"checkov:skip=CKV2?_AWS_\d+:\S.*", line), line


@pytest.mark.parametrize("kind", ["variable", "output"])
def test_every_input_and_output_is_documented(kind: str) -> None:
    text = (MODULE / f"{kind}s.tf").read_text()
    page = (MODULE / "README.md").read_text()
    for name, body in re.findall(rf'^{kind} "(\w+)" {{(.*?)^}}', text, re.MULTILINE | re.DOTALL):
        (told,) = re.findall(r'description\s*=\s*"(.*)"', body)
        assert re.search(rf"^\| `{name}` \|.* {re.escape(told)} \|$", page, re.MULTILINE), name
