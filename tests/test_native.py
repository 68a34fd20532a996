"""The library that is written in C: it is built from its source, for every system, and keeps to its memory."""

import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.events import instants
from eventlake.native import build, texts
from eventlake.native.library import library, slots_for

HERE = build.TARGETS[platform.system().lower(), platform.machine()]


def test_there_is_a_library_for_every_system() -> None:
    made = {build.library_path(*system).name for system in build.TARGETS}
    assert {path.name for path in build.FOLDER.glob("*.so")} == made
    assert build.library_path(platform.system(), platform.machine()).name in made
    assert library() is not None


def test_no_library_is_linked_to() -> None:
    told = subprocess.run(
        ["ldd", build.library_path(platform.system(), platform.machine())], capture_output=True, text=True, check=False
    )
    assert "statically linked" in told.stdout


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that stops whatever C does not define."""
    path = tmp_path_factory.mktemp("native") / "checked.so"
    build.build(HERE, path, "-O1", "-fsanitize=undefined", "-fsanitize-trap=all")
    return path


def run(library: Path, rounds: int, seed: int) -> subprocess.CompletedProcess[str]:
    script = Path(__file__).with_name("guarded.py")
    return subprocess.run(
        [sys.executable, script, library, str(seed), str(rounds)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("is_checked", [True, False], ids=["checked", "as shipped"])
def test_hostile_lines_are_read_without_a_step_beyond_the_memory_that_is_theirs(
    checked: Path, is_checked: bool, request: pytest.FixtureRequest
) -> None:
    seed = request.config.getoption("--hypothesis-seed")
    shipped = build.library_path(platform.system(), platform.machine())
    done = run(checked if is_checked else shipped, 300, seed)
    assert done.returncode == 0, f"seed {seed}: {done.returncode} {done.stderr}"
    assert int(done.stdout) > 1000


def test_a_step_beyond_would_be_noticed(tmp_path: Path) -> None:
    """A library that looks at the bytes after those that it is at is killed: the guard stands where it should."""
    folder = tmp_path / "source"
    shutil.copytree(build.FOLDER, folder)
    json_c = (folder / "json.c").read_text()
    assert json_c.count("uint64_t bytes = eight_bytes(p);") == 1
    (folder / "json.c").write_text(
        json_c.replace("bytes = eight_bytes(p);", "bytes = eight_bytes(p) | eight_bytes(p + 24);")
    )
    build.build(HERE, tmp_path / "far.so", folder=folder)
    assert run(tmp_path / "far.so", 300, 1).returncode == -signal.SIGSEGV


@pytest.mark.parametrize(("entries", "slots"), [(1, 2), (2, 4), (3, 8), (4, 8), (5, 16), (1000, 2048), (1024, 2048)])
def test_half_of_a_hash_table_is_empty(entries: int, slots: int) -> None:
    assert slots_for(entries) == slots
    assert 2 * entries <= slots


# Texts


PARTS = st.sampled_from(["2026", "0001", "9999", "0000", "-", "02", "29", "30", "12", "31", "T", ":", "23", "59", "60"])
PIECES = PARTS | st.sampled_from(
    [".", "5", "000000", "1234567", "Z", "z", "+", "+05", "-0530", "+23:59", "24", " ", "é"]
)


@given(st.lists(st.lists(PIECES, max_size=14).map("".join), max_size=5))
@example(["2026-11-15T10:20:30.123Z", "2024-02-29T23:59:59.1234567Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00Z"])
@example(["2000-02-29T00:00", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59-00:01"])
@example(["1969-12-31T23:59:59.9999990Z", "1970-01-01T00:00:00.0000001Z", "2026-11-15T10:20:30.Z", "2026-11-15T10:20:"])
@example(["2026-11-15T10:20:30+5", "2026-11-15T10:20:30+05:", "2026-11-15T10:20:30+05:6", "2026-11-15T24:00:00Z", ""])
def test_date_times_are_read_at_once_as_one_by_one(column: list[str]) -> None:
    micros, found = texts.instants(pa.array(column, pa.string()))
    for text, at_once, how in zip(column, micros.tolist(), found.tolist(), strict=True):
        instant = instants.parse(text)
        assert how == (0 if instant is None else 1 if instant.exact else 2), text
        assert instant is None or instant.micros == at_once, text


@given(st.lists(st.integers(instants.FIRST, instants.LAST), max_size=5), st.integers(0, 6))
@example([instants.FIRST, instants.LAST, 0, -1], 0)
def test_every_instant_is_read_as_it_is_written(moments: list[int], first: int) -> None:
    column = pa.array([instants.to_text(moment) for moment in moments], pa.string())[first:]
    micros, found = texts.instants(column)
    assert micros.tolist() == moments[first:]
    assert found.tolist() == [1] * len(column)


@given(
    st.lists(st.from_regex(r"-?[0-9]{0,27}(\.[0-9]{0,8})?([eE]5)?", fullmatch=True) | st.text(max_size=3), max_size=5)
)
@example(
    ["9" * 25, "9" * 26, "-" + "9" * 25 + ".999999", "0.000001", "0.0000001", "-0", "-0.0", ".5", "5.", "-", "", "+1"]
)
def test_numbers_are_read_at_once_as_one_by_one_if_they_have_few_digits(column: list[str]) -> None:
    halves, found = texts.decimals(pa.array(column, pa.string()))
    for text, (low, high), is_read in zip(column, halves.tolist(), found.tolist(), strict=True):
        whole, point, places = text.removeprefix("-").partition(".")
        assert is_read == (
            1 <= len(whole) <= 25
            and (whole + places).isascii()
            and (whole + places).isdigit()
            and len(places) <= 6
            and bool(point) == bool(places)
        )
        if is_read:
            millionths = low + (high << 64)
            sign = -1 if text.startswith("-") else 1
            assert millionths - (millionths >> 127 << 128) == sign * int(whole + places.ljust(6, "0"))


ELSEWHERE = """
import pyarrow as pa
from eventlake.native import texts
from eventlake.schema import instant_columns, numbers

assert not texts.can_read()
column = pa.array(["2026-01-02T03:04:05Z", None, "soon", "2026-01-02T03:04:05.1234567Z"])
found = instant_columns.parse(column)
print(found.values.cast(pa.int64()).to_pylist(), found.is_exact.tolist(), found.is_cut.tolist())
print(instant_columns.are_instants(column.drop_null()).tolist())
print(numbers.to_decimals(pa.array(["1.5", None])).is_plain.tolist())
"""


def test_where_there_is_no_library_values_are_read_one_by_one(tmp_path: Path) -> None:
    """As on a system for which none was built."""
    without = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(build.FOLDER.parent, tmp_path / "eventlake", ignore=without)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines() == [
        "[1767323045000000, None, None, 1767323045123456] [True, False, False, False] [False, False, False, True]",
        "[True, False, True]",
        "[False, False]",
    ], done.stderr
