"""The Terraform modules: formatted, valid against the providers' schemas, tested with mocks, scanned, documented."""

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
DEPLOY = HERE.parent / "deploy" / "terraform"
MODULES = {"aws": ("aws",), "azure": ("azurerm", "azuread", "databricks", "random")}  # and their providers
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
        timeout=400,
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


@pytest.fixture(params=MODULES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def module(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEPLOY / name, tmp_path / "module"))


@pytest.fixture
def config(tools: Path, name: str, tmp_path: Path) -> Path:
    """Settings that let Terraform use providers of ours."""
    overrides = []
    for provider in MODULES[name]:
        schema = HERE / "terraform" / "schemas" / f"{provider}.json"
        plugin = tmp_path / provider / f"terraform-provider-{provider}"
        plugin.parent.mkdir()
        plugin.write_text(f'#!/bin/sh\nexec {tools / "python"} {HERE / "terraform" / "provider.py"} {schema} "$@"\n')
        plugin.chmod(0o755)
        overrides.append(f'"{json.loads(schema.read_text())["source"]}" = "{plugin.parent}"')
    config = tmp_path / "terraform.rc"
    lines = "\n".join(overrides)
    config.write_text(f"provider_installation {{\n dev_overrides {{\n{lines}\n }}\n direct {{}}\n}}\n")
    return config


def test_the_module_is_formatted(name: str) -> None:
    done = terraform(DEPLOY / name, "fmt", "-check", "-diff", "-recursive")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_module_is_valid(module: Path, config: Path) -> None:
    done = terraform(module, "validate", config=config)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "right", "wrong", "told"),
    [
        ("aws", "  service_role  ", "  service_rol  ", "service_rol"),
        ("aws", "  policy      = data.aws_iam_policy_document.lake.json", "", '"policy" is required'),
        ("aws", "  compute_limits {", "  limits {", "limits"),
        ("azure", "  is_hns_enabled  ", "  is_hns_enable  ", "is_hns_enable"),
        ("azure", "    storage {", "    storages {", "storages"),
        ("azure", "  client_id = azuread_application.lake.client_id", "", '"client_id" is required'),
        ("azure", "  keyvault_metadata {", "  keyvault {", "keyvault"),
        ("azure", "  override_special ", "  override ", "override"),
    ],
    indirect=["name"],
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


ACCOUNT = "A storage account is called by 3 to 24 small letters and digits"
CONTAINER = "A container is called by 3 to 63 small letters, digits and single hyphens"
REFUSED = {
    "storage_account": (ACCOUNT, ["MyLake", "my-lake", "my_lake", "my", "a" * 25, ""]),
    "container": (CONTAINER, ["Events", "e--v", "-events", "events-", "ev", "e" * 64, "a_b", "$web"]),
}


@pytest.mark.parametrize("name", ["azure"], indirect=True)
def test_a_name_that_azure_refuses_is_refused_before_and_told_what_is_allowed(module: Path, config: Path) -> None:
    (test,) = (module / "tests").iterdir()
    mocks, _, _ = test.read_text().partition("\nrun ")
    test.unlink()
    for variable, (_, values) in REFUSED.items():
        for number, value in enumerate(values):
            wrong = f'run "wrong" {{\n command = plan\n variables {{\n {variable} = "{value}"\n }}\n}}\n'
            test.with_name(f"{variable}{number}.tftest.hcl").write_text(f"{mocks}\n{wrong}")
    done = terraform(module, "test", config=config)
    assert "Failure! 0 passed, 14 failed." in done.stdout
    told = " ".join((done.stdout + done.stderr).split())
    for allowed, values in REFUSED.values():
        assert told.count(allowed) == len(values)


def test_checkov_finds_nothing_that_is_not_explained(tools: Path, name: str) -> None:
    module = DEPLOY / name
    done = subprocess.run(
        [tools / "checkov", "-d", module, "--framework", "terraform", "--compact", "--quiet", "-o", "json"],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    told = json.loads(done.stdout[done.stdout.index("{") :])
    failed = [(check["check_id"], check["resource"]) for check in told["results"]["failed_checks"]]
    assert failed == []
    assert told["summary"]["passed"] >= 20
    for file in module.glob("*.tf"):
        for line in re.findall(r"checkov:skip=.*", file.read_text()):
            assert re.fullmatch(rf"checkov:skip=CKV2?_{name.upper()}_\d+:\S.*", line), line


@pytest.mark.parametrize("kind", ["variable", "output"])
def test_every_input_and_output_is_documented(kind: str, name: str) -> None:
    text = (DEPLOY / name / f"{kind}s.tf").read_text()
    page = (DEPLOY / name / "README.md").read_text()
    found = re.findall(rf'^{kind} "(\w+)" {{(.*?)^}}', text, re.MULTILINE | re.DOTALL)
    assert found
    for one, body in found:
        (told,) = re.findall(r'description\s*=\s*"(.*)"', body)
        default = re.search(r"^  default\s*= (.*)$", body, re.MULTILINE)
        cells = [f"`{one}`", *([f"`{default[1]}`" if default else "required"] if kind == "variable" else []), told]
        assert f"\n| {' | '.join(cells)} |\n" in page, one
