"""`make mutants`: change one thing of a module at a time, and see whether its tests notice.

A mutant that no test notices survives. It shows a missing test, dead code, or a change that does not matter; the
last are listed in docs/mutants.md with the reason. A module fails if fewer than 90 % of its mutants are noticed, if
one survives that is not listed, or if one is listed that does not survive.
"""

import argparse
import ast
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SCRATCH = ROOT / "build" / "mutants"
PAGE = ROOT / "docs" / "mutants.md"
WANTED = 0.90

# The modules where a silent fault costs data, and the tests that are about each. Only tests that take seconds:
# mutmut runs, for every mutant, those of them that call the function which it changes.
TESTS: dict[str, tuple[str, ...]] = {
    "schema/evolve": ("evolve",),
    "schema/cast": ("kinds_and_cast",),
    "schema/numbers": ("kinds_and_cast", "exact_json"),
    "schema/kinds": ("kinds_and_cast",),
    "schema/names": ("names",),
    "schema/ranked": ("ranked",),
    "schema/rudder_names": ("rudder_names",),
    "schema/rudder_columns": ("rudder_columns",),
    "schema/rudder_values": ("rudder_values",),
    "schema/rescue": ("rescue",),
    "schema/cells": ("cells",),
    "schema/instant_columns": ("instants", "native"),
    "native/texts": ("native", "instants"),
    "events/instants": ("instants",),
    "events/envelope": ("envelope",),
    "events/stamps": ("checks_and_stamps",),
    "lake/ids": ("ids",),
    "lake/parquet": ("parquet",),
    "lake/rudderstack": ("rudder_columns", "rudder_names"),
    "lake/packing": ("packing",),
    "lake/segments": ("segments",),
    "lake/staging": ("staging",),
    "lake/staged_rows": ("staging",),
    "lake/quarantine": ("quarantine",),
    "storage/local": ("local_storage", "storage"),
    "archive/reader": ("archive",),
    "archive/importer": ("archive",),
    "reading/exact_json": ("exact_json",),
    "reading/flatten": ("flatten",),
    "reading/route_buffer": ("route_buffer",),
    "reading/scanner": ("scanner",),
    "reading/scan": ("scan", "scanner"),
    "reading/evidence": ("route_buffer", "scanner"),
    "tasks/stage": ("stage",),
    "tasks/gate": ("gate",),
    "tasks/message_id": ("message_id",),
    "tasks/counts": ("counts",),
    "tasks/dedupe": ("copies",),
    "tasks/dropped": ("copies", "publish"),
    "tasks/reindex": ("index",),
    "tasks/publish": ("publish",),
    "tasks/carried_over": ("carried_over",),
    "sync/discover": ("discover",),
    "sync/stage": ("plan", "admission"),
    "sync/shares": ("plan",),
    "sync/plan": ("plan",),
    "sync/dedupe": ("copies", "index", "replay", "settings"),
    "sync/books": ("books",),
    "sync/manifest_of": ("manifest",),
    "sync/notices": ("notices",),
    "sync/index": ("index",),
    "sync/drop": ("drop",),
    "sync/beside": ("beside",),
    "sync/carry_out": ("parts",),
    "sync/requests": ("requests", "parts"),
    "commit/commit": ("commit",),
    "commit/recover": ("commit", "beside"),
    "commit/run_reports": ("commit",),
    "commit/manifest": ("commit", "restore", "beside"),
    "commit/ownership": ("ownership",),
    "audit/verify": ("verify",),
    "audit/repair": ("verify",),
    "audit/restore": ("restore",),
    "control/ledger": ("ledger",),
    "control/leases": ("leases", "beside"),
    "control/admission": ("ledger", "admission"),
    "control/replays": ("parts",),
    "control/connections": ("lakes", "settings"),
    "collector/log": ("log", "spool"),
    "collector/roll": ("spool",),
    "collector/recent": ("spool", "mend"),
    "collector/mend": ("mend",),
    "collector/bring": ("waiting",),
    "collector/batch_text": ("batch_text",),
    "collector/group_commit": ("group_commit",),
}

