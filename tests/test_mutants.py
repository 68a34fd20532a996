"""What `make mutants` rests on."""

import re
from pathlib import Path

import pytest

import eventlake
from mutants import PAGE, TESTS, Mutant, changes, idle, listed, undecorated

SOURCE = Path(eventlake.__file__).parent


def test_every_module_that_is_changed_and_every_test_of_it_exists() -> None:
    assert [name for name in TESTS if not (SOURCE / f"{name}.py").is_file()] == []
    here = Path(__file__).parent
    assert [name for names in TESTS.values() for name in names if not (here / f"test_{name}.py").is_file()] == []


def test_survivors_are_listed_by_modules_that_are_changed_and_with_a_reason() -> None:
    sections = re.findall(r"^### (\S+)\n(.*?)(?=^#|\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert sections
    assert {name for name, _ in sections} <= set(TESTS)
    for name, text in sections:
        assert listed(name)
        for block in re.split(r"\n\n(?!- )", text.strip()):
            assert not block.startswith("- "), f"the survivors of {name} have no reason"


@pytest.mark.parametrize("module", TESTS)
def test_a_module_without_decorators_still_means_the_same(module: str) -> None:
    code = undecorated((SOURCE / f"{module}.py").read_text())
    assert not re.search(r"^ *@(?!dataclass)", code, re.MULTILINE)
    compile(code, module, "exec")


CODE = """
import functools

class A:
    @property
    @functools.cache
    def one(self) -> int:
        return 1

    def two(self) -> int:
        return 2
"""


def test_a_decorator_is_called_after_its_function() -> None:
    lines = undecorated(CODE).splitlines()
    assert lines[4:7] == [
        "    def one(self) -> int:",
        "        return 1",
        "    one = property(functools.cache(one))",
    ]
    assert lines[-1] == "        return 2"


MUTATED = """
class A:
    def xǁAǁtwo__mutmut_orig(self, n):
        if n:
            return 2
        return 3
    def xǁAǁtwo__mutmut_1(self, n):
        if n:
            return 3
        return 3
    def xǁAǁtwo__mutmut_2(self, n):
        return 3
def x_f__mutmut_orig(n=1): pass
def x_f__mutmut_1(n=2): pass
"""


def test_a_mutant_is_told_by_the_lines_that_it_changes() -> None:
    assert list(changes(MUTATED, ["xǁAǁtwo__mutmut_1", "xǁAǁtwo__mutmut_2", "x_f__mutmut_1"])) == [
        Mutant("A.two", "return 2", "return 3"),
        Mutant("A.two", "if n: return 2", ""),
        Mutant("f", "def f(n=1): pass", "def f(n=2): pass"),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("zip(a, b, strict=True)", "zip(a, b, strict=False)", True),
        ("zip(a, b, strict=True)", "zip(a, b, strict=None)", True),
        ("zip(a, b, strict=True)", "zip(a, b, )", True),
        ("zip(a, b, strict=True)", "zip(a, strict=True)", False),
        ("zip(a, b, strict=True)", "zip(a, None, strict=True)", False),
        ("f(a, True)", "f(a, False)", False),
    ],
)
def test_only_a_guard_of_zip_is_not_counted(before: str, after: str, expected: bool) -> None:
    assert idle(Mutant("f", before, after)) is expected
