"""What `eventlake doctor` tries on every machine."""

import shutil
import uuid
from pathlib import Path

from eventlake.archive import layout as archive_layout
from eventlake.commit.ownership import refuse_unknown
from eventlake.control.conflicts import check_dialect
from eventlake.doctor.step import SkippedStep
from eventlake.errors import NoSpaceError, SetupError, StagingDeniedError, UploadDeniedError
from eventlake.library.runners import Around, Runners, spark_log
from eventlake.reports.report import time_text
from eventlake.reports.words import count, size
from eventlake.runners.class_cache import find_class_cache, make_class_cache
from eventlake.runners.java import java_home
from eventlake.tasks.registry import twice
from eventlake.workspace import Lake

ROOM = 1_000_000_000  # bytes; a sync needs about the size of its raw files


def settings(lake: Lake) -> str:
    return f"workspace {lake.workspace_id}, lake in {lake.storage.root}"


class Trial:
    """A file that is written, read, listed and deleted where runs put theirs."""

    content = b"eventlake"

    name = f".doctor-{uuid.uuid4().hex}"

    def _path(self, lake: Lake) -> str:
        return f"{lake.folders.stage}/{self.name}"

    def _other_path(self, lake: Lake) -> str:
        return f"{lake.folders.commits}/{self.name}"

    def stage(self, lake: Lake) -> str:
        try:
            lake.storage.write(self._path(lake), self.content)
        except UploadDeniedError as error:
            raise StagingDeniedError(error.problem, fix=error.fix) from error
        return f"a file in {lake.storage.full(lake.folders.stage)}"

    def write(self, lake: Lake) -> str:
        lake.storage.write(self._other_path(lake), self.content)
        return f"a file in {lake.storage.full(lake.folders.commits)}"

    def create(self, lake: Lake) -> str:
        fresh = f"{self._path(lake)}-new"
        is_new = lake.storage.create(fresh, self.content)
        is_again = lake.storage.create(fresh, b"another content")
        lake.storage.delete(fresh)
        if is_again or not is_new:
            raise SetupError(
                "a file that must not exist was written over another",
                fix="use storage that can create a file only if there is none; without it two runs may overwrite "
                "each other's manifests",
            )
        return "never replaces a file"

    def move(self, lake: Lake) -> str:
        """As each file of a run gets its final name: in object stores, by a copy, which asks for more rights."""
        source, target = f"{self._path(lake)}-moving", f"{self._other_path(lake)}-moved"
        lake.storage.write(source, self.content)
        lake.storage.move(source, target)
        found, left = lake.storage.read(target), lake.storage.stat(source)
        lake.storage.delete(target)
        return self._same(found == self.content and left is None, "gives a file another name")

    def read(self, lake: Lake) -> str:
        return self._same(lake.storage.read(self._path(lake)) == self.content, "gives back what was written")

    def list(self, lake: Lake) -> str:
        shown = {file.path for file in lake.storage.files(lake.folders.stage)}
        return self._same(self._path(lake) in shown, "shows what was written")

    def delete(self, lake: Lake) -> str:
        lake.storage.delete(self._other_path(lake))
        lake.storage.delete(self._path(lake))
        return self._same(lake.storage.stat(self._path(lake)) is None, "what is deleted is gone")

    @staticmethod
    def _same(holds: bool, what: str) -> str:
        if not holds:
            raise SetupError(f"not so: the storage {what}", fix="check the disk, or the consistency of the store")
        return what


def raw_archive(lake: Lake) -> str:
    return f"{count(len(archive_layout.sources(lake.archive)), 'source')} in {lake.archive.root}"


def space(lake: Lake) -> str:
    root = Path(lake.storage.root)
    free = shutil.disk_usage(root if root.exists() else lake.workspace.folder).free
    if free < ROOM:
        raise NoSpaceError(f"only {size(free)} free", fix="make room: a sync needs about the size of its raw files")
    return f"{size(free)} free"


def lake(lake: Lake) -> str:
    refuse_unknown(lake)
    return "all that is in it is known to the database"


def connections(lake: Lake) -> str:
    """Also of lakes that the settings do not have, which have no doctor of their own."""
    for name in lake.workspace.settings.wrong_lakes:
        raise lake.workspace.connections.no_lake(name)
    known = lake.workspace.connections.all()
    for one in known:
        if one.lake not in lake.workspace.lakes:
            error = lake.workspace.connections.no_lake(one.lake)
            raise SetupError(f"{one.full_name}: {error.problem}", fix=error.fix)
        if one.lake == lake.name:
            check_dialect(one, lake.settings.dialect)
    return count(sum(one.lake == lake.name for one in known), "connection")


def clock(lake: Lake) -> str:
    now = lake.clock.now()
    newest = max((run.started_at for run in lake.workspace.runs.latest(1000)), default=0)
    if now < newest:
        raise SetupError(
            f"the clock shows {time_text(now * 1000)}, but a run began at {time_text(newest * 1000)}",
            fix="set the clock; let a time server keep it. Nothing is lost meanwhile, but reports show wrong times",
        )
    return time_text(now * 1000)


def java(_: Lake) -> str:
    return str(java_home())


def spark(lake: Lake, around: Around) -> str:
    settings = lake.settings.runner
    with Runners(lake.workspace, around) as runners, runners.of(lake.name) as runner:
        cores = runner.parallelism
        runner.run(twice, None, list(range(cores)))
        where = settings.master if settings.kind == "spark" else settings.kind
        return f"{where}, {count(cores, 'task')} at once"


def class_cache(lake: Lake, *, make: bool) -> str:
    settings, log = lake.settings.runner, spark_log(lake)
    if settings.kind != "spark" or not settings.master.startswith("local"):
        raise SkippedStep("is for Spark on this machine")
    found = find_class_cache()
    if found is None and not make:
        raise SkippedStep("`eventlake doctor --quick-start` lets Spark start sooner, for 70 MB of disk")
    found = found or make_class_cache(log)
    if found is None:
        raise SkippedStep(f"this Java made no class cache; {log} may tell why")
    return str(found)
