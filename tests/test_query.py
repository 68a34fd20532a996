"""Queries: what SQL can say over the lake, what it cannot do, and what is told when it fails."""

import json
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from conftest import InProcess, Lake, new_bucket, settings_for, track
from eventlake.control import database as db
from eventlake.errors import DamagedError, EventLakeError, InvalidSettingsError, TransientError
from eventlake.query import query, save
from eventlake.query.named import asks_in_general
from eventlake.storage.duck import LakeFiles
from eventlake.storage.local import LocalStorage
from eventlake.sync import jobs
from servers import S3Server

SECRET = "s3cr3t-of-this-machine"


class Place(NamedTuple):
    """A lake, and a folder with what queries must neither see nor change."""

    lake: Lake
    folder: Path

    @property
    def data_file(self) -> str:
        file, *_ = self.lake.place.ledger.data_files("Src-1", "track_order_completed")
        return file.path

    def filled_in(self, statement: str) -> str:
        names = {
            "secret": self.folder / "secret.csv",
            "out": self.folder / "out",
            "file": self.lake.place.storage.full(self.data_file),
            "address": f"lake://{self.data_file}",
        }
        return statement.format_map(names)

    def everything(self) -> dict[str, bytes]:
        """All files of the folder and of the lake, by name, without what SQLite puts beside its own."""
        storage = self.lake.place.storage
        files = [path for path in self.folder.rglob("*") if path.is_file() and ".db-" not in path.name]
        here = {str(path): path.read_bytes() for path in files}
        return here | {file.path: storage.read(file.path) for file in storage.files("segment-data")}


def order(message_id: str, **properties: Any) -> dict[str, Any]:
    return track("Order Completed", message_id, properties=properties)


def fill(lake: Lake) -> None:
    lake.sync_of(order("o1", total=10.5, items=["a", "b"]), order("o2", total=7), track("Order", "c1"), b"not an event")
    lake.sync_of(order("o3", total=1, coupon="SAVE"))


def made(folder: Path, settings: str | None = None) -> Place:
    lake = Lake(folder / "workspace", InProcess(), source_id="Src-1", settings=settings)
    fill(lake)
    (folder / "secret.csv").write_text(f"word\n{SECRET}\n")
    return Place(lake, folder)


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return made(tmp_path_factory.mktemp("disk"))


@pytest.fixture(scope="module")
def in_bucket(tmp_path_factory: pytest.TempPathFactory, s3: S3Server) -> Place:
    return made(tmp_path_factory.mktemp("bucket"), settings_for(s3, new_bucket(s3)))


