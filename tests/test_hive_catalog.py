"""What is special about tables in a Hive metastore: what engines find, what people add, who does not answer."""

import socket
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pymetastore.hive_metastore import ttypes as thrift
from thrift.Thrift import TApplicationException

from eventlake.catalog import described, hive_tables
from eventlake.catalog.base import TableChange
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.catalog.hive import HiveCatalog
from eventlake.catalog.hive_client import Metastore
from eventlake.catalog.hive_refusals import explained
from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.control.database import connect
from eventlake.errors import (
    CatalogDeleteDeniedError,
    CatalogLimitError,
    CatalogReadDeniedError,
    CatalogWriteDeniedError,
    InvalidSettingsError,
    PartitionMismatchError,
    SetupError,
    TransientError,
)
from eventlake.schema.evolve import Column
from eventlake.schema.types import ColumnType
from hive_engine import Hive, foreign, types_of
from metastores import HiveServer
from servers import free_ports

ID = Column("message_id", ColumnType.STRING, "/messageId")
PRICE = Column("properties_price", ColumnType.BIGINT, "/properties/price")
NAME = Column("properties_name", ColumnType.STRING, "/properties/name")
HOURS = (("2026-11-15", "10"), ("2026-11-15", "11"))
LOCATION = "segment-data/data/src1/segment_type=track_a"


@pytest.fixture
def database() -> str:
    return f"web_{uuid.uuid4().hex}"


@pytest.fixture
def root(tmp_path: Path) -> str:
    return f"file://{tmp_path}/lake"


@pytest.fixture
def hive(engine: Hive, database: str, root: str) -> HiveCatalog:
    return HiveCatalog(engine.metastore, root, lambda: dict.fromkeys(["src0", "src1"], database))


@pytest.fixture
def mirrored(hive: HiveCatalog, tmp_path: Path) -> MirroredCatalog:
    return MirroredCatalog(EmbeddedCatalog(connect("sqlite:///catalog.db", tmp_path), "default"), hive)


@pytest.fixture
def change(database: str) -> TableChange:
    return TableChange(
        database, "track_a", "src1", "track_a", LOCATION, ("day", "hr"), added=(ID, PRICE), partitions=HOURS[:1]
    )


# What engines find


def test_a_metastore_has_tables_that_engines_read(
    engine: Hive, hive: HiveCatalog, change: TableChange, root: str
) -> None:
    hive.apply([change], run_id="1", at=1)
    table = engine.table(change.database, "track_a")
    assert (table.tableType, table.parameters["EXTERNAL"]) == ("EXTERNAL_TABLE", "TRUE")
    assert table.sd.location == f"{root}/{LOCATION}".replace("file:///", "file:/")
    assert table.sd.inputFormat == "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"
    assert table.sd.outputFormat == "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
    assert table.sd.serdeInfo.serializationLib == "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
    assert table.sd.serdeInfo.parameters == {"serialization.format": "1"}
    assert types_of(table) == [("message_id", "string"), ("properties_price", "bigint")]
    assert [(key.name, key.type) for key in table.partitionKeys] == [("day", "string"), ("hr", "string")]
    assert "eventlake.incomplete" not in table.parameters
    assert "spark.sql.sources.provider" not in table.parameters  # else Spark would believe columns of its own
    (partition,) = engine.partitions(change.database, "track_a")
    assert partition.values == ["2026-11-15", "10"]
    assert partition.sd.location == f"{table.sd.location}/day=2026-11-15/hr=10"
    assert partition.sd.cols == table.sd.cols
    assert partition.sd.serdeInfo.serializationLib == table.sd.serdeInfo.serializationLib


def test_partitions_share_the_columns_of_their_table_with_what_people_say_of_them(
    engine: Hive, hive: HiveCatalog, change: TableChange
) -> None:
    hive.apply([change], run_id="1", at=1)
    table = engine.table(change.database, "track_a")
    table.sd.cols[0].comment = "who knows"
    engine.edit(table)
    hive.apply([replace(change, partitions=HOURS[1:])], run_id="2", at=2)
    assert columns_kept(engine, change.database) == 2  # of the table and the new partition; of the old one


