"""`verify` names exactly what differs, and `--repair` mends what the raw archive can give back."""

import io
import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from conftest import IN_BUCKETS, ON_POSTGRES, InProcess, Lake, SetClock, track
from eventlake.audit.repair import repair
from eventlake.audit.verify import Finding, TablePartition, verify
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.commit.run_reports import save_failure
from eventlake.errors import BusyError
from eventlake.lake import ids
from eventlake.lake.ids import IdFile
from eventlake.reports import report
from eventlake.schema.types import ColumnType
from eventlake.sync import jobs
from eventlake.sync.shares import ShareSizes
from eventlake.sync.work import Sizes


def filled(folder: Path) -> Lake:
    """Three syncs of one source, and one of another that is not looked at."""
    lake = Lake(folder, InProcess())
    for number in range(3):
        lake.sync_of(
            *(track("A", f"a{number}{n}", receivedAt=f"2026-11-15T1{n}:30:00Z", properties={"n": n}) for n in range(3)),
            track("B", f"b{number}"),
        )
    lake.workspace.connections.add_source("zoo", source_id="src2")
    lake.place.storage.write("segment-logs/src2/1794700800000/1.gz", json.dumps(track("A", "a00")).encode())
    lake.run(jobs.sync(lake.workspace.connections.get("zoo")))
    return lake


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of which each test has a copy."""
    lake = filled(tmp_path_factory.mktemp("first") / "workspace")
    lake.workspace.engine.dispose()
    return lake.workspace.folder


@pytest.fixture
def full(tmp_path: Path, first: Path) -> Lake:
    folder = tmp_path / "workspace"
    if IN_BUCKETS or ON_POSTGRES:  # which are not copied with the folder
        return filled(folder)
    lake = Lake(Path(shutil.copytree(first, folder)), InProcess(), clock=SetClock("2026-11-15T13:00:00Z"))
    lake._files = 3
    return lake


ELEVEN = TablePartition("track_a", 1_794_740_400 // 3600)  # the hour of 2026-11-15, since 1970


def found(lake: Lake) -> list[Finding]:
    return verify(lake.workspace, lake.connection, lake.runner)


def data_file(lake: Lake, *, hour: str = "11") -> Path:
    return sorted((lake.root / "segment-data" / "data").glob(f"*/segment_type=track_a/*/hr={hour}/*.parquet"))[0]


def rewrite(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    rows = pq.read_table(io.BytesIO(file.read_bytes()))
    changed = io.BytesIO()
    pq.write_table(change(rows), changed)
    file.write_bytes(changed.getvalue())


def test_a_sound_lake_has_no_findings(full: Lake) -> None:
    assert found(full) == []


def test_what_is_not_of_the_source_and_what_did_not_finish_makes_no_findings(full: Lake) -> None:
    place = full.place
    told = {"entry": {"report": [{"workspace_id": place.workspace_id}]}}
    place.storage.write("segment-data/commits/source=src9/1.json", json.dumps(told).encode())
    full.sync_of(b"not an event")
    head = report.RunHead("test", "src1", place.runs.start("src1", "sync", 0), "web", 0)
    save_failure(place, head.run_id, report.failed(head, 0, "no space", "no_space", "make room"))
    place.runs.start("src1", "sync", 0)
    with place.leases.held("src2"):
        assert found(full) == []
    with place.leases.held("src1"), pytest.raises(BusyError):
        found(full)


def test_the_index_of_a_run_may_have_many_files(tmp_path: Path) -> None:
    parts = Sizes(shares=ShareSizes(ids_per_share=1, ids_for_one_share=1))
    lake = Lake(tmp_path / "workspace", InProcess(), sizes=parts)
    lake.sync_of(*(track("A", f"m{n}") for n in range(8)))
    assert len(lake.place.ledger.index_files("src1")) > 1
    assert found(lake) == []


def test_an_hour_that_the_ledger_has_forgotten_is_named(full: Lake) -> None:
    with full.workspace.engine.begin() as connection:
        connection.execute(sa.text("delete from data_files where path like '%src1%track_a%hr=12%'"))
    findings = found(full)
    assert [f.kind for f in findings] == ["foreign_file"] * 3 + ["partition_empty", "rows"]
    assert findings[-1].where == "web.track_a 2026-11-15/12"
    told, _, names = findings[-1].detail.partition("; missing messages: ")
    assert (told, sorted(names.split(", "))) == ("3 rows missing, 0 too many", ["a02", "a12", "a22"])


def test_what_another_catalog_does_not_show_is_named(full: Lake) -> None:
    class Elsewhere(EmbeddedCatalog):
        """A catalog that is shown in another place, as in Glue."""

        def not_shown(self, source_id: str) -> list[tuple[str, str]]:
            return [(f"web.track_a of {source_id}", "has no columns")]

    full.place.__dict__["catalog"] = Elsewhere(full.workspace.engine, "default")
    assert found(full) == [Finding("not_in_embedded", "web.track_a of src1", "has no columns")]


def test_a_table_that_is_neither_in_the_catalog_nor_whole_is_named_for_both(full: Lake) -> None:
    data_file(full).unlink()
    full.place.catalog.drop("web", "track_a")
    findings = found(full)
    assert [(f.kind, f.detail) for f in findings] == [
        ("data_file_gone", "1 row"),
        ("table_missing", "not in the catalog, though it has 9 rows"),
    ]
    repair(full.workspace, full.connection, findings, full.runner)
    assert found(full) == []


@pytest.mark.parametrize("number", range(3))
def test_a_deleted_data_file_is_named_with_its_messages_and_comes_back(full: Lake, number: int) -> None:
    """Whether their hour is the first, the last or another one of its raw file."""
    rows = full.rows("track_a")
    place = TablePartition("track_a", ELEVEN.number + number - 1)
    file = data_file(full, hour=f"1{number}")
    file.unlink()
    findings = found(full)
    assert findings == [
        Finding("data_file_gone", str(file.relative_to(full.root)), "1 row", place),
        Finding(
            "rows",
            f"web.track_a 2026-11-15/1{number}",
            f"1 row missing, 0 too many; missing messages: a0{number}",
            place,
        ),
    ]
    repair(full.workspace, full.connection, findings, full.runner)
    assert found(full) == []
    assert full.rows("track_a") == rows


def test_only_what_was_found_is_mended(full: Lake) -> None:
    full.sync_of(track("B", "b9", receivedAt="2026-11-15T11:10:00Z"))
    before, runs = set(full.data_files()), len(full.place.runs.latest(None, "src1"))
    data_file(full).unlink()
    findings = found(full)
    sorted((full.root / "segment-data" / "reports").glob("day=*/source=src1/*/report.json"))[0].unlink()
    with full.workspace.engine.begin() as connection:
        connection.execute(sa.text("delete from catalog_partitions where partition like '%\"12\"%'"))
    steps = []
    repair(full.workspace, full.connection, findings, full.runner, lambda step, *_: steps.append(step))
    assert "stage" in steps
    changed = {file.rpartition("/")[0] for file in before ^ set(full.data_files())}
    assert changed == {"src1/segment_type=track_a/day=2026-11-15/hr=11"}
    assert len(full.place.runs.latest(None, "src1")) == runs + 1
    left = found(full)
    assert [f.kind for f in left] == ["partition_missing", "report_gone"]
    with full.place.leases.held("src1"), pytest.raises(BusyError):
        repair(full.workspace, full.connection, left, full.runner)
    with full.place.leases.held("src2"):
        repair(full.workspace, full.connection, left, full.runner)
    assert found(full) == []


def test_a_removed_row_is_named(full: Lake) -> None:
    rows = full.rows("track_a")
    rewrite(data_file(full), lambda table: table.slice(1))
    findings = found(full)
    assert [(f.kind, f.detail, f.place) for f in findings] == [
        ("data_file_changed", "1 row when it was written, 0 now", ELEVEN),
        ("rows", "1 row missing, 0 too many; missing messages: a01", ELEVEN),
    ]
    repair(full.workspace, full.connection, findings, full.runner)
    assert found(full) == []
    assert full.rows("track_a") == rows


def test_a_changed_value_is_noticed_although_all_counts_are_right(full: Lake) -> None:
    file = data_file(full)
    rewrite(file, lambda table: table.set_column(table.schema.get_field_index("properties_n"), "properties_n", [[99]]))
    findings = found(full)
    assert [(f.kind, f.where) for f in findings] == [("data_file_changed", str(file.relative_to(full.root)))]
    repair(full.workspace, full.connection, findings, full.runner)
    assert found(full) == []
    assert 99 not in [row["properties_n"] for row in full.rows("track_a")]


def test_a_row_put_in_by_hand_is_named_by_its_message(full: Lake) -> None:
    rewrite(data_file(full), lambda rows: pa.concat_tables([rows, _with_id(rows, "forged")]))
    findings = found(full)
    assert [f.kind for f in findings] == ["data_file_changed", "rows"]
    assert findings[1].detail == "0 rows missing, 1 too many; messages too many: forged"


def test_of_many_messages_that_differ_some_are_named_by_what_was_sent_or_else_by_their_hash(full: Lake) -> None:
    full.sync_of(*(track("A", f"x{n:02}", receivedAt="2026-11-15T11:30:00Z") for n in range(12)))
    run_id = full.place.runs.latest(1)[0].run_id
    (gone,) = [file for file in full.place.ledger.data_files("src1") if file.run_id == run_id]
    full.place.storage.delete(gone.path)
    rewrite(data_file(full), lambda t: pa.concat_tables([t, *(_with_id(t, f"forged{n}") for n in range(11))]))
    (finding,) = [finding for finding in found(full) if finding.kind == "rows"]
    told = finding.detail.split("; ")
    assert told[0] == "12 rows missing, 11 too many"
    assert re.fullmatch(r"missing messages: (x\d\d, ){9}x\d\d and 2 more", told[1])
    assert re.fullmatch(r"messages too many: (forged\d+, ){9}forged\d+ and 1 more", told[2])

    sorted((full.root / "segment-logs" / "src1").rglob("*.gz"))[-1].unlink()
    (finding,) = [finding for finding in found(full) if finding.kind == "rows"]
    assert re.search(r"missing messages: (hash [0-9a-f]{32}, ){9}hash [0-9a-f]{32} and 2 more", finding.detail)


def _with_id(rows: pa.Table, message_id: str) -> pa.Table:
    return rows.set_column(rows.schema.get_field_index("message_id"), "message_id", [[message_id]])


def test_a_file_added_by_hand_is_named_and_left_alone(full: Lake) -> None:
    added = data_file(full).with_name("mine.parquet")
    added.write_bytes(data_file(full).read_bytes())
    findings = found(full)
    told = "not written by a run; readers that list the folder see it"
    assert findings == [Finding("foreign_file", str(added.relative_to(full.root)), told)]
    repair(full.workspace, full.connection, findings, full.runner)
    assert added.exists()


def test_a_broken_data_file_is_named_and_comes_back(full: Lake) -> None:
    file = data_file(full)
    file.write_bytes(b"PAR1 garbage")
    findings = found(full)
    assert findings[0].where == str(file.relative_to(full.root))
    assert [(f.kind, f.place) for f in findings] == [("data_file_broken", ELEVEN), ("rows", ELEVEN)]
    assert "footer" in findings[0].detail
    repair(full.workspace, full.connection, findings, full.runner)
    assert found(full) == []


def test_a_partition_missing_in_the_catalog_is_named_and_comes_back(full: Lake) -> None:
    with full.workspace.engine.begin() as connection:
        connection.execute(sa.text("delete from catalog_partitions where partition like '%\"11\"%'"))
    findings = found(full)
    assert [(f.kind, f.where, f.detail) for f in findings] == [("partition_missing", "web.track_a", "2026-11-15/11")]
    repair(full.workspace, full.connection, findings, full.runner)
    assert found(full) == []


def test_raw_files_that_vanished_or_changed_are_named(full: Lake) -> None:
    full.sync_of(track("A", "single"))
    one, two, _, single = sorted((full.root / "segment-logs" / "src1").rglob("*.gz"))
    one.unlink()
    single.unlink()
    content = bytearray(two.read_bytes())
    content[-1] ^= 1  # same size
    two.write_bytes(content)
    assert found(full) == [
        Finding("raw_file_gone", str(one.relative_to(full.root)), "4 rows were loaded from it"),
        Finding(
            "raw_file_changed", str(two.relative_to(full.root)), "its content is not what it was when it was loaded"
        ),
        Finding("raw_file_gone", str(single.relative_to(full.root)), "1 row was loaded from it"),
    ]


def test_a_lost_or_changed_report_is_named_and_comes_back(full: Lake) -> None:
    one, two, _ = sorted((full.root / "segment-data" / "reports").glob("day=*/source=src1/*/report.json"))

    def told() -> list[bytes]:
        return [full.place.storage.read(str(path.relative_to(full.root))) for path in (one, two)]

    before = told()
    one.unlink()
    two.write_text(json.dumps({"type": "source"}))
    (of_another,) = (full.root / "segment-data" / "reports").glob("day=*/source=src2/*/report.json")
    of_another.unlink()
    findings = found(full)
    assert findings == [
        Finding("report_changed", str(two.relative_to(full.root)), "not what the run reported"),
        Finding("report_gone", str(one.relative_to(full.root)), "the report of a run"),
    ]
    repair(full.workspace, full.connection, findings, full.runner)
    assert told() == before
    assert found(full) == []
    assert not of_another.exists()


def test_a_table_missing_in_the_catalog_is_named_and_comes_back_with_its_history(full: Lake) -> None:
    full.sync_of(track("A", "a99", properties={"later": True}))
    catalog = full.place.catalog
    (table,) = [table for table in catalog.tables("src1") if table.name == "track_a"]
    before = table, catalog.partitions("web", "track_a"), catalog.history("web", "track_a"), full.rows("track_a")
    catalog.drop("web", "track_a")
    findings = found(full)
    assert [(f.kind, f.where, f.detail) for f in findings] == [
        ("table_missing", "web.track_a", "not in the catalog, though it has 10 rows")
    ]
    repair(full.workspace, full.connection, findings, full.runner)
    assert found(full) == []
    (table,) = [table for table in catalog.tables("src1") if table.name == "track_a"]
    after = table, catalog.partitions("web", "track_a"), catalog.history("web", "track_a"), full.rows("track_a")
    assert after == before


def test_the_history_of_other_tables_stays_as_it_is(full: Lake) -> None:
    for new_type in (ColumnType.DECIMAL, ColumnType.STRING):
        full.run(jobs.retype(full.connection, "track_a", "properties_n", new_type))
    before = full.place.catalog.history("web", "track_a")
    full.place.catalog.drop("web", "track_b")
    repair(full.workspace, full.connection, found(full), full.runner)
    assert found(full) == []
    assert full.place.catalog.history("web", "track_a") == before


def test_a_partition_without_data_is_named_and_goes(full: Lake) -> None:
    row = {"lake": "default", "database": "web", "table": "track_a", "partition": '["2020-01-01", "00"]', "run_id": "x"}
    with full.workspace.engine.begin() as connection:
        columns, values = ", ".join(f'"{name}"' for name in row), ", ".join(f":{name}" for name in row)
        connection.execute(sa.text(f"insert into catalog_partitions ({columns}) values ({values})"), row)
    findings = found(full)
    assert [(f.kind, f.where, f.detail) for f in findings] == [("partition_empty", "web.track_a", "2020-01-01/00")]
    repair(full.workspace, full.connection, findings, full.runner)
    assert found(full) == []
    assert verify(full.workspace, full.workspace.connections.get("zoo"), full.runner) == []


def test_books_of_a_raw_file_that_do_not_add_up_are_named(full: Lake) -> None:
    def with_lines(lines: int) -> list[Finding]:
        counts = f"lines={lines}, loaded=1, duplicates=2, suppressed=4, blocked=8, quarantined=16"
        with full.workspace.engine.begin() as connection:
            connection.execute(sa.text(f"update raw_files set {counts} where path like '%src1%/2.gz'"))
        return found(full)

    assert with_lines(31) == []
    for lines in (30, 32):
        (finding,) = with_lines(lines)
        assert finding.kind == "books"
        assert finding.where.endswith("/2.gz")
        assert finding.detail == f"{lines} lines, but 1 loaded and 30 accounted for"


@pytest.mark.parametrize("change", ["loaded", "checksum"])
def test_a_report_that_does_not_tell_what_the_index_gained_is_named(full: Lake, change: str) -> None:
    run = full.place.runs.latest(1, "src1")[0]
    assert run.report
    run.report[0]["books"][change] = {"loaded": 3, "checksum": "0" * 32}[change]
    full.place.runs.finished(run.run_id, run.report, 0)
    findings = found(full)
    assert [f.kind for f in findings] == ["books", "report_changed"]
    assert findings[0].where == f"run {run.run_id}"
    assert findings[0].detail == f"{run.report[0]['books']['loaded']} rows loaded by the report, 4 in the index"


def index_files(lake: Lake) -> list[Path]:
    return sorted((lake.root / "segment-data" / "index" / "source=src1").rglob("*.ids"))


def forge(file: Path) -> None:
    """Write a sound file of the index with another message in it."""
    messages = IdFile(pa.BufferReader(file.read_bytes())).read(ids.ALL, ids.INDEX_FIELDS)
    forged = ids.Ids({name: values.copy() for name, values in messages.arrays.items()})
    forged.arrays["low"][0] += np.uint64(1)
    content = pa.BufferOutputStream()
    ids.write(content, forged)
    file.write_bytes(content.getvalue())


DAMAGE: dict[str, tuple[str, Callable[[Path], object]]] = {
    "gone": ("index_file_gone", lambda file: file.unlink()),
    "truncated": ("index_file_damaged", lambda file: file.write_bytes(file.read_bytes()[:-1])),
    "empty": ("index_file_damaged", lambda file: file.write_bytes(b"")),
    "one bit": ("index_file_damaged", lambda file: file.write_bytes(_flipped(file.read_bytes()))),
    "forged": ("index_file_changed", forge),
}


def _flipped(content: bytes) -> bytes:
    return content[:-50] + bytes([content[-50] ^ 1]) + content[-49:]


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_lost_or_damaged_index_file_is_named_and_made_anew(full: Lake, damage: str) -> None:
    kind, harm = DAMAGE[damage]
    rows = full.rows("track_a"), full.rows("track_b")
    harmed = index_files(full)[0]
    harm(harmed)
    findings = found(full)
    told = {
        "index_file_changed": "4 messages when it was written, 4 now",
    }.get(kind, "copies of its messages would not be noticed")
    assert findings[0] == Finding(kind, str(harmed.relative_to(full.root)), told)
    if damage != "forged":
        lost = {f"0 rows missing, 1 too many; messages too many: {name}" for name in ("a00", "a01", "a02", "b0")}
        assert {f.detail for f in findings[1:]} == lost
    steps = []
    repair(full.workspace, full.connection, findings, full.runner, lambda step, *_: steps.append(step))
    assert {"reindex", "index", "raw files"} <= set(steps)
    assert found(full) == []
    assert (full.rows("track_a"), full.rows("track_b")) == rows
    full.put(*(track("A", f"a{number}{n}") for number in range(3) for n in range(3)))
    assert full.sync()[0]["books"]["duplicates"] == 9


def test_a_lake_of_which_a_table_was_dropped_is_sound(full: Lake) -> None:
    full.run(jobs.drop(full.connection, "track_b"))
    assert found(full) == []


def test_what_is_looked_at_is_told_while_it_goes_on(full: Lake) -> None:
    class Telling(InProcess):
        """A runner that tells of each task."""

        def run(
            self,
            function: Callable[[Any, Any], Any],
            context: Any,
            tasks: Sequence[Any],
            progress: Callable[[int], None] | None = None,
        ) -> list[Any]:
            assert progress
            progress(len(tasks) - 1)
            return super().run(function, context, tasks, progress)

    data_file(full).unlink()
    seen: list[tuple[str, int, int]] = []
    verify(full.workspace, full.connection, Telling(), lambda *told: seen.append(told))
    tasks = {"raw files": 1, "data files": 1, "index": 3, "compare": 1, "names": 1}
    assert seen == [(what, done, many) for what, many in tasks.items() for done in (0, many - 1, many)]
