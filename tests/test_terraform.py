"""The Terraform modules: formatted, valid against the providers' schemas, tested with mocks, scanned, documented."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from eventlake.settings.file import read_settings
from eventlake.settings.runners import DatabricksRunnerSettings, JobClusterSettings
from needs import not_there

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
DEPLOY = HERE.parent / "deploy" / "terraform"
WHOLE = {"aws": ("aws",), "azure": ("azurerm", "azuread", "databricks", "random")}  # and their providers
PARTS = {f"aws/modules/{name}": ("aws",) for name in ("iam", "emr", "glue", "lakeformation")}
MODULES = WHOLE | PARTS
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
    """A module as one takes it from here: alone, with what is below it."""
    copy = Path(shutil.copytree(DEPLOY / name, tmp_path / "module"))
    done = terraform(copy, "get")
    assert done.returncode == 0, done.stderr
    return copy


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


@pytest.mark.parametrize("name", WHOLE, indirect=True)
def test_the_module_is_formatted(name: str) -> None:
    done = terraform(DEPLOY / name, "fmt", "-check", "-diff", "-recursive")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_module_is_valid(module: Path, config: Path) -> None:
    done = terraform(module, "validate", config=config)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("name", "right", "wrong", "told"),
    [
        ("aws", "  external_ids  ", "  external_id  ", "external_id"),
        ("aws", "  subnet_id  ", "  # subnet_id  ", '"subnet_id" is required'),
        ("aws/modules/iam", "  policy      = data.aws_iam_policy_document.data_lake.json", "", '"policy" is required'),
        ("aws/modules/emr", "  service_role  ", "  service_rol  ", "service_rol"),
        ("aws/modules/emr", "  compute_limits {", "  limits {", "limits"),
        ("aws/modules/glue", "  location_uri ", "  location ", "location"),
        ("aws/modules/lakeformation", "  database {", "  databases {", "databases"),
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


@pytest.mark.parametrize("name", ["aws"], indirect=True)
def test_the_settings_that_it_tells_are_settings_of_a_workspace(module: Path, config: Path) -> None:
    done = terraform(module, "test", "-json", "-verbose", config=config)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    (whole,) = [one["test_state"] for one in told if one["type"] == "test_state" and one["@testrun"] == "whole"]
    text = f'workspace_id = "a53a097942f713d2"\n{whole["outputs"]["settings"]["value"]}'
    lake = read_settings(tomllib.loads(text), "eventlake.toml").all_lakes["default"]
    assert lake.root == "s3://my-lake"
    assert lake.aws.role_arn == "arn:aws:iam::123456789012:role/SegmentDataLakeRole"
    assert (lake.aws.region, lake.aws.external_id) == ("eu-central-1", "a53a097942f713d2")
    runner, catalog = lake.runner, lake.catalog
    assert runner.kind == "emr"
    assert (runner.cluster_id, runner.tag_key, runner.tag_value) == ("j-1ABCDEFGHIJKL", "vendor", "segment")
    assert catalog.kind == "glue"
    assert catalog.catalog_id == "123456789012"


@pytest.mark.parametrize("name", ["azure"], indirect=True)
def test_the_settings_that_come_out_are_those_of_a_workspace(module: Path, config: Path) -> None:
    """Of the module as it is: with a cluster whose runtime takes what the runner sends, and its volume."""
    (test,) = (module / "tests").iterdir()
    mocks, _, _ = test.read_text().partition("\nrun ")
    variables = 'metastore_service = { image = "metastore", subnet_id = "/services" }'
    show = f'run "show" {{\n command = plan\n variables {{\n {variables}\n }}\n}}\n'
    test.write_text(f"{mocks}\n{show}")
    done = terraform(module, "test", "-verbose", config=config)
    (shown,) = re.findall(r"^ *\+ settings += <<-EOT\n(.*?)^ *EOT$", done.stdout, re.MULTILINE | re.DOTALL)
    settings = read_settings({"workspace_id": "acme", **tomllib.loads(shown)}, "settings")
    lake = settings.all_lakes["default"]
    assert lake.root == "abfss://events@mycompanyevents.dfs.core.windows.net"
    assert lake.runner.kind == "databricks"
    runtime = JobClusterSettings().spark_version  # which the runner takes for a cluster of its own
    assert f'default     = "{runtime}"' in (module / "variables.tf").read_text()
    assert lake.runner.python == DatabricksRunnerSettings.model_fields["python"].default
    assert lake.runner.cluster_id == "0123-456789-abcdefgh"
    assert lake.shared_catalog == ("hive", "thrift://10.0.0.4:9083")


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


@pytest.mark.parametrize("name", WHOLE, indirect=True)
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
    for file in module.rglob("*.tf"):
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


def test_the_rights_that_the_docs_name_are_those_that_the_module_grants() -> None:
    page = (HERE.parent / "docs" / "aws.md").read_text()
    rights = page.partition("\n## Rights\n")[2].partition("\n## ")[0]
    table = "".join(line for line in rights.splitlines() if line.startswith("|"))
    needed, service = set(), ""
    for named, right in re.findall(r"`(?:([a-z0-9-]+):)?([A-Z]\w+)`", table):  # the service is told once for several
        service = named or service
        needed.add(f"{service}:{right}")
    assert len(needed) > 30
    action = re.compile(r'(?<!variable = )"([a-z0-9-]+:(?:[A-Z]\w+|\*))"')
    files = ((DEPLOY / "aws" / "modules" / "iam" / name).read_text() for name in ("data_lake.tf", "extras.tf"))
    policy, extras = (set(action.findall(text)) for text in files)
    anything = ("s3:", *(right.removesuffix("*") for right in policy if right.endswith(":*")))  # with the bucket
    assert {right for right in needed - policy - extras if not right.startswith(anything)} == set()
    assert extras - needed == set()