def test_names_in_the_database_below_may_differ_in_case_only(metastore: HiveServer) -> None:
    """As on every Linux: so all of this holds where names of tables and rows are the same only if their case is."""
    assert metastore.database.sql("select @@lower_case_table_names") == [["0"]]
    collation = "select distinct COLLATION_NAME from information_schema.COLUMNS where TABLE_SCHEMA = 'metastore'"
    assert metastore.database.sql(f"{collation} and COLUMN_NAME in ('NAME', 'TBL_NAME')") == [["latin1_bin"]]


def test_a_database_is_where_the_metastore_makes_all_of_them(engine: Hive, hive: HiveCatalog, database: str) -> None:
    """What somebody makes there without saying where must not lie in the lake."""
    assert hive.prepare(database) == frozenset()
    found = engine.metastore.ask("get_database", "look", database)
    assert found.locationUri == f"file:{engine.server.folder}/warehouse/{database}.db"


def test_nothing_is_written_if_nothing_changed(engine: Hive, hive: HiveCatalog, change: TableChange) -> None:
    hive.apply([change], run_id="1", at=1)
    before = engine.table(change.database, "track_a")
    hive.apply([replace(change, partitions=HOURS)], run_id="2", at=2)
    assert engine.table(change.database, "track_a") == before


RETYPES = [ColumnType.STRING, ColumnType.BOOLEAN, ColumnType.TIMESTAMP, ColumnType.DECIMAL, ColumnType.BIGINT]


@pytest.mark.parametrize("name", ["message_id", "properties_price"])
def test_a_column_gets_any_type_and_so_do_its_partitions(
    engine: Hive, hive: HiveCatalog, change: TableChange, name: str
) -> None:
    """A metastore by itself refuses most changes of types."""
    hive.apply([replace(change, added=(ID, PRICE, NAME), partitions=HOURS)], run_id="1", at=1)
    for number, kind in enumerate(RETYPES, 2):
        # One that this run did not write to gets it as well.
        hive.apply([replace(change, retyped=((name, kind),))], run_id=str(number), at=number)
        table = engine.table(change.database, "track_a")
        types = types_of(table)
        assert dict(types)[name] == kind.value
        assert [column for column, _ in types] == ["message_id", "properties_price", "properties_name"]
        assert [types_of(partition) for partition in engine.partitions(change.database, "track_a")] == [types, types]
    events = [event for event in hive.history(change.database, "track_a") if event.column == name]
    assert [event.type for event in events if event.change == "retyped"] == [
        kind.value for kind in (RETYPES[1:] if name == "message_id" else RETYPES)
    ]


def test_partitions_that_a_run_wrote_to_have_its_columns(engine: Hive, hive: HiveCatalog, change: TableChange) -> None:
    """Hive shows of a partition only the columns that the partition has."""
    hive.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    hive.apply([replace(change, added=(NAME,), partitions=HOURS[1:])], run_id="2", at=2)
    old, new = engine.partitions(change.database, "track_a")
    assert types_of(old) == [("message_id", "string"), ("properties_price", "bigint")]
    assert types_of(new) == types_of(engine.table(change.database, "track_a"))
    hive.apply([replace(change, partitions=HOURS[:1])], run_id="3", at=3)
    assert {len(partition.sd.cols) for partition in engine.partitions(change.database, "track_a")} == {3}


MANY = tuple((f"2026-11-{day:02}", f"{hour:02}") for day in (14, 15, 16) for hour in range(24))


@pytest.fixture
def folders(tmp_path: Path) -> None:
    """Where there are none a metastore makes them, which takes long."""
    for day, hour in MANY:
        (tmp_path / "lake" / LOCATION / f"day={day}" / f"hr={hour}").mkdir(parents=True)


def columns_kept(engine: Hive, database: str) -> int:
    """How many lists of columns the database below has for the table of a database and its partitions."""
    places = "select SD_ID from metastore.TBLS join metastore.DBS using (DB_ID) where NAME = '{0}'"
    places += " union select p.SD_ID from metastore.PARTITIONS p join metastore.TBLS using (TBL_ID) "
    places += "join metastore.DBS using (DB_ID) where NAME = '{0}'"
    count = f"select count(distinct CD_ID) from metastore.SDS where SD_ID in ({places.format(database)})"
    return int(engine.server.database.sql(count)[0][0])


