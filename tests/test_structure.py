"""The shape of the code: small modules, in layers that the documents tell as they are."""

import re
import tomllib
from pathlib import Path

import eventlake

SOURCE = Path(eventlake.__file__).parent
PROJECT = Path(__file__).parent.parent


def test_no_module_is_longer_than_three_hundred_lines() -> None:
    lengths = {str(file.relative_to(SOURCE)): len(file.read_text().splitlines()) for file in SOURCE.rglob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > 300} == {}


def test_whatever_needs_a_database_of_a_workspace_is_tried_on_postgresql() -> None:
    listed = re.search(
        r"^ON_POSTGRES := .*test_%\.py,((?:.|\\\n)*?)\)$", (PROJECT / "Makefile").read_text(), re.MULTILINE
    )
    assert listed
    names = set(listed[1].replace("\\", "").split())
    files = {path.stem.removeprefix("test_"): path.read_text() for path in Path(__file__).parent.glob("test_*.py")}
    makes_one = {name for name, text in files.items() if re.search(r"(?<![.\w])new_database\(", text)}
    assert makes_one
    assert makes_one <= names <= files.keys()


def test_the_page_on_architecture_tells_the_layers_that_are_held() -> None:
    rules = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    held = [sorted(layer.replace("eventlake.", "").split(" | ")) for layer in rules[0]["layers"]]
    section = (PROJECT / "ARCHITECTURE.md").read_text().partition("## Layers")[2].partition("| further rule")[0]
    told = [sorted(re.findall(r"`(\w+)`", row.split("|")[1])) for row in section.splitlines() if row.startswith("| `")]
    assert told == held
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= {room for layer in held for room in layer}, "a room that no rule is about"
