"""A lake that the workspace database does not know is never written to: everything would be in it twice."""

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import InProcess, Lake, SetClock, track
from eventlake.audit.verify import verify
from eventlake.commit.ownership import refuse_unknown
from eventlake.errors import UnknownLakeError
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def loaded(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "workspace", InProcess(), clock=SetClock())
    lake.sync_of(track("A", "m1"), track("B", "m2"))
    return lake


def without_database(lake: Lake, *, source_id: str | None = "src1") -> Workspace:
    """The same workspace after its database was lost, with the source added again."""
    lake.workspace.engine.dispose()
    for file in lake.workspace.folder.glob("eventlake.db*"):
        file.unlink()
    workspace = Workspace.open(lake.workspace.folder, lake.workspace.clock)
    if source_id:
        workspace.connections.add_source("web", source_id=source_id)
    return workspace


def refused(workspace: Workspace) -> str:
    """Whatever would write is refused, with the same reason, and leaves no run behind."""
    connection = workspace.connections.get("web")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: run(workspace, jobs.sync(connection), InProcess()),
        lambda: run(workspace, jobs.replay(connection, None, None), InProcess()),
        lambda: run(workspace, jobs.rebuild(connection), InProcess()),
        lambda: verify(workspace, connection, InProcess()),
        lambda: refuse_unknown(workspace.lake()),
    )
    told = set()
    for attempt in attempts:
        with pytest.raises(UnknownLakeError) as caught:
            attempt()
        told.add(caught.value.problem)
        assert "backup" in caught.value.fix
    assert not workspace.runs.latest(10)
    (problem,) = told
    return problem


def test_a_lost_database_is_noticed_and_nothing_is_loaded_twice(loaded: Lake) -> None:
    before = loaded.data_files()
    (run_id,) = loaded.workspace.runs.ids_of("src1")
    workspace = without_database(loaded)
    assert f"the manifest of run {run_id} of web" in refused(workspace)
    assert loaded.data_files() == before


def test_data_without_manifests_is_noticed_too(loaded: Lake) -> None:
    shutil.rmtree(loaded.root / "segment-data" / "commits")
    (run_id,) = loaded.workspace.runs.ids_of("src1")
    assert f"data files of run {run_id}" in refused(without_database(loaded))


def test_another_source_is_refused_as_well_while_the_lost_one_is_missing(loaded: Lake) -> None:
    assert "a source with the id src1" in refused(without_database(loaded, source_id="another"))


def test_without_any_source_the_lake_is_told_to_be_unknown(loaded: Lake) -> None:
    with pytest.raises(UnknownLakeError, match="src1"):
        refuse_unknown(without_database(loaded, source_id=None).lake())


def test_a_database_from_an_old_backup_is_noticed(loaded: Lake, tmp_path: Path) -> None:
    loaded.workspace.engine.dispose()
    backup = shutil.copytree(loaded.workspace.folder, tmp_path / "backup", ignore=shutil.ignore_patterns("lake"))
    newest = loaded.sync_of(track("A", "m3"))[0]["run_id"]
    loaded.workspace.engine.dispose()
    for file in loaded.workspace.folder.glob("eventlake.db*"):
        file.unlink()
    for file in backup.glob("eventlake.db*"):
        shutil.copy(file, loaded.workspace.folder)
    workspace = Workspace.open(loaded.workspace.folder, loaded.workspace.clock)
    with pytest.raises(UnknownLakeError, match=f"the manifest of run {newest} of web"):
        run(workspace, jobs.sync(workspace.connections.get("web")), InProcess())


def test_what_other_programs_wrote_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """A lake that Segment began goes on beside its files."""
    lake = Lake(tmp_path / "workspace", InProcess())
    theirs = lake.root / "segment-data/data/src1/segment_type=page/day=2026-11-15/hr=10/part-00000-a1b2.snappy.parquet"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"PAR1")
    assert lake.sync_of(track())[0]["books"]["loaded"] == 1