@pytest.mark.usefixtures("folders")
def test_many_partitions_share_the_columns_of_their_table_again_after_a_change(
    engine: Hive, hive: HiveCatalog, change: TableChange
) -> None:
    """Else those of a thousand columns in ten thousand partitions would be ten million rows."""
    hive.apply([replace(change, partitions=MANY)], run_id="1", at=1)
    assert columns_kept(engine, change.database) == 1
    (first, *_) = engine.partitions(change.database, "track_a")
    first.parameters["team"] = "growth"
    engine.metastore.ask("alter_partitions", "edit", change.database, "track_a", [first])
    hive.apply([replace(change, partitions=MANY[:1], retyped=((PRICE.name, ColumnType.STRING),))], run_id="2", at=2)
    table, found = engine.table(change.database, "track_a"), engine.partitions(change.database, "track_a")
    assert [tuple(partition.values) for partition in found] == list(MANY)
    assert {tuple(types_of(partition)) for partition in found} == {tuple(types_of(table))}
    assert found[0].parameters["team"] == "growth"
    assert columns_kept(engine, change.database) == 1
    assert "eventlake.incomplete" not in table.parameters


@pytest.mark.usefixtures("folders")
@pytest.mark.parametrize("left", [0, 1, 60])
def test_a_change_of_all_partitions_that_was_interrupted_is_gone_on_with(
    engine: Hive, hive: HiveCatalog, change: TableChange, left: int
) -> None:
    hive.apply([replace(change, partitions=MANY)], run_id="1", at=1)
    old = engine.partitions(change.database, "track_a")[:left]
    hive.apply([replace(change, retyped=((PRICE.name, ColumnType.STRING),))], run_id="2", at=2)
    if old:
        engine.metastore.ask("alter_partitions", "edit", change.database, "track_a", old)
    table = engine.table(change.database, "track_a")
    table.parameters["eventlake.incomplete"] = "true"  # as it was written before its partitions were
    engine.edit(table)
    assert hive.tables() == []
    hive.apply([replace(change, added=(), partitions=())], run_id="3", at=3)
    found = engine.partitions(change.database, "track_a")
    assert {tuple(types_of(partition)) for partition in found} == {tuple(types_of(table))}
    assert len(found) == len(MANY)
    assert [table.name for table in hive.tables()] == ["track_a"]


def test_statistics_of_before_a_run_are_not_trusted(engine: Hive, hive: HiveCatalog, change: TableChange) -> None:
    """Else Hive would count rows without looking at the files."""
    hive.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    counted = engine.partitions(change.database, "track_a")
    for partition in counted:
        partition.parameters |= {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}', "team": "growth"}
    counting = thrift.EnvironmentContext({"STATS_GENERATED": "TASK"})
    engine.metastore.ask(
        "alter_partitions_with_environment_context", "count", change.database, "track_a", counted, counting
    )
    before = [partition.parameters for partition in engine.partitions(change.database, "track_a")]
    assert all("COLUMN_STATS_ACCURATE" in parameters for parameters in before)
    hive.apply([change], run_id="2", at=2)
    written, other = (partition.parameters for partition in engine.partitions(change.database, "track_a"))
    assert "COLUMN_STATS_ACCURATE" not in written
    assert written["team"] == "growth"
    assert other == before[1]


def test_a_table_without_partitions_has_no_size_that_never_changes(
    engine: Hive, hive: HiveCatalog, change: TableChange, tmp_path: Path
) -> None:
    """Spark would send a table that was small on its first day to every worker."""
    folder = tmp_path / "lake" / LOCATION
    folder.mkdir(parents=True)
    (folder / "1.parquet").write_bytes(b"1234")
    whole = replace(change, partition_keys=(), partitions=())
    hive.apply([whole], run_id="1", at=1)
    table = engine.table(change.database, "track_a")
    assert not {"totalSize", "numFiles"}.intersection(table.parameters)
    assert table.sd.serdeInfo.parameters["recursiveFileLookup"] == "true"
    hive.apply([replace(whole, added=(NAME,))], run_id="2", at=2)
    assert not {"totalSize", "numFiles"}.intersection(engine.table(change.database, "track_a").parameters)
    assert [table.schema.columns for table in hive.tables()] == [(ID, PRICE, NAME)]