@pytest.fixture(scope="module", params=["on_disk", "in_bucket"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


# What a query can say

ORDERS = "web.track_order_completed"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"select count(*) from {ORDERS}", 3),
        (f"select count(*) from {ORDERS}, unnest([1, 2])", 6),
        (f"select sum(n) from {ORDERS} t, unnest(range(3)) as u(n)", 9),
        (f"select count(*) from {ORDERS} t, lateral (select t.message_id as id) where id <> 'o1'", 2),
        (f"create temp table x as select * from {ORDERS}; select count(*) from x", 3),
        (
            f"create table x as from {ORDERS}; insert into x from x; delete from x where false; select count(*) from x",
            6,
        ),
        (f"create view v as from {ORDERS}; create macro twice(a) as 2 * a; select twice(count(*)) from v", 6),
        (f"with a as (select * from {ORDERS}), b as (from a) select count(*) from a, b", 9),
        (
            f"with recursive n(i) as (select 1 union select i + 1 from n where i < 4) select max(i) from n, {ORDERS}",
            4,
        ),
        (f"select count(*) from (from {ORDERS} union all by name from web.track_order)", 4),
        (f"(select message_id from {ORDERS}) except (select 'o1') order by 1 limit 1", "o2"),
        ('select count(*) from "web"."track_order_completed"', 3),
        ('select count(*) from WEB . "Track_Order_Completed"', 3),
        ("select count(*) from web./* where */track_order_completed -- all", 3),
        ("select '--' from web.track_order_completed limit 1", "--"),
        ("select '/* ' || count(*) from web.track_order_completed -- */", "/* 3"),
        ("select count(*) from memory.web.track_order_completed", 3),
        ("use web; select count(*) from track_order_completed", 3),
        ("from query_table('web.track_order_completed') select count(*)", 3),
        ("select count(*) from (pivot web.track_order_completed on message_id using count(*))", 3),
        (f"select column_type from (describe {ORDERS}) where column_name = 'properties_total'", "DECIMAL(38,6)"),
        (f"select max from (summarize {ORDERS}) where column_name = 'message_id'", "o3"),
        ("select count(*) from information_schema.tables where table_schema = 'web'", 2),
        (f"select count(*) from {ORDERS} a join web.track_order b on a.day = b.day", 3),
        (f"set variable least = 5; select count(*) from {ORDERS} where properties_total > getvariable('least')", 2),
        (f"set TimeZone = 'Asia/Tokyo'; select hour(received_at) from {ORDERS} limit 1", 19),
        ("select count(*) from __segment_datalake.quarantine", 1),
        ("select sum(row_count) from __segment_datalake.sync_reports where type = 'source'", 4),
        ("begin; create table x as select 1 as a; commit; select a from x", 1),
        ("select 1;", 1),
        ("select 1; -- and no more", 1),
        ("select ';' || 1 /* ; */ ; -- and; no more;\n;", ";1"),
        ("select '; -- ' -- ;", "; -- "),
        ("show tables; select 1", 1),
    ],
)
def test_a_query_may_say_whatever_reads(place: Place, sql: str, expected: Any) -> None:
    ((value,),) = (row.values() for row in place.lake.query(sql))
    assert value == expected


@pytest.mark.parametrize("sql", ["show tables", "SHOW ALL TABLES;", "/* all */ show tables -- please"])
def test_show_tables_tells_every_database_and_table(place: Place, sql: str) -> None:
    assert [(row["database"], row["table"]) for row in place.lake.query(sql)] == [
        ("__segment_datalake", "quarantine"),
        ("__segment_datalake", "sync_reports"),
        ("__segment_datalake", "violations"),
        ("web", "track_order"),
        ("web", "track_order_completed"),
    ]


@pytest.mark.parametrize(
    ("sql", "is_general"),
    [
        ("select a from web.page order by a desc", False),
        ("select a from web.page order by a desc, b desc limit 1", False),
        ("desc", True),
        ("-- what is there?\n DESC web.page", True),
        ("select 1; desc web.page", True),
        ("select * from (desc web.page)", True),
        ("describe web.page", True),
    ],
)
def test_an_order_of_rows_is_no_question_about_all_tables(sql: str, is_general: bool) -> None:
    """Else a lake with thousands of tables would get a view of each first, which takes seconds."""
    assert asks_in_general(sql) is is_general


def test_show_tables_also_tells_what_the_query_made(place: Place) -> None:
    shown = place.lake.query("create temp table mine as select 1; show tables")
    assert ("main", "mine") in [(row["database"], row["table"]) for row in shown]


def test_a_table_that_is_only_listed_is_never_taken_for_an_empty_one(place: Place) -> None:
    hidden = "show tables; select count(*) from query_table('web.' || 'track_order_completed')"
    with pytest.raises(InvalidSettingsError, match=r"does not name web\.track_order_completed"):
        place.lake.query(hidden)


def test_a_statement_that_gives_no_rows_gives_none(place: Place) -> None:
    assert query(place.lake.place, f"create temp table x as select * from {ORDERS}").num_columns == 0


@pytest.mark.parametrize("sql", ["", "  ", ";", "-- nothing"])
def test_no_query_is_refused(place: Place, sql: str) -> None:
    with pytest.raises(InvalidSettingsError, match="there is no query"):
        place.lake.query(sql)


