"""`make audit` tells what it did: pip-audit itself calls it a success to have looked up nothing."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AUDIT = Path(__file__).parent.parent / ".ci" / "audit.py"
LOCK = (
    "# made by uv\none==1.0 \\\n    --hash=sha256:aa\n    # via two\nTwo_X==2.0 \\\n    --hash=sha256:bb\n"
    "windows==3 ; sys_platform == 'win32' \\\n    --hash=sha256:cc\n"
)
ONE = {"name": "one", "version": "1.0", "vulns": []}
TWO = {"name": "two-x", "version": "2.0", "vulns": []}
# As it is said where the database is out of reach, with success.
SKIPPED = {"name": "two-x", "skip_reason": "Dependency not found on PyPI and could not be audited: two-x (2.0)"}
FLAW = {"id": "PYSEC-2026-1", "fix_versions": ["2.1"], "aliases": [], "description": ""}


def audited(folder: Path, told: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """An audit with a pip-audit that tells this."""
    (folder / "lock.txt").write_text(LOCK)
    (folder / "told").write_text(told)
    program = folder / "pip-audit"
    program.write_text(f'#!/bin/sh\ncat "{folder}/told"\necho "its last words" >&2\nexit {code}\n')
    program.chmod(0o755)
    words = [sys.executable, str(AUDIT), str(program), str(folder / "lock.txt")]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def found(*packages: dict[str, Any]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


def test_an_audit_that_found_nothing_says_how_much_it_looked_up(tmp_path: Path) -> None:
    done = audited(tmp_path, found(ONE, TWO))
    assert done.returncode == 0, done.stderr
    assert "2 of 2 packages looked up, 0 problems" in done.stdout
    assert "no known vulnerability" in done.stdout


@pytest.mark.parametrize(
    ("told", "code", "why"),
    [
        (found(ONE, SKIPPED), 0, "two-x was not looked up: Dependency not found on PyPI"),
        (found(ONE), 0, "two-x is pinned, and was not looked up"),
        (found(), 0, "one is pinned, and was not looked up"),
        (found(ONE, TWO | {"vulns": [FLAW]}), 1, "two-x 2.0 has PYSEC-2026-1; mended in 2.1"),
        (found(ONE, TWO | {"vulns": [FLAW]}), 0, "PYSEC-2026-1"),
        (found(ONE, TWO), 1, "its last words"),
        ("", 1, "its last words"),
        ("", 0, "its last words"),
        ("[]", 0, "its last words"),
    ],
)
def test_an_audit_that_found_something_or_did_not_happen_fails(tmp_path: Path, told: str, code: int, why: str) -> None:
    done = audited(tmp_path, told, code)
    assert done.returncode == 1
    assert why in done.stderr
    assert "no known vulnerability" not in done.stdout


def test_what_was_not_looked_up_is_not_counted_as_such(tmp_path: Path) -> None:
    assert "1 of 2 packages looked up, 1 problems" in audited(tmp_path, found(ONE, SKIPPED)).stdout


def test_an_audit_of_nothing_fails() -> None:
    done = subprocess.run([sys.executable, str(AUDIT), "pip-audit"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