LONG = Column("properties_long", ColumnType.STRING, "/properties/" + "\x00🎉'\"\\ü~1" * 2500)


def test_what_is_known_of_columns_fits_whatever_it_is(engine: Hive, hive: HiveCatalog, change: TableChange) -> None:
    """In older metastores a parameter has 4,000 characters, and in many of them Latin ones only."""
    many = tuple(Column(f"properties_{n:03}_{'x' * 230}", ColumnType.STRING, f"/properties/{n}") for n in range(100))
    hive.apply([replace(change, added=(ID, LONG, *many))], run_id="1", at=1)
    table = engine.table(change.database, "track_a")
    assert max(map(len, table.parameters.values())) == 4000
    assert all(value.isascii() for value in table.parameters.values())
    assert hive.tables()[0].schema.columns == (ID, LONG, *many)
    stored = dict(engine.server.database.sql(_parameters(change.database)))
    assert stored["eventlake.columns.numParts"] == table.parameters["eventlake.columns.numParts"]
    assert {key: int(size) for key, size in engine.server.database.sql(_lengths(change.database))} == {
        key: len(value) for key, value in table.parameters.items()
    }
    hive.apply([replace(change, added=(PRICE,))], run_id="2", at=2)
    assert hive.tables()[0].schema.columns == (ID, LONG, *many, PRICE)


def _parameters(database: str, value: str = "PARAM_VALUE") -> str:
    return (
        f"select PARAM_KEY, {value} from metastore.TABLE_PARAMS join metastore.TBLS using (TBL_ID) "
        f"join metastore.DBS using (DB_ID) where NAME = '{database}'"
    )


def _lengths(database: str) -> str:
    return _parameters(database, "length(PARAM_VALUE)")


def test_fewer_columns_leave_no_parts_behind(engine: Hive, hive: HiveCatalog, change: TableChange) -> None:
    hive.apply([replace(change, added=(ID, LONG))], run_id="1", at=1)
    table = engine.table(change.database, "track_a")
    table.sd.cols = table.sd.cols[:1]
    engine.edit(table)
    hive.apply([replace(change, added=(ID,))], run_id="2", at=2)
    kept = [key for key in engine.table(change.database, "track_a").parameters if ".part." in key]
    assert kept == ["eventlake.columns.part.0"]


@pytest.mark.parametrize("broken", ["", "no json", "[1]", '[["a"]]'])
def test_what_somebody_made_of_our_parameters_is_written_anew(
    engine: Hive, hive: HiveCatalog, change: TableChange, broken: str
) -> None:
    hive.apply([change], run_id="1", at=1)
    table = engine.table(change.database, "track_a")
    table.parameters |= {"eventlake.columns.part.0": broken}
    if not broken:
        del table.parameters["eventlake.columns.part.0"]
    engine.edit(table)
    assert [column.pointer for column in hive.tables()[0].schema.columns] == ["", ""]
    hive.apply([change], run_id="2", at=2)
    assert hive.tables()[0].schema.columns == (ID, PRICE)


# What people and others do


def test_what_people_add_to_a_table_stays(engine: Hive, hive: HiveCatalog, change: TableChange) -> None:
    hive.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    table = engine.table(change.database, "track_a")
    table.owner = "growth"
    table.parameters |= {"comment": "All clicks", "team": "growth"}
    table.sd.cols[1].comment = "in cents"
    table.sd.cols.append(thrift.FieldSchema("theirs", "array<string>", None))
    table.sd.serdeInfo.parameters["parquet.column.index.access"] = "false"
    table.partitionKeys[0].comment = "UTC"
    engine.edit(table)

    def check(table: Any) -> None:
        assert table.owner == "growth"
        assert (table.parameters["comment"], table.parameters["team"]) == ("All clicks", "growth")
        names = [column.name for column in table.sd.cols]
        assert names == ["message_id", "properties_price", "theirs", "properties_name"]
        assert table.sd.cols[1].comment == "in cents"
        assert table.sd.serdeInfo.parameters["parquet.column.index.access"] == "false"
        assert table.partitionKeys[0].comment == "UTC"
        assert [table.schema.columns for table in hive.tables()] == [(ID, PRICE, NAME)]

    hive.apply([replace(change, added=(NAME,), partitions=HOURS)], run_id="2", at=2)
    check(engine.table(change.database, "track_a"))
    # A table cannot have other keys: it is made anew, and yet the same.
    days = (("2026-11-15",), ("2026-11-16",))
    hive.apply([replace(change, partition_keys=("day",), partitions=days)], run_id="3", at=3)
    check(engine.table(change.database, "track_a"))
    assert hive.partitions(change.database, "track_a") == list(days)
    assert engine.table(change.database, "track_a").sd.cols[3].name == "properties_name"
    assert [event.run_id for event in hive.history(change.database, "track_a")] == ["1", "1", "2"]


