"""The shape of the code: small modules."""

from pathlib import Path

import eventlake

SOURCE = Path(eventlake.__file__).parent


def test_no_module_is_longer_than_three_hundred_lines() -> None:
    lengths = {str(file.relative_to(SOURCE)): len(file.read_text().splitlines()) for file in SOURCE.rglob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > 300} == {}
