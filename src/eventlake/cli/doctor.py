"""`eventlake doctor`: every part that a sync needs, tried one after the other."""

import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.text import Text

from eventlake.cli import output, state
from eventlake.cli.state import JsonFlag
from eventlake.errors import EventLakeError, NoSpaceError, SetupError
from eventlake.lake.layout import STAGE
from eventlake.reports.report import time_text
from eventlake.runners.java import java_home
from eventlake.runners.quick_start import find_archive, make_archive
from eventlake.storage.local import LocalStorage
from eventlake.workspace import Workspace

ROOM = 1_000_000_000  # bytes; a sync needs about the size of its raw files

_MARKS = {"passed": Text("✓", "green"), "failed": Text("✗", "bold red"), "skipped": Text("-", "dim")}


class Step(NamedTuple):
    """Something to try; it is skipped if a step that it needs did not pass."""

    name: str
    attempt: Callable[[Workspace], str]
    needs: str | None = None


class SkippedStep(Exception):  # noqa: N818 - not an error
    """There is nothing to try here."""


def doctor(
    quick_start: Annotated[
        bool, typer.Option("--quick-start", help="Make a class archive, from which Spark starts in half the time.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check settings, storage, database, Java and Spark, step by step, each with its fix."""
    steps = (*STEPS, Step("quick start", lambda place: _archive(place, make=quick_start), "spark"))
    results = list(_results(state.workspace(), steps))
    if as_json:
        output.print_json(results)
    else:
        rows = [
            (_MARKS[r["status"]], r["step"], r["detail"], f"Fix: {r['fix']}" if "fix" in r else "") for r in results
        ]
        output.table(None, ("", "step", "", ""), rows)
    if any(result["status"] == "failed" for result in results):
        raise typer.Exit(1)


def _results(place: Workspace, steps: Iterable[Step]) -> Iterator[dict[str, Any]]:
    passed = set()
    for name, attempt, needs in steps:
        result: dict[str, Any] = {"step": name, "status": "skipped"}
        if needs and needs not in passed:
            yield result | {"detail": f"needs {needs}"}
            continue
        try:
            result |= {"status": "passed", "detail": attempt(place)}
            passed.add(name)
        except SkippedStep as reason:
            result |= {"detail": str(reason)}
        except EventLakeError as error:
            result |= {"status": "failed", "detail": error.problem, "fix": error.fix}
        except Exception as error:  # a doctor must not die of the illness
            told = f"{type(error).__name__}: {error}"
            result |= {"status": "failed", "detail": told, "fix": "see the message; `eventlake --verbose` shows more"}
        yield result


def _settings(place: Workspace) -> str:
    return f"workspace {place.settings.workspace_id}, lake in {place.storage.root}"


class _Trial:
    """A file that is written, read, listed and deleted where runs put theirs."""

    path = f"{STAGE}/.doctor-{uuid.uuid4().hex}"
    content = b"eventlake"

    def write(self, place: Workspace) -> str:
        place.storage.write(self.path, self.content)
        return f"a file in {place.storage.full(STAGE)}"

    def create(self, place: Workspace) -> str:
        fresh = f"{self.path}-new"
        is_new = place.storage.create(fresh, self.content)
        is_again = place.storage.create(fresh, b"another content")
        place.storage.delete(fresh)
        if is_again or not is_new:
            raise SetupError(
                "a file that must not exist was written over another",
                fix="use storage that can create a file only if there is none; without it two runs may overwrite "
                "each other's manifests",
            )
        return "never replaces a file"

    def read(self, place: Workspace) -> str:
        return self._same(place.storage.read(self.path) == self.content, "gives back what was written")

    def list(self, place: Workspace) -> str:
        return self._same(self.path in {file.path for file in place.storage.files(STAGE)}, "shows what was written")

    def delete(self, place: Workspace) -> str:
        place.storage.delete(self.path)
        return self._same(place.storage.stat(self.path) is None, "what is deleted is gone")

    @staticmethod
    def _same(holds: bool, what: str) -> str:
        if not holds:
            raise SetupError(f"not so: the storage {what}", fix="check the disk, or the consistency of the store")
        return what


def _space(place: Workspace) -> str:
    if not isinstance(place.storage, LocalStorage):
        raise SkippedStep("a bucket has no end")
    root = Path(place.storage.root)
    free = shutil.disk_usage(root if root.exists() else place.folder).free
    if free < ROOM:
        raise NoSpaceError(
            f"only {output.size(free)} free", fix="make room: a sync needs about the size of its raw files"
        )
    return f"{output.size(free)} free"


def _clock(place: Workspace) -> str:
    now = place.clock.now()
    newest = max((run.started_at for run in place.runs.latest(1000)), default=0)
    if now < newest:
        raise SetupError(
            f"the clock shows {time_text(now * 1000)}, but a run began at {time_text(newest * 1000)}",
            fix="set the clock; let a time server keep it. Nothing is lost meanwhile, but reports show wrong times",
        )
    return time_text(now * 1000)


def _spark(place: Workspace) -> str:
    with state.spark(place) as runner:
        cores = runner.parallelism
        runner.run(_twice, None, list(range(cores)))
        return f"{place.settings.spark.master}, {cores} tasks at once"


def _twice(_: None, number: int) -> int:
    return 2 * number


def _archive(place: Workspace, *, make: bool) -> str:
    if not place.settings.spark.master.startswith("local"):
        raise SkippedStep("is for Spark on this machine")
    archive = find_archive()
    if archive is None and not make:
        raise SkippedStep("`eventlake doctor --quick-start` lets Spark start in half the time, for 120 MB of disk")
    archive = archive or make_archive(state.spark_log(place))
    if archive is None:
        raise SkippedStep(f"this Java made no class archive; {state.spark_log(place)} may tell why")
    return str(archive)


_trial = _Trial()

STEPS = (
    Step("settings", _settings),
    Step("storage: write", _trial.write, "settings"),
    Step("storage: read", _trial.read, "storage: write"),
    Step("storage: list", _trial.list, "storage: write"),
    Step("storage: conditional create", _trial.create, "storage: write"),
    Step("storage: delete", _trial.delete, "storage: write"),
    Step("disk space", _space, "settings"),
    Step("database", lambda place: f"{len(place.sources.all())} sources"),
    Step("catalog", lambda place: f"{len(place.catalog.tables())} tables", "database"),
    Step("clock", _clock, "database"),
    Step("java", lambda _: str(java_home())),
    Step("spark", _spark, "java"),
)