def test_partitions_that_are_not_wanted_any_more_go_and_the_others_stay(
    engine: Hive, hive: HiveCatalog, change: TableChange
) -> None:
    hive.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    created = {tuple(one.values): one.createTime for one in engine.partitions(change.database, "track_a")}
    wanted = (HOURS[1], ("2026-11-15", "12"))
    hive.apply([replace(change, partitions=wanted, forgotten=HOURS[:1])], run_id="2", at=2)
    assert hive.partitions(change.database, "track_a") == list(wanted)
    assert engine.partitions(change.database, "track_a")[0].createTime == created[HOURS[1]]


def test_partitions_with_letters_that_hive_writes_otherwise_are_found_again(
    engine: Hive, hive: HiveCatalog, change: TableChange
) -> None:
    odd = (("2026-11-15T10:30", "100%"), ("a=b", "[#?]"))
    hive.apply([replace(change, partitions=odd)], run_id="1", at=1)
    assert hive.partitions(change.database, "track_a") == list(odd)
    hive.apply([replace(change, partitions=odd[:1], retyped=((PRICE.name, ColumnType.STRING),))], run_id="2", at=2)
    found = engine.partitions(change.database, "track_a")
    assert [(tuple(one.values), dict(types_of(one))[PRICE.name]) for one in found] == [(one, "string") for one in odd]
    hive.apply([replace(change, partitions=(), forgotten=odd[:1])], run_id="3", at=3)
    assert hive.partitions(change.database, "track_a") == list(odd[1:])


def test_partitions_follow_a_table_that_moves(engine: Hive, hive: HiveCatalog, change: TableChange, root: str) -> None:
    hive.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    hive.apply([replace(change, location=f"{LOCATION}2", partitions=HOURS[:1])], run_id="2", at=2)
    places = [partition.sd.location for partition in engine.partitions(change.database, "track_a")]
    assert {place.rpartition("/day=")[0].replace("file:///", "file:/") for place in places} == {
        f"{root}/{LOCATION}2".replace("file:///", "file:/")
    }
    assert [table.location for table in hive.tables()] == [f"{LOCATION}2"]


def test_tables_of_others_are_named_and_left_alone(engine: Hive, hive: HiveCatalog, change: TableChange) -> None:
    hive.apply([change], run_id="1", at=1)
    engine.make(foreign(change.database, "identify"))
    assert hive.prepare(change.database) == {"identify"}
    assert [table.name for table in hive.tables()] == ["track_a"]


@pytest.mark.parametrize("whose", ["somebody's", "another lake's", "another source's"])
def test_a_table_of_others_is_neither_changed_nor_dropped(
    engine: Hive, hive: HiveCatalog, change: TableChange, tmp_path: Path, whose: str
) -> None:
    hive.prepare(change.database)
    if whose == "another lake's":
        other = HiveCatalog(engine.metastore, f"file://{tmp_path}/other", lambda: {"src1": change.database})
        other.apply([change], run_id="1", at=1)
    elif whose == "another source's":
        hive.apply([replace(change, source_id="src0")], run_id="1", at=1)
    else:
        engine.make(foreign(change.database, "track_a"))
    before = engine.table(change.database, "track_a")
    if whose != "another source's":
        assert hive.prepare(change.database) == {"track_a"}
    with pytest.raises(InvalidSettingsError, match="in the Hive metastore was not made by this lake for this source"):
        hive.apply([change], run_id="2", at=2)
    if whose != "another source's":
        hive.drop(change.database, "track_a")
    assert engine.table(change.database, "track_a") == before


