"""Every screen that the README and the tutorial show is what the program prints.

The commands of a page are given in order, in an empty folder, as a reader would type them. What differs from time to
time (ids, times, sizes) is made equal on both sides. `make screens` writes the pages anew from what is printed.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorial.md"
README = ROOT / "README.md"
OPERATIONS = ROOT / "docs" / "operations.md"
UPDATE = bool(os.environ.get("EVENTLAKE_UPDATE_SCREENS"))
WIDTH = 115  # fits a page
REST = "…"  # the rest of a screen is left out

_BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)

# What differs each time, and what stands for it.
_VARIES = {
    r"\b1[789]\d{17}\b": "RUN",
    r"\b[0-9a-f]{16}\b": "ID",
    r"\b[A-Za-z0-9]{32}\b": "KEY",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?": "TIME",
    r"\b\d+(\.\d+)? (B|KB|MB|GB)\b": "SIZE",
    r"127\.0\.0\.1:\d+": "127.0.0.1:PORT",
    r" +": " ",
}


class Screen(NamedTuple):
    """A command as a page shows it, and what it prints there."""

    command: str
    output: str


def screens(block: str) -> Iterator[Screen]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        command = lines.pop(0)
        while command.count('"') % 2:
            command += "\n" + lines.pop(0)
        yield Screen(command, "\n".join(lines).strip("\n"))


def blocks(page: Path) -> list[str]:
    return _BLOCK.findall(page.read_text())


def made_equal(output: str, folder: Path) -> list[str]:
    output = output.replace(f"{folder}/", "/tmp/")
    output = re.sub(r"(?<=/)[0-9a-f]{16}(?=/)", "ID", output)
    for pattern, word in _VARIES.items():
        output = re.sub(pattern, word, output)
    return [line.strip() for line in output.strip().splitlines()]


class Shell:
    """A terminal in an empty folder, in which a `cd` lasts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._here = folder

    def type(self, command: str) -> str:
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        clean = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLAKE_")}
        done = subprocess.run(
            ["bash", "-e", "-c", f"{command}\npwd > {self.folder}/.here"],
            cwd=self._here,
            env={**clean, "PATH": programs, "COLUMNS": str(WIDTH), "TERM": "dumb"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        self._here = Path((self.folder / ".here").read_text().strip())
        return "".join(line for line in done.stdout.splitlines(keepends=True) if "━" not in line)  # no progress bars


@pytest.fixture
def shell() -> Iterator[Shell]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # a short name, for a line must not break because of it
        yield Shell(Path(folder))


def check(page: Path, shell: Shell) -> int:
    """Give all commands of a page; returns how many screens were compared."""
    checked = 0
    for block in blocks(page):
        if block.startswith("cat > "):
            shell.type(block)
        written = block
        for screen in screens(block):
            printed = shell.type(screen.command).rstrip("\n")
            if UPDATE:
                written = updated(written, screen, printed.replace(f"{shell.folder}/", "/tmp/"))
                continue
            expected = made_equal(screen.output, shell.folder)
            found = made_equal(printed, shell.folder)
            if expected and expected[-1] == REST:
                expected.pop()
                found = found[: len(expected)]
            assert found == expected, f"{page.name} shows another screen of `{screen.command}`; see `make screens`"
            checked += 1
        if UPDATE and written != block:
            page.write_text(page.read_text().replace(block, written))
    return checked


def updated(block: str, screen: Screen, printed: str) -> str:
    """The block with what was printed, unless only what always differs is different."""
    lines = [line.rstrip() for line in printed.splitlines()]
    if screen.output.endswith(REST):
        lines = [*lines[: screen.output.count("\n")], "  " + REST]
    return block.replace(f"$ {screen.command}\n{screen.output}", f"$ {screen.command}\n" + "\n".join(lines), 1)


@pytest.mark.long
def test_the_tutorial_shows_what_is_printed(shell: Shell) -> None:
    assert check(TUTORIAL, shell) > 12 or UPDATE


def test_the_readme_shows_what_is_printed(shell: Shell) -> None:
    (monday,) = [block for block in blocks(TUTORIAL) if block.startswith("cat > monday.json")]
    shell.type(monday)
    assert check(README, shell) >= 5 or UPDATE


def test_the_page_on_operations_shows_what_the_doctor_tries(shell: Shell) -> None:
    (shown,) = [
        screen for block in blocks(OPERATIONS) for screen in screens(block) if screen.command == "eventlake doctor"
    ]
    shell.type("eventlake init my-lake && eventlake -C my-lake source add web")
    varies = {r"\d+ tasks? at once": "TASKS", r"(?<=java ).*": "JAVA", r"(?<=quick start ).*": "QUICK"}
    found, expected = [
        [_replaced(line, varies) for line in made_equal(text, shell.folder)]
        for text in (shell.type("cd my-lake && eventlake doctor"), shown.output)
    ]
    assert [line.lstrip("✓- ") for line in found] == [line.lstrip("✓- ") for line in expected]


def _replaced(line: str, words: dict[str, str]) -> str:
    for pattern, word in words.items():
        line = re.sub(pattern, word, line)
    return line