def test_a_table_that_does_not_exist_is_answered_with_one_that_does(place: Place) -> None:
    with pytest.raises(InvalidSettingsError) as error:
        place.lake.query("select * from web.order_completed")
    assert "order_completed does not exist" in error.value.problem
    assert "web.track_order_completed" in error.value.fix


def test_a_query_that_takes_too_long_is_given_up(place: Place) -> None:
    with pytest.raises(TransientError, match=r"longer than 0\.2 seconds"):
        query(
            place.lake.place,
            "select count(*) from range(100000000000) a, range(100) b where a % 7 = b",
            timeout=0.2,
        )
    assert query(place.lake.place, "select 1 as one", timeout=60).to_pylist() == [{"one": 1}]


# What a query cannot do

ATTACKS = """
select * from read_csv('{secret}')
select * from read_text('{secret}')
select * from read_blob('{secret}')
select * from '{secret}'
select * from read_csv(['{secret}'])
select * from read_csv('file://{secret}')
select * from read_text('/proc/self/environ')
select * from read_json('{secret}', format='unstructured')
select * from sniff_csv('{secret}')
select * from glob('/etc/*')
select * from read_parquet('{file}')
select * from parquet_metadata('{file}')
select * from read_text('lake://../secret.csv')
select * from read_text('{address}/../../../../../../../../secret.csv')
select * from read_text('LAKE://{secret}')
select * from read_text('lake://segment-logs/Src-1/1794700800000/1.gz')
select * from glob('lake://**')
select * from read_csv('https://example.com/x.csv')
select * from read_parquet('s3://bucket/key.parquet')
select getenv('EVENTLAKE_TEST_SECRET')
create table t as from read_csv('{secret}'); from t
create view v as from read_csv('{secret}'); from v
create macro f(p) as table from read_text(p); from f('{secret}')
create table t(a varchar); copy t from '{secret}'; from t
create table t(a varchar); insert into t select content from read_text('{secret}'); from t
select * from query('select * from read_text(''{secret}'')')
select * from json_execute_serialized_sql(json_serialize_sql('select * from read_text(''{secret}'')'))
prepare p as select * from read_text('{secret}'); execute p
explain analyze select * from read_text('{secret}')
copy (select 1) to '{out}.csv'
copy (select 1) to '{out}.parquet' (format parquet)
copy (select 1) to '{file}' (format parquet)
copy (select 1) to '{address}' (format parquet)
copy (select 1) to '{address}' (format parquet, use_tmp_file false)
copy (select 1) to 'lake://segment-data/new.parquet' (format parquet)
with a as (copy (select 1) to '{out}.csv') select * from a
with a as (copy (select 1) to '{file}' (format parquet)) select * from a
with a as (copy (select 1) to '{address}' (format parquet)) select * from a
with a as (copy (select 1) to '{address}' (format parquet, use_tmp_file false)) select * from a
explain analyze copy (select 1) to '{out}.csv'
prepare p as copy (select 1) to '{out}.csv'; execute p
select 1; copy (select 1) to '{out}.csv'
export database '{out}'
import database '{out}'
copy from database memory to other
attach '{out}.db'
attach '{out}.db' as other; create table other.t as select 1
attach ':memory:' as other
attach 'lake://x.db' as other
detach memory
select * from read_duckdb('{out}.db')
install httpfs
load httpfs
load '{out}.duckdb_extension'
create secret s (type s3, key_id 'a', secret 'b')
create persistent secret s (type http, bearer_token 'b')
set enable_external_access = true
set global enable_external_access = true; select * from read_text('{secret}')
reset enable_external_access
set lock_configuration = false
reset lock_configuration
set allowed_directories = ['/']
set allowed_paths = ['{secret}']
set allowed_configs = ['enable_external_access']
set python_enable_replacements = true
set temp_directory = '{out}'
set log_query_path = '{out}.log'
set profile_output = '{out}.json'
set secret_directory = '{out}'
set extension_directories = ['{out}']
set custom_user_agent = 'x'
set memory_limit = '1TB'
set threads = 1000
pragma enable_profiling = 'json'
pragma profile_output = '{out}.json'
pragma memory_limit = '1TB'
from enable_profiling(format='json', save_location='{out}.json'); select 1
from enable_logging(storage='file', storage_config={{'path': '{out}'}}); select 1
from enable_logging('QueryLog', storage_path='{out}.csv'); select 1
call enable_logging(level='debug', storage='file', storage_config={{'path': '{out}'}})
checkpoint
vacuum
select * from workspace
select * from sql
select * from duckdb_extensions()
from pandas_scan(1)
from arrow_scan(1::bigint, 2::bigint, 3::bigint)
from python_arrow_scan(1)
""".strip().splitlines()


