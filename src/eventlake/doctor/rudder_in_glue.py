"""What `eventlake doctor` tries in Glue for a lake in RudderStack's dialect, whose four rights delete nothing.

So nothing is made that would stay. A right is tried on what Glue refuses for a reason of its own: a table that is there
already, or one in a database that is not there. Rights come first, so that answer shows that the right is given.
"""

import uuid
from typing import Any, NamedTuple

from eventlake.aws.refusals import code_of
from eventlake.catalog.glue_tables import GONE, THERE
from eventlake.doctor.step import SkippedStep
from eventlake.errors import CatalogReadDeniedError, SetupError
from eventlake.reports.words import count
from eventlake.workspace import Lake

_TABLE = f"doctor_{uuid.uuid4().hex}"
_OF_MOST_ACCOUNTS = "default"


class _Database(NamedTuple):
    name: str
    is_there: bool
    table: str | None = None  # one that it has


def fetch_schema(lake: Lake) -> str:
    _databases(lake)
    return count(len(lake.glue.tables()), "table")


def database(lake: Lake) -> str:
    """Only who needs a new database must be able to make one."""
    missing = [one.name for one in _databases(lake) if not one.is_there]
    there = _one_that_is_there(lake)
    if not missing:
        return f"{there} is there; glue:CreateDatabase is not needed and was not tried"
    if there is None:
        raise SkippedStep(
            f"not tried: {missing[0]} is not there, and would stay if it were made for a trial; the first sync makes "
            "it, with glue:CreateDatabase"
        )
    lake.glue.make_database(there)
    return f"{missing[0]} is not there, and the first sync may make it; tried on {there}, which is there"


def create_table(lake: Lake) -> str:
    found = _databases(lake)
    for one in found:
        if not one.is_there:
            return _not_made(lake, GONE, one.name, _TABLE, f"tried in {one.name}, which is not there")
        if one.table:
            return _not_made(lake, THERE, one.name, one.table, f"tried on {one.name}.{one.table}, which is there")
    raise SkippedStep(
        f"not tried: {found[0].name} has no table yet, and one that is made for a trial would stay; "
        "syncs make tables, with glue:CreateTable"
    )


def _not_made(lake: Lake, code: str, database: str, table: str, what: str) -> str:
    if not _is_refused(lake, code, "create_table", DatabaseName=database, TableInput={"Name": table}):
        raise SetupError(
            f"{database}.{table} was made, for Glue changed meanwhile",
            fix="delete this table in Glue, then check again",
        )
    return f"{what}: nothing was made"


def change_table(lake: Lake) -> str:
    name = _databases(lake)[0].name
    _is_refused(lake, GONE, "update_table", DatabaseName=name, TableInput={"Name": _TABLE})
    return f"tried on a table of {name} that is not there: nothing was changed"


def partitions(lake: Lake) -> str:
    keyed = [one.database for one in lake.connections if one.dialect.date_partition.keys]
    if not keyed:
        raise SkippedStep("not needed: no time_window_layout has keys")
    entry = {"Values": ["doctor"]}
    names = {"DatabaseName": keyed[0], "TableName": _TABLE}
    _is_refused(lake, GONE, "batch_create_partition", **names, PartitionInputList=[entry])
    return f"tried on a table of {keyed[0]} that is not there: nothing was made"


def delete_table(_: Lake) -> str:
    raise SkippedStep("not tried: syncs delete no table; `drop`, and replays that change names, need glue:DeleteTable")


def _databases(lake: Lake) -> list[_Database]:
    """Those that the connections of the lake have, or will have."""
    names = sorted({one.database for one in lake.connections})
    if not names:
        raise SkippedStep("needs a source that is connected to this lake")
    return [_look(lake, name) for name in names]


def _one_that_is_there(lake: Lake) -> str | None:
    ours = next((one.name for one in _databases(lake) if one.is_there), None)
    if ours:
        return ours
    try:
        return _OF_MOST_ACCOUNTS if _look(lake, _OF_MOST_ACCOUNTS).is_there else None
    except CatalogReadDeniedError:  # rights are on our databases only
        return None


def _look(lake: Lake, name: str) -> _Database:
    try:
        tables = lake.glue.ask("get_tables", DatabaseName=name, MaxResults=1)["TableList"]
    except Exception as error:
        if code_of(error) != GONE:
            raise
        return _Database(name, is_there=False)
    return _Database(name, is_there=True, table=tables[0]["Name"] if tables else None)


def _is_refused(lake: Lake, code: str, method: str, **asked: Any) -> bool:
    """Ask for what Glue must refuse with a code."""
    try:
        lake.glue.ask(method, **asked)
    except Exception as error:
        if code_of(error) != code:
            raise
        return True
    return False