def test_a_table_whose_making_was_interrupted_is_not_taken_for_whole(
    engine: Hive, hive: HiveCatalog, mirrored: MirroredCatalog, change: TableChange, root: str
) -> None:
    whole = replace(change, partitions=HOURS)
    mirrored._truth.apply([whole], run_id="1", at=1)
    hive.prepare(change.database)
    half = described.changed(None, whole, f"{root}/{LOCATION}", run_id="1", at=1)
    engine.make(hive_tables.as_table(half, change.database, None))  # and then it died
    assert hive.tables() == []
    mirrored.apply([replace(change, added=(), partitions=())], run_id="2", at=2)
    assert [table.name for table in hive.tables()] == ["track_a"]
    assert hive.partitions(change.database, "track_a") == list(HOURS)


@pytest.mark.parametrize("by", ["a run", "a command"])
def test_a_table_lost_in_the_metastore_comes_back_whole(
    hive: HiveCatalog, mirrored: MirroredCatalog, change: TableChange, by: str
) -> None:
    mirrored.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    hive.drop(change.database, "track_a")
    if by == "a run":
        mirrored.apply([replace(change, added=(), partitions=())], run_id="2", at=2)
    else:
        assert mirrored.publish(run_id="publish", at=2) == (1, [])
    (table,) = hive.tables()
    assert table.schema.columns == (ID, PRICE)
    assert hive.partitions(change.database, "track_a") == list(HOURS)


def test_a_table_with_other_partitions_is_noticed_before_anything_is_written(
    engine: Hive, hive: HiveCatalog, mirrored: MirroredCatalog, change: TableChange
) -> None:
    mirrored.apply([change], run_id="1", at=1)
    hive.apply([replace(change, partition_keys=("date",), partitions=())], run_id="2", at=2)
    with pytest.raises(PartitionMismatchError, match="partitioned by date"):
        mirrored.prepare(change.database)


def test_all_partitions_get_columns_and_places_on_demand(
    engine: Hive, hive: HiveCatalog, mirrored: MirroredCatalog, change: TableChange
) -> None:
    mirrored.apply([replace(change, partitions=HOURS)], run_id="1", at=1)
    mirrored.apply([replace(change, added=(NAME,), partitions=())], run_id="2", at=2)
    mirrored.publish(run_id="publish", at=3)
    assert {len(partition.sd.cols) for partition in engine.partitions(change.database, "track_a")} == {3}


@pytest.mark.long
def test_many_writers_at_once_lose_nothing(engine: Hive, hive: HiveCatalog, change: TableChange) -> None:
    columns = [Column(f"properties_{n}", ColumnType.STRING, f"/properties/{n}") for n in range(60)]
    hive.apply([change], run_id="0", at=0)

    def run(number: int) -> None:
        hive.apply([replace(change, added=(columns[number],), partitions=HOURS)], run_id=str(number), at=number)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(run, range(60)))
    (table,) = hive.tables()
    assert set(table.schema.columns) == {ID, PRICE, *columns}
    assert len(table.schema.columns) == 62


def test_who_comes_second_is_told_and_tries_again(engine: Hive, hive: HiveCatalog, change: TableChange) -> None:
    """An edit between reading and writing of a table is not lost."""
    hive.apply([change], run_id="1", at=1)
    edited: list[bool] = []

    def with_name(table: described.Described | None) -> described.Described:
        if not edited:
            edited.append(True)
            theirs = engine.table(change.database, "track_a")
            theirs.parameters |= {"team": "growth", hive_tables.VERSION: str(int(time.time()) + 100)}
            engine.edit(theirs)
        new = replace(change, added=(NAME,))
        return described.changed(table, new, table["StorageDescriptor"]["Location"], run_id="2", at=2)  # type: ignore[index]

    hive._writer.write((change.database, "track_a"), with_name)
    table = engine.table(change.database, "track_a")
    assert table.parameters["team"] == "growth"
    assert [column.name for column in table.sd.cols] == ["message_id", "properties_price", "properties_name"]
    assert hive.compares(change.database, "track_a")