def attempt(place: Place, attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENTLAKE_TEST_SECRET", SECRET)
    monkeypatch.chdir(place.folder)
    before = place.everything()
    with pytest.raises(InvalidSettingsError) as error:
        place.lake.query(place.filled_in(attack))
    assert SECRET not in str(error.value)
    assert "Traceback" not in str(error.value)
    assert place.everything() == before


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_query_neither_reaches_nor_changes_anything_else(
    on_disk: Place, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt(on_disk, attack, monkeypatch)


@pytest.mark.parametrize("attack", [attack for attack in ATTACKS if "lake:" in attack.lower() or "{address}" in attack])
def test_a_query_neither_reaches_nor_changes_anything_else_in_a_bucket(
    in_bucket: Place, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt(in_bucket, attack, monkeypatch)


def test_a_folder_called_like_the_lake_opens_no_way_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    (place.folder / "LAKE:").mkdir(exist_ok=True)
    monkeypatch.chdir(place.folder)
    for attack in ("from read_text('LAKE://../secret.csv')", "copy (select 1) to 'LAKE://../out.csv'"):
        with pytest.raises(InvalidSettingsError):
            place.lake.query(attack)
    assert not (place.folder / "out.csv").exists()


def test_the_lakes_files_are_given_out_only_to_be_read_and_only_those_that_were_named(place: Place) -> None:
    storage = place.lake.place.storage
    files = LakeFiles(storage)
    address = files.address(place.data_file, 4)
    opened = files.open(address)
    assert opened.read(4) == b"PAR1"
    other = next(file.path for file in storage.files("segment-data") if file.path != place.data_file)
    for path, mode in ((address, "wb"), (address, "ab"), (f"lake://{other}", "rb"), ("lake://../secret.csv", "rb")):
        with pytest.raises(PermissionError):
            files.open(path, mode)
    for ask in (files.info, files.glob):
        with pytest.raises(PermissionError):
            ask(f"lake://{other}")


def test_what_is_refused_is_told_with_the_way_out(place: Place) -> None:
    for attack in ("copy (select 1) to 'x.csv'", "select * from read_text('/etc/passwd')", "set threads = 1"):
        with pytest.raises(InvalidSettingsError) as error:
            place.lake.query(attack)
        assert "a query only reads the tables of the lake" in error.value.problem
        assert "--output FILE" in error.value.fix
        assert "--unrestricted" in error.value.fix


def test_an_unrestricted_query_may_do_it(place: Place, tmp_path: Path) -> None:
    sql = f"copy (select count(*) as n from {ORDERS}, read_csv('{place.folder}/secret.csv')) to '{tmp_path}/n.csv'"
    query(place.lake.place, sql, unrestricted=True)
    assert (tmp_path / "n.csv").read_text().split() == ["n", "3"]


# Saving


def saved(lake: Lake, sql: str, target: Path) -> int:
    return save(lake.place, lambda: query(lake.place, sql), target)


def read_back(path: Path) -> list[dict[str, Any]]:
    with duckdb.connect(":memory:") as connection:
        rows: list[dict[str, Any]] = connection.sql(f"select * from '{path}'").to_arrow_table().to_pylist()
        return rows


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".json", ".ndjson"])
def test_rows_are_saved_in_the_format_of_the_ending(place: Place, tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"it's orders{ending}"
    target.write_text("what was there before")
    sql = f"select message_id, properties_total::double as total from {ORDERS} order by 1"
    assert saved(place.lake, sql, target) == 3
    expected = [{"message_id": f"o{n}", "total": total} for n, total in ((1, 10.5), (2, 7.0), (3, 1.0))]
    if ending == ".parquet":
        assert pq.read_table(target).to_pylist() == expected
    elif ending == ".json":
        assert json.loads(target.read_text()) == expected
    elif ending == ".ndjson":
        assert [json.loads(line) for line in target.read_text().splitlines()] == expected
    else:
        assert target.read_text().splitlines() == ["message_id,total", "o1,10.5", "o2,7.0", "o3,1.0"]
    assert list(tmp_path.iterdir()) == [target]


def test_times_are_saved_in_utc(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    saved(place.lake, f"select received_at from {ORDERS} limit 1", tmp_path / "t.csv")
    assert "2026-11-15 10:20:30.123+00" in (tmp_path / "t.csv").read_text()


def test_a_query_that_fails_leaves_the_file_as_it_was(place: Place, tmp_path: Path) -> None:
    target = tmp_path / "x.csv"
    target.write_text("before")
    with pytest.raises(InvalidSettingsError):
        saved(place.lake, "select cast('a' as integer)", target)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.csv", "before")]


@pytest.mark.parametrize("name", ["x.txt", "x", "nowhere/x.csv", "eventlake.db"])
def test_rows_are_not_saved_where_nobody_could_mean_it(place: Place, tmp_path: Path, name: str) -> None:
    with pytest.raises(EventLakeError) as error:
        saved(place.lake, "select 1", tmp_path / name)
    assert error.value.fix
    assert not list(tmp_path.iterdir())


def test_nothing_is_saved_over_a_file_of_the_lake(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "workspace", InProcess(), settings='[lake]\nroot = "lake"\n')
    lake.sync_of(order("o1"))
    (file,) = (lake.root / "segment-data" / "data").rglob("*.parquet")
    before = file.read_bytes()
    with pytest.raises(InvalidSettingsError, match="is in the lake"):
        saved(lake, "select 1", file)
    assert file.read_bytes() == before


# Files that are broken


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "workspace", InProcess(), settings='[lake]\nroot = "lake"\n')
    lake.sync_of(*(order(f"o{n}", total=n, text=f"a text that is not like the others {n * n}") for n in range(2000)))
    lake.sync_of(track("Order", "c1"))
    return lake


def cut(content: bytes) -> bytes:
    return content[:-100]


def emptied(_: bytes) -> bytes:
    return b""


def overwritten(content: bytes) -> bytes:
    return b"\x00" * len(content)


def changed_inside(content: bytes) -> bytes:
    """As many bytes, the footer as it was: some of these faults DuckDB tells without the name of the file."""
    middle = len(content) // 4
    return content[:middle] + bytes(reversed(content[middle : middle + 2000])) + content[middle + 2000 :]


def pages_gone(content: bytes) -> bytes:
    return content[:4] + b"\xff" * 400 + content[404:]


@pytest.mark.parametrize("damage", [cut, emptied, overwritten, changed_inside, pages_gone, None])
def test_a_broken_file_is_named_with_the_command_that_mends_it(lake: Lake, damage: Any) -> None:
    (file,) = (lake.root / "segment-data" / "data").glob("*/segment_type=track_order_completed/**/*.parquet")
    content = file.read_bytes()
    if damage:
        file.write_bytes(damage(content))
    else:
        file.unlink()
    with pytest.raises(DamagedError) as error:
        lake.query("select * from web.track_order_completed")
    assert str(file) in error.value.problem
    assert "Traceback" not in error.value.problem
    assert "`eventlake verify web --repair`" in error.value.fix
    assert lake.query("select count(*) as n from web.track_order") == [{"n": 1}]
    assert len(lake.query("show tables")) == 5
    lake.run(jobs.replay(lake.connection, None, None))  # what the repair does
    assert lake.query("select count(*) as n from web.track_order_completed") == [{"n": 2000}]


def test_an_error_of_the_query_blames_no_file(lake: Lake) -> None:
    with pytest.raises(InvalidSettingsError, match="my own words"):
        lake.query("select error('my own words') from web.track_order_completed")


# Names that DuckDB keeps for itself

RESERVED = ["information_schema", "memory", "pg_catalog", "system", "temp"]


@pytest.mark.parametrize("name", RESERVED)
def test_a_source_cannot_get_a_database_that_could_not_be_asked(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidSettingsError) as added:
        lake.workspace.connections.add_source(name)
    with pytest.raises(InvalidSettingsError) as set_:
        lake.workspace.connections.preview("web", {"database": name})
    for error in (added, set_):
        assert repr(name) in error.value.problem
        assert [word for word in RESERVED if word not in error.value.fix] == []
    assert [source.slug for source in lake.workspace.sources.all()] == ["web"]


@pytest.mark.parametrize("name", ["main", "public", "lake", "default"])
def test_any_other_name_can_be_asked(lake: Lake, name: str) -> None:
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"database": name})))
    assert lake.query(f'select count(*) as n from "{name}".track_order') == [{"n": 1}]
    assert {row["database"] for row in lake.query("show tables")} == {"__segment_datalake", name}


