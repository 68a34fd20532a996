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


def settings(place: Lake) -> str:
    return f"workspace {place.workspace_id}, lake in {place.storage.root}"


class Trial:
    """A file that is written, read, listed and deleted where runs put theirs."""

    content = b"eventlake"

    name = f".doctor-{uuid.uuid4().hex}"

    def _path(self, place: Lake) -> str:
        return f"{place.folders.stage}/{self.name}"

    def _other_path(self, place: Lake) -> str:
        return f"{place.folders.commits}/{self.name}"

    def stage(self, place: Lake) -> str:
        try:
            place.storage.write(self._path(place), self.content)
        except UploadDeniedError as error:
            raise StagingDeniedError(error.problem, fix=error.fix) from error
        return f"a file in {place.storage.full(place.folders.stage)}"

    def write(self, place: Lake) -> str:
        place.storage.write(self._other_path(place), self.content)
        return f"a file in {place.storage.full(place.folders.commits)}"

    def create(self, place: Lake) -> str:
        fresh = f"{self._path(place)}-new"
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

    def move(self, place: Lake) -> str:
        """As each file of a run gets its final name: in object stores, by a copy, which asks for more rights."""
        source, target = f"{self._path(place)}-moving", f"{self._other_path(place)}-moved"
        place.storage.write(source, self.content)
        place.storage.move(source, target)
        found, left = place.storage.read(target), place.storage.stat(source)
        place.storage.delete(target)
        return self._same(found == self.content and left is None, "gives a file another name")

    def read(self, place: Lake) -> str:
        return self._same(place.storage.read(self._path(place)) == self.content, "gives back what was written")

    def list(self, place: Lake) -> str:
        shown = {file.path for file in place.storage.files(place.folders.stage)}
        return self._same(self._path(place) in shown, "shows what was written")

    def delete(self, place: Lake) -> str:
        place.storage.delete(self._other_path(place))
        place.storage.delete(self._path(place))
        return self._same(place.storage.stat(self._path(place)) is None, "what is deleted is gone")

    @staticmethod
    def _same(holds: bool, what: str) -> str:
        if not holds:
            raise SetupError(f"not so: the storage {what}", fix="check the disk, or the consistency of the store")
        return what


def raw_archive(place: Lake) -> str:
    return f"{count(len(archive_layout.sources(place.archive)), 'source')} in {place.archive.root}"


def space(place: Lake) -> str:
    root = Path(place.storage.root)
    free = shutil.disk_usage(root if root.exists() else place.workspace.folder).free
    if free < ROOM:
        raise NoSpaceError(f"only {size(free)} free", fix="make room: a sync needs about the size of its raw files")
    return f"{size(free)} free"


def lake(place: Lake) -> str:
    refuse_unknown(place)
    return "all that is in it is known to the database"


def connections(place: Lake) -> str:
    """Also of lakes that the settings do not have, which have no doctor of their own."""
    for name in place.workspace.settings.wrong_lakes:
        raise place.workspace.connections.no_lake(name)
    known = place.workspace.connections.all()
    for one in known:
        if one.lake not in place.workspace.lakes:
            error = place.workspace.connections.no_lake(one.lake)
            raise SetupError(f"{one.full_name}: {error.problem}", fix=error.fix)
        if one.lake == place.name:
            check_dialect(one, place.settings.dialect)
    return count(sum(one.lake == place.name for one in known), "connection")


def clock(place: Lake) -> str:
    now = place.clock.now()
    newest = max((run.started_at for run in place.workspace.runs.latest(1000)), default=0)
    if now < newest:
        raise SetupError(
            f"the clock shows {time_text(now * 1000)}, but a run began at {time_text(newest * 1000)}",
            fix="set the clock; let a time server keep it. Nothing is lost meanwhile, but reports show wrong times",
        )
    return time_text(now * 1000)


def java(_: Lake) -> str:
    return str(java_home())


def spark(place: Lake, around: Around) -> str:
    settings = place.settings.runner
    with Runners(place.workspace, around) as runners, runners.of(place.name) as runner:
        cores = runner.parallelism
        runner.run(twice, None, list(range(cores)))
        where = settings.master if settings.kind == "spark" else settings.kind
        return f"{where}, {count(cores, 'task')} at once"


def class_cache(place: Lake, *, make: bool) -> str:
    settings, log = place.settings.runner, spark_log(place)
    if settings.kind != "spark" or not settings.master.startswith("local"):
        raise SkippedStep("is for Spark on this machine")
    found = find_class_cache()
    if found is None and not make:
        raise SkippedStep("`eventlake doctor --quick-start` lets Spark start sooner, for 70 MB of disk")
    found = found or make_class_cache(log)
    if found is None:
        raise SkippedStep(f"this Java made no class cache; {log} may tell why")
    return str(found)