# Limits


def test_names_of_databases_that_are_too_long_are_told_before_anything_is_done(hive: HiveCatalog) -> None:
    with pytest.raises(InvalidSettingsError, match="up to 128 characters"):
        hive.prepare("d" * 129)
    assert hive.prepare(f"d{uuid.uuid4().hex:_>127}") == frozenset()


def test_a_name_that_the_metastore_does_not_take_keeps_no_other_table_out(
    hive: HiveCatalog, change: TableChange
) -> None:
    (notice,) = hive.apply([replace(change, table="price_in_$"), change], run_id="1", at=1)
    assert f"{change.database}.price_in_$ is not as it should be in the Hive metastore" in notice
    assert [table.name for table in hive.tables()] == ["track_a"]


def test_names_that_are_too_long_for_the_metastore_are_left_out_of_it(
    mirrored: MirroredCatalog, hive: HiveCatalog, change: TableChange
) -> None:
    longest, longer = Column("c" * 767, ColumnType.STRING, "/c"), Column("c" * 768, ColumnType.STRING, "/d")
    changes = [replace(change, added=(ID, longest, longer)), replace(change, table="t" * 257)]
    told = mirrored.apply(changes, run_id="1", at=1)
    assert [notice.partition(":")[0] for notice in told] == [
        "the Hive metastore has names of tables of up to 256 characters, and leaves out 1",
        "the Hive metastore has names of columns of up to 767 characters, and leaves out 1",
    ]
    assert [table.schema.columns for table in hive.tables()] == [(ID, longest)]
    assert [len(table.schema.columns) for table in mirrored.tables()] == [3, 2]
    assert mirrored.not_shown("src1") == []
    assert mirrored.publish(run_id="publish", at=2) == (1, told)


def test_a_limit_keeps_new_tables_out_and_nothing_else(hive: HiveCatalog, change: TableChange) -> None:
    long = f"track_{'x' * 251}"
    (notice,) = hive.apply([replace(change, table=long), change], run_id="1", at=1)
    assert f"{change.database}.{long} is not as it should be in the Hive metastore" in notice
    assert "maximum length of 256" in notice
    assert [table.name for table in hive.tables()] == ["track_a"]
    assert hive.apply([replace(change, table=long[:256])], run_id="2", at=2) == []
    assert [table.name for table in hive.tables()] == ["track_a", long[:256]]


@pytest.mark.parametrize("root", ["s3://lake-of-others", "abfss://of@others.dfs.core.windows.net/lake"])
def test_a_place_that_the_metastore_cannot_look_at_is_told(engine: Hive, change: TableChange, root: str) -> None:
    elsewhere = HiveCatalog(engine.metastore, root, lambda: {"src1": change.database})
    elsewhere.prepare(change.database)
    with pytest.raises(InvalidSettingsError, match="could not create_table") as caught:
        elsewhere.apply([change], run_id="1", at=1)
    assert "catalog.location_scheme" in caught.value.fix


def test_buckets_are_written_as_the_engines_know_them(change: TableChange) -> None:
    told = described.changed(None, change, "s3://bucket/lake/a", run_id="1", at=1)
    table = hive_tables.as_table(told, change.database, None, scheme="s3a")
    partition = hive_tables.as_partition(told, change.database, HOURS[0], scheme="s3a")
    assert table.sd.location == "s3a://bucket/lake/a"
    assert partition.sd.location == "s3a://bucket/lake/a/day=2026-11-15/hr=10"
    assert hive_tables.as_told(table)["StorageDescriptor"]["Location"] == "s3://bucket/lake/a"
    again = hive_tables.as_table(hive_tables.as_told(table), change.database, table, scheme="s3")
    assert again.sd.location == "s3://bucket/lake/a"
    azure = described.changed(None, change, "abfss://c@a.dfs.core.windows.net/l", run_id="1", at=1)
    assert (
        hive_tables.as_table(azure, change.database, None, scheme="s3a").sd.location
        == azure["StorageDescriptor"]["Location"]
    )