def test_another_workspace_may_share_the_bucket_but_not_the_source(loaded: Lake, tmp_path: Path) -> None:
    def other(name: str, source_id: str) -> Lake:
        lake = Lake(tmp_path / name, InProcess(), source_id=source_id)
        text = (lake.workspace.folder / "eventlake.toml").read_text()
        shared = text.replace('root = "lake"', f'root = "{loaded.root}"')
        (lake.workspace.folder / "eventlake.toml").write_text(shared)
        lake.workspace = Workspace.open(lake.workspace.folder, lake.workspace.clock)
        return lake

    assert other("one", "src2").sync_of(track())[0]["books"]["loaded"] == 1
    with pytest.raises(UnknownLakeError, match="another workspace"):
        other("two", "src1").sync()


# What is looked at, file by file

RUN = "1794777199649472259"


@pytest.fixture
def empty(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "workspace", InProcess())


def left_behind(lake: Lake, path: str, workspace_id: str | None = None) -> None:
    """A file that is in the lake before the first run."""
    told = {"workspace_id": workspace_id or lake.workspace.settings.workspace_id}
    lake.place.storage.write(f"segment-data/{path}", json.dumps({"entry": {"report": [told]}}).encode())


def unknown(lake: Lake, *, any_source: bool = True) -> str | None:
    """What is told to be unknown, if anything is."""
    try:
        refuse_unknown(lake.place, None if any_source else lake.connection)
    except UnknownLakeError as error:
        told = re.fullmatch(
            f"the lake in {re.escape(lake.place.storage.root)} holds what the workspace database does not know: "
            r"(.*)\. The database was lost, is an older copy, or another workspace writes to this lake; everything "
            "would be loaded a second time",
            error.problem,
        )
        fix = (
            "put the database back from its latest backup, or let `eventlake restore` build it from the lake; or give "
            "this workspace a lake of its own (lake.root)"
        )
        return told[1] if told and error.fix == fix else f"{error}"
    return None


HOUR = "segment_type=page/day=2026-11-15/hr=10"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (f"commits/source=src1/{RUN}.json", f"the manifest of run {RUN} of web"),
        ("commits/source=src1/note.json", None),
        (f"data/src1/{HOUR}/{RUN}-0123abcd-0.parquet", f"data files of run {RUN} of web"),
        (f"data/src1/{HOUR}/part-0.snappy.parquet", None),
        (f"data/src9/{HOUR}/{RUN}-0123abcd-0.parquet", None),
        (f"commits/source=src9/{RUN}.json", "tables of a source with the id src9"),
    ],
)
def test_what_is_left_of_runs_is_known_by_its_name(empty: Lake, path: str, told: str | None) -> None:
    left_behind(empty, path)
    assert unknown(empty) == told
    assert unknown(empty, any_source=False) == told
    left_behind(empty, path)
    empty.place.storage.write(f"segment-data/commits/source=src1/0{RUN[1:]}.tmp", b"")
    assert unknown(empty) == told


def test_sources_of_another_workspace_are_no_concern_of_this_one(empty: Lake) -> None:
    left_behind(empty, f"commits/source=src8/{RUN}.json", "another")
    left_behind(empty, f"commits/source=src7/{RUN}.json")
    empty.place.storage.delete(f"segment-data/commits/source=src7/{RUN}.json")  # on a disk its folder stays
    assert unknown(empty) is None
    left_behind(empty, f"commits/source=src9/{RUN}.json")
    assert unknown(empty) == "tables of a source with the id src9"


def test_a_database_that_finished_a_run_knows_of_all_it_should_but_an_open_lake_is_looked_at_as_a_whole(
    loaded: Lake,
) -> None:
    left_behind(loaded, f"commits/source=src9/{RUN}.json")
    assert unknown(loaded, any_source=False) is None
    assert unknown(loaded) == "tables of a source with the id src9"


def test_the_files_of_runs_that_are_known_are_no_reason_to_refuse(empty: Lake) -> None:
    run_id = empty.place.runs.start("src1", "sync", int(RUN))
    left_behind(empty, f"commits/source=src1/{run_id}.json")
    left_behind(empty, f"data/src1/{HOUR}/{run_id}-0123abcd-0.parquet")
    assert unknown(empty) is None
    left_behind(empty, f"data/src1/{HOUR}/{int(RUN) + 1}-0123abcd-0.parquet")
    assert unknown(empty) == f"data files of run {int(RUN) + 1} of web"


def test_once_the_ledger_has_data_the_manifests_are_enough(loaded: Lake) -> None:
    left_behind(loaded, f"data/src1/{HOUR}/{RUN}-0123abcd-0.parquet")
    assert unknown(loaded) is None
