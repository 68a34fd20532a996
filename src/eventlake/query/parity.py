"""Whether a lake that somebody else wrote has the same rows as ours, table by table and hour by hour.

For those who move in: the same events were loaded twice, by Segment and by us, and both may be in one bucket.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import duckdb

from eventlake.catalog.base import CatalogTable
from eventlake.catalog.view_sql import DUCKDB
from eventlake.control.connections import Connection
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.query.views import Views, quoted
from eventlake.storage.base import Storage, StoredFile
from eventlake.storage.duck import LakeFiles
from eventlake.workspace import Lake

_TABLE = re.compile(r"(?:^|/)segment_type=(?P<key>[^/]+)/(?:.*/)?[^/]+\.parquet$")
_EXAMPLES = 3


class Hour(NamedTuple):
    """The rows of one table that were received in one hour (UTC)."""

    table: str
    hour: str
    theirs: int
    ours: int
    missing: int  # messages that they have, and we do not
    extra: int
    examples: tuple[str, ...]  # ids of missing messages


class Difference(NamedTuple):
    """A column whose cells are not the same in rows that both have."""

    table: str
    column: str
    rows: int
    example: str  # the id of a message
    only_theirs: bool = False  # we have no such column; rows are those in which they have a value


class Parity(NamedTuple):
    hours: list[Hour]
    differences: list[Difference]
    only_theirs: list[str]  # tables
    only_ours: list[str]

    @property
    def missing(self) -> int:
        return sum(hour.missing for hour in self.hours)


def parity(lake: Lake, connection: Connection, other: Storage, folder: str) -> Parity:
    """Compare the tables of a connection with what lies below a folder of a storage, which may be that of the lake."""
    ours = {table.table_key: table for table in lake.catalog.tables(connection.source.id)}
    known = {lake.storage.full(file.path) for file in lake.ledger.data_files(connection.source.id)}
    theirs = _theirs(file for file in other.files(folder) if other.full(file.path) not in known)
    if not theirs:
        raise NotFoundError(
            f"there are no tables of others in {other.full(folder)}",
            fix="name the folder that has segment_type=… folders with Parquet files in it",
        )
    shared: dict[str, list[StoredFile]] = {}
    only_theirs = []
    for key, files in theirs.items():
        if (mine := _same(key, ours)) is None:
            only_theirs.append(key)
        else:  # of several folders perhaps: `order_completed`, and later `track_order_completed`
            shared.setdefault(mine, []).extend(files)
    found = Parity([], [], sorted(only_theirs), sorted(ours.keys() - shared.keys()))
    for key, files in sorted(shared.items()):
        with _Compared(lake, ours[key], other, files) as compared:
            found.hours.extend(compared.hours())
            found.differences.extend(compared.differences())
    return found


def _theirs(files: Iterator[StoredFile]) -> dict[str, list[StoredFile]]:
    found: dict[str, list[StoredFile]] = {}
    for file in files:
        if named := _TABLE.search(file.path):
            found.setdefault(named["key"], []).append(file)
    return found


def _same(key: str, ours: Mapping[str, CatalogTable]) -> str | None:
    """Our key of a table of theirs, of which the name may be without `track_`, or with it."""
    return next((one for one in (key, f"track_{key}", key.removeprefix("track_")) if one in ours), None)


class _Compared:
    """One table, as both have it."""

    def __init__(self, lake: Lake, table: CatalogTable, other: Storage, files: Sequence[StoredFile]) -> None:
        self._table = table
        self._connection = duckdb.connect(":memory:")
        mine, theirs = LakeFiles(lake.storage), LakeFiles(other, "theirs")
        for one in (mine, theirs):
            self._connection.register_filesystem(one)
        self._connection.execute("SET TimeZone = 'UTC'")
        name = f"{DUCKDB.name(table.database)}.{DUCKDB.name(table.name)}"
        Views(lake, self._connection, mine).make(f"from {name}")
        addresses = ", ".join(quoted(theirs.address(file.path, file.size)) for file in files)
        read = f"read_parquet([{addresses}], union_by_name=true, hive_partitioning=false)"
        try:
            self._connection.execute(f"CREATE VIEW theirs AS FROM {read}")
        except duckdb.Error as error:
            raise InvalidSettingsError(
                f"the files of {table.table_key} in {other.full('')} cannot be read together: {error}",
                fix="give a folder in which all Parquet files are tables of Segment's",
            ) from error
        self._connection.execute(f"CREATE VIEW ours AS FROM {name}")
        # Names of columns are the same in small letters and in capitals.
        self._theirs = {column.lower(): DUCKDB.name(column) for column in self._connection.table("theirs").columns}
        missing = [column for column in ("message_id", "received_at") if column not in self._theirs]
        if missing:
            raise InvalidSettingsError(
                f"the files of {table.table_key} in {other.full('')} have no column {' and no column '.join(missing)}",
                fix="they are not Segment's, whose rows all have it: give the folder of Segment's tables",
            )

    def __enter__(self) -> "_Compared":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def hours(self) -> Iterator[Hour]:
        rows = self._connection.execute(
            f"""
            WITH t AS (SELECT message_id AS id, any_value({_HOUR}) AS hour, count(*) AS n FROM theirs GROUP BY 1),
                 o AS (SELECT message_id AS id, any_value({_HOUR}) AS hour, count(*) AS n FROM ours GROUP BY 1)
            SELECT coalesce(t.hour, o.hour) AS hour, coalesce(sum(t.n), 0)::BIGINT, coalesce(sum(o.n), 0)::BIGINT,
                   coalesce(sum(if(t.id IS NULL, t.n, 1)) FILTER (o.n IS NULL), 0)::BIGINT,
                   count(*) FILTER (t.n IS NULL),
                   list(coalesce(t.id, 'a row without message_id') ORDER BY t.id) FILTER (o.n IS NULL)
            FROM t FULL JOIN o ON t.id = o.id GROUP BY 1 ORDER BY 1
            """  # noqa: S608
        ).fetchall()
        for hour, theirs, ours, missing, extra, examples in rows:
            few = tuple((examples or [])[:_EXAMPLES])
            yield Hour(self._table.table_key, str(hour), theirs, ours, missing, extra, few)

    def differences(self) -> Iterator[Difference]:
        ours = self._connection.table("ours")
        types = {name: str(kind) for name, kind in zip(ours.columns, ours.types, strict=True)}
        shared = [
            one.name for one in self._table.schema.columns if one.name in self._theirs and one.name != "message_id"
        ]
        more = [column for column in self._theirs if column not in types]
        unlike = {
            **{column: _unlike(self._theirs[column], DUCKDB.name(column), types[column]) for column in shared},
            **{column: f"t.{self._theirs[column]} IS NOT NULL" for column in more},
        }
        if not unlike:
            return
        counts = ", ".join(f"count(*) FILTER ({one}), min(id) FILTER ({one})" for one in unlike.values())
        of_theirs = "".join(f", any_value({self._theirs[column]}) AS {self._theirs[column]}" for column in unlike)
        of_ours = "".join(f", any_value({DUCKDB.name(column)}) AS {DUCKDB.name(column)}" for column in shared)
        row = self._connection.execute(
            f"""
            WITH t AS (SELECT message_id AS id{of_theirs} FROM theirs GROUP BY 1),
                 o AS (SELECT message_id AS id{of_ours} FROM ours GROUP BY 1)
            SELECT {counts} FROM t JOIN o USING (id)
            """  # noqa: S608 - names are quoted
        ).fetchone()
        for number, column in enumerate(unlike):
            rows, example = (row or ())[2 * number : 2 * number + 2]
            if rows or column in more:
                yield Difference(self._table.table_key, column, rows, str(example or ""), column in more)


_EXACT = {"BIGINT": "DECIMAL(38,6)", "BOOLEAN": "VARCHAR"}  # types in which nothing is rounded to what it is not


def _unlike(theirs: str, ours: str, kind: str) -> str:
    """Whether cells differ. Theirs are brought to our type, so that a number is a number however they wrote it.

    What cannot be brought to it is compared as text: it is no null, as ours is then.
    """
    kind = _EXACT.get(kind, kind)
    cast = f"TRY_CAST(t.{theirs} AS {kind})"
    return (
        f"CASE WHEN {cast} IS NULL THEN CAST(t.{theirs} AS VARCHAR) IS DISTINCT FROM CAST(o.{ours} AS VARCHAR) "
        f"ELSE {cast} IS DISTINCT FROM CAST(o.{ours} AS {kind}) END"
    )


_HOUR = "strftime(TRY_CAST(received_at AS TIMESTAMP), '%Y-%m-%d %H')"