# Of these modules only the tests whose names fit: the others would start servers, or take long.
ONLY = {
    "storage/local": "local",
    "archive/reader": "not hundred_megabytes",
    "collector/recent": "not running_collector",
    "collector/mend": "not running_collector",
    "control/leases": "not postgresql and not froze and not any_order",
    "control/admission": "test_ledger or remembered or made_up",
    "reading/scanner": "not staged",
    "reading/scan": "not staged and not hostile and not demo and not transit",
    "native/texts": "not hostile and not step",
    "schema/instant_columns": "test_instants or no_library",
    "sync/beside": "not any_order",
    "commit/recover": "not any_order",
    "commit/manifest": "not any_order",
}

# A call that mutmut can exchange takes three frames of the stack instead of one.
DEEPER = "\nimport sys\nsys.setrecursionlimit(2500)\n"

# What a mutant did to the tests, by the code with which they ended. Whatever is none of these survived.
NOTICED = {1, 3, 24, 36, 152, 255, -9, -11, -24}  # failed, broke, took too long, crashed


class Mutant(NamedTuple):
    """One change, as docs/mutants.md names it: in which function which lines become which."""

    function: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"- `{self.function}`: `{self.before}` → `{self.after}`"


class Outcome(NamedTuple):
    mutants: int
    survivors: list[Mutant]
    listed: set[Mutant]

    @property
    def share(self) -> float:
        return 1 - len(self.survivors) / self.mutants if self.mutants else 0.0

    @property
    def passed(self) -> bool:
        return set(self.survivors) == self.listed and self.share >= WANTED


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", help="such as schema/evolve; all if none is named")
    parser.add_argument("--children", type=int, default=2, help="mutants tried at the same time")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.modules) - set(TESTS))
    if unknown:
        parser.error(f"no tests are named for {', '.join(unknown)}; there are {', '.join(TESTS)}")
    outcomes = {}
    for module in chosen.modules or TESTS:
        print(f"{module} …", flush=True)
        outcomes[module] = tried(module, children=chosen.children)
    tell(outcomes)
    return 0 if all(outcome.passed for outcome in outcomes.values()) else 1


