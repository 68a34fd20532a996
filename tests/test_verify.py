"""`verify` names exactly what differs, and `--repair` mends what the raw archive can give back."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from conftest import InProcess, Lake, track
from eventlake.errors import InternalError
from eventlake.sync.repair import repair
from eventlake.sync.verify import Finding, verify


@pytest.fixture
def full(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "workspace", InProcess())
    for number in range(3):
        lake.sync_of(
            *(track("A", f"a{number}{n}", receivedAt=f"2026-11-15T1{n}:00:00Z", properties={"n": n}) for n in range(3)),
            track("B", f"b{number}"),
        )
    return lake


def found(lake: Lake) -> list[Finding]:
    return verify(lake.workspace, lake.source, lake.runner)


def data_file(lake: Lake, *, hour: str = "11") -> Path:
    return sorted((lake.root / "segment-data" / "data").glob(f"*/segment_type=track_a/*/hr={hour}/*.parquet"))[0]


def rewrite(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    rows = pq.read_table(io.BytesIO(file.read_bytes()))
    changed = io.BytesIO()
    pq.write_table(change(rows), changed)
    file.write_bytes(changed.getvalue())


def test_a_sound_lake_has_no_findings(full: Lake) -> None:
    assert found(full) == []


def test_a_deleted_data_file_is_named_with_its_messages_and_comes_back(full: Lake) -> None:
    rows = full.rows("track_a")
    file = data_file(full)
    file.unlink()
    findings = found(full)
    assert [(f.kind, f.where) for f in findings] == [
        ("data_file_gone", str(file.relative_to(full.root))),
        ("rows", "web.track_a 2026-11-15/11"),
    ]
    assert findings[1].detail.startswith("1 rows missing, 0 too many; missing messages: a01")
    repair(full.workspace, full.source, findings, full.runner)
    assert found(full) == []
    assert full.rows("track_a") == rows


def test_a_removed_row_is_named(full: Lake) -> None:
    rows = full.rows("track_a")
    rewrite(data_file(full), lambda table: table.slice(1))
    findings = found(full)
    assert [f.kind for f in findings] == ["data_file_changed", "rows"]
    assert findings[0].detail == "1 rows when it was written, 0 now"
    repair(full.workspace, full.source, findings, full.runner)
    assert found(full) == []
    assert full.rows("track_a") == rows


def test_a_changed_value_is_noticed_although_all_counts_are_right(full: Lake) -> None:
    file = data_file(full)
    rewrite(file, lambda table: table.set_column(table.schema.get_field_index("properties_n"), "properties_n", [[99]]))
    findings = found(full)
    assert [(f.kind, f.where) for f in findings] == [("data_file_changed", str(file.relative_to(full.root)))]
    repair(full.workspace, full.source, findings, full.runner)
    assert found(full) == []
    assert 99 not in [row["properties_n"] for row in full.rows("track_a")]


def test_a_row_put_in_by_hand_is_named_by_its_message(full: Lake) -> None:
    index = "message_id"
    rewrite(
        data_file(full),
        lambda t: pa.concat_tables([t, t.set_column(t.schema.get_field_index(index), index, [["forged"]])]),
    )
    findings = found(full)
    assert [f.kind for f in findings] == ["data_file_changed", "rows"]
    assert "0 rows missing, 1 too many; messages too many: forged" in findings[1].detail


def test_a_file_added_by_hand_is_named_and_left_alone(full: Lake) -> None:
    added = data_file(full).with_name("mine.parquet")
    added.write_bytes(data_file(full).read_bytes())
    findings = found(full)
    assert [(f.kind, f.where) for f in findings] == [("foreign_file", str(added.relative_to(full.root)))]
    repair(full.workspace, full.source, findings, full.runner)
    assert added.exists()


def test_a_broken_data_file_is_named_and_comes_back(full: Lake) -> None:
    data_file(full).write_bytes(b"PAR1 garbage")
    findings = found(full)
    assert [f.kind for f in findings] == ["data_file_broken", "rows"]
    repair(full.workspace, full.source, findings, full.runner)
    assert found(full) == []


def test_a_partition_missing_in_the_catalog_is_named_and_comes_back(full: Lake) -> None:
    with full.workspace.engine.begin() as connection:
        connection.execute(sa.text("delete from catalog_partitions where partition like '%\"11\"%'"))
    findings = found(full)
    assert [(f.kind, f.where, f.detail) for f in findings] == [("partition_missing", "web.track_a", "2026-11-15/11")]
    repair(full.workspace, full.source, findings, full.runner)
    assert found(full) == []


def test_raw_files_that_vanished_or_changed_are_named(full: Lake) -> None:
    one, two, _ = sorted((full.root / "segment-logs").rglob("*.gz"))
    one.unlink()
    content = bytearray(two.read_bytes())
    content[-1] ^= 1  # same size
    two.write_bytes(content)
    assert [(f.kind, f.where) for f in found(full)] == [
        ("raw_file_gone", str(one.relative_to(full.root))),
        ("raw_file_changed", str(two.relative_to(full.root))),
    ]


def test_a_lost_or_changed_report_is_named_and_comes_back(full: Lake) -> None:
    one, two, _ = sorted((full.root / "segment-data" / "reports").rglob("report.json"))

    def told() -> list[bytes]:
        return [full.workspace.storage.read(str(path.relative_to(full.root))) for path in (one, two)]

    before = told()
    one.unlink()
    two.write_text(json.dumps({"type": "source"}))
    findings = found(full)
    assert sorted(f.kind for f in findings) == ["report_changed", "report_gone"]
    repair(full.workspace, full.source, findings, full.runner)
    assert told() == before


def test_a_lost_index_file_is_named_stops_the_sync_and_comes_back(full: Lake) -> None:
    index = sorted((full.root / "segment-data" / "index").rglob("*.ids"))[0]
    index.unlink()
    findings = found(full)
    assert findings[0].kind == "index_file_gone"
    assert {f.kind for f in findings} == {"index_file_gone", "rows"}
    full.put(track("A", "a00"))
    with pytest.raises(InternalError, match="copies of its messages would not be noticed"):
        full.sync()
    repair(full.workspace, full.source, findings, full.runner)
    assert found(full) == []
    assert full.sync()[0]["books"]["duplicates"] == 1