def test_calls_stay_small_however_many_columns_there_are() -> None:
    def at_once(columns: int) -> int:
        return hive_tables.partitions_at_once(
            {"StorageDescriptor": {"Columns": [{"Name": "a", "Type": "string"}] * columns}}
        )

    assert [at_once(columns) for columns in (0, 400, 1000, 10_000, 100_001)] == [250, 250, 100, 10, 1]


REFUSALS = {
    "ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found": InvalidSettingsError,
    'Got exception: java.io.IOException No FileSystem for scheme "s3"': InvalidSettingsError,
    "Got exception: AccessControlException Permission denied: user=x": CatalogWriteDeniedError,
    "file:/proc/x is not a directory or unable to create one": CatalogWriteDeniedError,
    'Attempt to store value "x" in column "TBL_NAME" that has maximum length of 256.': CatalogLimitError,
    "Add request failed : INSERT INTO COLUMNS_V2 (CD_ID) VALUES (?)": CatalogLimitError,
    'Insert of object "org.apache.hadoop.hive.metastore.model.MTable@1" using statement failed': CatalogLimitError,
    "Communications link failure": TransientError,
}


@pytest.mark.parametrize(("message", "kind"), REFUSALS.items())
def test_an_answer_that_refuses_says_who_must_act(message: str, kind: type[Exception]) -> None:
    error = explained(thrift.MetaException(message), "create_table", "make it")
    assert type(error) is kind
    assert message in error.problem


def test_further_answers_say_who_must_act() -> None:
    denied = thrift.MetaException("User is not authorized")
    assert isinstance(explained(denied, "drop_table", "x"), CatalogDeleteDeniedError)
    assert isinstance(explained(denied, "get_table_req", "x"), CatalogReadDeniedError)
    old = explained(TApplicationException(TApplicationException.UNKNOWN_METHOD, "Invalid method name"), "x", "x")
    assert (type(old), "2.3" in old.fix) == (SetupError, True)
    assert type(explained(TApplicationException(6, "Internal error"), "x", "x")) is TransientError
    assert type(explained(thrift.InvalidOperationException("no"), "x", "x")) is CatalogLimitError
    assert type(explained(thrift.NoSuchObjectException("no"), "x", "x")) is SetupError


# A metastore that is away


def test_several_addresses_are_tried_in_turn(metastore: HiveServer) -> None:
    nobody = f"thrift://127.0.0.1:{free_ports(1)[0]}"
    assert Metastore([nobody, metastore.uri], timeout=60).ask("get_all_databases", "look")


def test_nobody_there_is_told_with_what_to_do(database: str) -> None:
    (port,) = free_ports(1)
    uri = f"thrift://127.0.0.1:{port}"
    nobody = HiveCatalog(Metastore([uri], timeout=60), "file:///x", lambda: {"src1": database})
    with pytest.raises(TransientError, match=rf"could not get_all_tables {database}.*{uri}.*refused") as caught:
        nobody.tables()
    assert "see whether the metastore runs" in caught.value.fix


@pytest.mark.parametrize("answer", [None, b"HTTP/1.0 400 Bad Request\r\n\r\n"], ids=["silence", "HTTP"])
def test_who_does_not_speak_thrift_is_given_up(answer: bytes | None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        asked = []

        def serve() -> None:
            while True:
                try:
                    one, _ = deaf.accept()
                except OSError:
                    return
                asked.append(one)
                if answer:
                    one.sendall(answer)
                    one.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        begun = time.monotonic()
        with pytest.raises(TransientError, match="no answer from"):
            Metastore([f"thrift://127.0.0.1:{deaf.getsockname()[1]}"], timeout=0.5).ask("get_all_databases", "look")
        assert time.monotonic() - begun < 10
        deaf.shutdown(socket.SHUT_RDWR)
        thread.join()
        assert len(asked) == (3 if answer else 1)  # who took too long once takes too long again
        for one in asked:
            one.close()


@pytest.mark.long
def test_a_connection_that_broke_is_made_anew(metastore: HiveServer) -> None:
    one = Metastore([metastore.uri], timeout=60)
    before = one.ask("get_all_databases", "look")
    metastore.stop()
    metastore.start()
    assert one.ask("get_all_databases", "look") == before