@pytest.mark.parametrize("name", RESERVED)
def test_a_workspace_that_has_such_a_database_still_answers_for_its_others(lake: Lake, name: str) -> None:
    lake.workspace.connections.add_source("old", source_id="src2")
    with lake.workspace.engine.begin() as connection:  # as it was possible before
        table = db.connections
        (row,) = connection.execute(sa.select(table.c.settings).where(table.c.source_id == "src1")).scalars()
        connection.execute(table.update().where(table.c.source_id == "src2").values(settings=row | {"database": name}))
    old = lake.workspace.connections.get("old")
    storage = lake.place.storage
    storage.write(f"segment-logs/{old.source.id}/1794700800000/1", json.dumps(track("Order", "x1")).encode())
    lake.run(jobs.sync(old))
    assert lake.query("select count(*) as n from web.track_order") == [{"n": 1}]
    assert {row["database"] for row in lake.query("show tables")} == {"__segment_datalake", "web"}
    with pytest.raises(InvalidSettingsError) as error:
        lake.query(f"select * from {name}.track_order")
    assert repr(name) in error.value.problem
    assert "`eventlake replay old --all --set database=NAME`" in error.value.fix
    lake.workspace.connections.change("old", {"lookback_days": "3"})  # other settings can be changed as ever
    lake.run(jobs.rebuild(lake.workspace.connections.preview("old", {"database": "renamed"})))
    assert lake.query("select count(*) as n from renamed.track_order") == [{"n": 1}]


def test_threads_that_share_an_open_file_each_read_where_they_were_sent(tmp_path: Path) -> None:
    """DuckDB seeks and reads in two calls: what another thread does in between must not matter."""
    storage = LocalStorage(str(tmp_path))
    storage.write("file", b"".join(number.to_bytes(4, "big") for number in range(20_000)))
    files = LakeFiles(storage)
    shared = files.open(files.address("file", 80_000))
    assert (shared.read(4), shared.tell()) == (bytes(4), 4)
    in_between = threading.Thread(target=lambda: shared.seek(400))
    in_between.start()
    in_between.join()
    assert (shared.tell(), shared.read(4)) == (4, (1).to_bytes(4, "big"))
    assert (shared.seek(-4, os.SEEK_END), shared.read(), shared.read(1)) == (79_996, (19_999).to_bytes(4, "big"), b"")
    assert (shared.seek(0), shared.seek(8, os.SEEK_CUR), len(shared.read())) == (0, 8, 79_992)
