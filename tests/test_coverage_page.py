"""The page that lists Segment's features: each row has its word, and the tests that it names are there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "segment-coverage.md"
WORDS = {"same", "better", "different", "not there"}
SECTIONS = [
    *("Collecting", "Raw archive", "Layout", "Tables and catalog", "Columns and types", "Duplicates"),
    *("Syncs and schedules", "Reports and history", "Protocols", "Privacy", "Replay"),
    *("Settings on AWS", "Settings on Azure", "Set-up"),
]
SETTINGS_ON_AWS = {
    *("awsRegion", "emrClusterId", "glueCatalogId", "iamRoleArn", "s3Bucket"),
    *("datePartition", "glueDatabase", "partitionBySlugName", "tablePrefix"),
}
SETTINGS_ON_AZURE = {
    *("azureStorageAccount", "azureStorageContainer", "azureSubscriptionId", "azureTenantId", "region"),
    *("databricksClusterId", "databricksInstanceUrl", "databricksWorkspaceName", "databricksWorkspaceResourceGroup"),
    *("servicePrincipalClientId", "servicePrincipalClientSecret", "datePartition", "partitionBySlugName"),
}

_PROOF = re.compile(r"\[`(?P<shown>[^`]+)`\]\((?P<link>[^)]+)\)|`(?P<name>test_\w+)`")
_LINK = re.compile(r"\]\(([^)#\s]+)")


class Row(NamedTuple):
    """A line of one of the page's tables."""

    section: str
    feature: str
    word: str
    how: str
    test: str


def rows() -> Iterator[Row]:
    section = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("|") and not line.startswith(("| feature |", "| --- |")):
            cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
            assert len(cells) == 4, line
            yield Row(section, *cells)


ROWS = list(rows())
each_row = pytest.mark.parametrize("row", ROWS, ids=[f"{row.section}: {row.feature}" for row in ROWS])


def proofs(row: Row) -> Iterator[tuple[Path, str | None]]:
    """The files that a row links to, and after each the functions that it names there."""
    file = None
    for found in _PROOF.finditer(row.test):
        if found["link"]:
            file = PAGE.parent / found["link"]
            assert file.name == found["shown"], row
            yield file, None
        else:
            assert file, f"no file before `{found['name']}`"
            yield file, found["name"]


def test_every_section_has_a_table_and_no_feature_comes_twice() -> None:
    assert list(dict.fromkeys(row.section for row in ROWS)) == SECTIONS
    features = [(row.section, row.feature) for row in ROWS]
    assert [one for one in features if features.count(one) > 1] == []


@each_row
def test_every_row_has_one_of_the_four_words(row: Row) -> None:
    assert row.word in WORDS
    assert row.how or row.word == "same", "it says why"


@each_row
def test_every_row_names_tests_that_are_there(row: Row) -> None:
    named = list(proofs(row))
    assert [file.name for file, _ in named if not file.is_file()] == []
    functions = [(file, name) for file, name in named if name]
    assert {file for file, _ in named} == {file for file, _ in functions}, "no file without a function"
    assert functions or (row.word, row.test) == ("not there", "none")
    assert len(functions) <= 2
    gone = [name for file, name in functions if not re.search(rf"^def {name}\(", file.read_text(), re.MULTILINE)]
    assert gone == []


def test_every_link_of_the_page_leads_to_a_file() -> None:
    links = _LINK.findall(PAGE.read_text())
    assert links
    assert [link for link in links if "://" not in link and not (PAGE.parent / link).is_file()] == []


@pytest.mark.parametrize(
    ("section", "settings"), [("Settings on AWS", SETTINGS_ON_AWS), ("Settings on Azure", SETTINGS_ON_AZURE)]
)
def test_every_setting_of_segment_has_a_row(section: str, settings: set[str]) -> None:
    named = {name for row in ROWS if row.section == section for name in re.findall(r"`(\w+)`", row.feature)}
    assert settings - named == set()