def tried(module: str, *, children: int) -> Outcome:
    """Run the tests of one module for each of its mutants, in a copy of the project."""
    folder = SCRATCH / module.replace("/", "-")
    shutil.rmtree(folder, ignore_errors=True)
    copied = shutil.ignore_patterns("__pycache__", "terraform", "clients")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=copied)
    source = folder / "src" / "eventlake" / f"{module}.py"
    source.write_text(undecorated(source.read_text()))
    with (folder / "tests" / "conftest.py").open("a") as conftest:
        conftest.write(DEEPER)
    (folder / "pyproject.toml").write_text(settings(module))
    ran = subprocess.run(
        [Path(sys.executable).with_name("mutmut"), "run", "--max-children", str(children)],
        cwd=folder,
        env={**os.environ, "EVENTLAKE_TEST_RUNNER": "process"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    mutated = folder / "mutants" / source.relative_to(folder)
    results = json.loads(Path(f"{mutated}.meta").read_text())["exit_code_by_key"] if ran.returncode == 0 else {}
    if not results or None in results.values():
        print(ran.stdout[-5000:])
        sys.exit(f"the mutants of {module} could not be tried")
    mutants = changes(mutated.read_text(), [name.rpartition(".")[2] for name in results])
    counted = [(mutant, code) for mutant, code in zip(mutants, results.values(), strict=True) if not idle(mutant)]
    return Outcome(len(counted), [mutant for mutant, code in counted if code not in NOTICED], listed(module))


def settings(module: str) -> str:
    """The settings of mutmut and of pytest in the copy."""
    tests = [f"tests/test_{name}.py" for name in TESTS[module]]
    return f"""
[tool.mutmut]
source_paths = ["src"]
only_mutate = ["src/eventlake/{module}.py"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "--hypothesis-profile", "mutants", "-k", "{ONLY.get(module, "")}"]
pytest_add_cli_args_test_selection = {json.dumps(tests)}
use_git_change_detection = false

[tool.pytest.ini_options]
timeout = 300
"""


def undecorated(code: str) -> str:
    """The same module with `name = decorator(name)` for each decorator: mutmut passes decorated functions by."""
    lines = code.splitlines()
    tree = ast.parse(code)
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    functions = [node for body in bodies for node in body if isinstance(node, ast.FunctionDef) and node.decorator_list]
    for function in sorted(functions, key=lambda node: node.lineno, reverse=True):
        assert function.end_lineno
        name = called = function.name
        for decorator in reversed(function.decorator_list):
            called = f"{ast.unparse(decorator)}({called})"
        lines.insert(function.end_lineno, f"{' ' * function.col_offset}{name} = {called}")
        del lines[function.decorator_list[0].lineno - 1 : function.lineno - 1]
    return "\n".join(lines) + "\n"


def changes(code: str, names: Iterable[str]) -> Iterator[Mutant]:
    """What the mutants of these names change."""
    functions = {
        node.name: ast.get_source_segment(code, node) or ""
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    for name in names:
        function = name.partition("__mutmut_")[0]
        before, after = (
            [line.replace(full, readable(function).rpartition(".")[2]) for line in functions[full].splitlines()]
            for full in (f"{function}__mutmut_orig", name)
        )
        differing = [
            (before[a:b], after[c:d])
            for what, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
            if what != "equal"
        ]
        yield Mutant(readable(function), *(" ".join(map(one_line, side)) for side in zip(*differing, strict=True)))


def idle(mutant: Mutant) -> bool:
    """Whether only `strict=True` of a `zip` was changed, a guard that cannot fail where it stands."""
    before, after = (re.sub(r", (strict=(True|False|None))?\)", ")", side) for side in mutant[1:])
    return before == after


def one_line(lines: Sequence[str]) -> str:
    return " ".join(line.strip() for line in lines)


def readable(function: str) -> str:
    """`Flattener._walk` for what mutmut calls xǁFlattenerǁ_walk, and `parse` for x_parse."""
    return ".".join(function.split("ǁ")[1:]) if "ǁ" in function else function.removeprefix("x_")


_ENTRY = re.compile(r"- `([^`]+)`: `([^`]*)` → `([^`]*)`")


def listed(module: str) -> set[Mutant]:
    """The mutants of a module that docs/mutants.md says do not matter."""
    section = PAGE.read_text().partition(f"\n### {module}\n")[2].partition("\n##")[0]
    entries = [line for line in section.splitlines() if line.startswith("- `")]
    assert all(map(_ENTRY.fullmatch, entries)), f"{PAGE.name} has an entry of {module} that cannot be read"
    return {Mutant(*match.groups()) for match in map(_ENTRY.fullmatch, entries) if match}


def tell(outcomes: dict[str, Outcome]) -> None:
    print(f"\n{'module':22}{'mutants':>8}{'killed':>8}{'survivors':>10}{'share':>8}")
    for module, (mutants, survivors, _) in outcomes.items():
        share = outcomes[module].share
        print(f"{module:22}{mutants:8}{mutants - len(survivors):8}{len(survivors):10}{share:8.1%}")
    for module, (_, survivors, known) in outcomes.items():
        told("survive and are not listed in docs/mutants.md", module, set(survivors) - known)
        told("are listed in docs/mutants.md, but tests notice them, or they are gone", module, known - set(survivors))


def told(what: str, module: str, mutants: set[Mutant]) -> None:
    if mutants:
        print(f"\n{module}: these {what}", *sorted(map(str, mutants)), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
