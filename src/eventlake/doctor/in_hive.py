"""What `eventlake doctor` tries on a Hive metastore."""

import uuid
from contextlib import suppress

from eventlake.catalog.base import SYSTEM_DATABASE, TableChange
from eventlake.doctor.step import SkippedStep
from eventlake.errors import CatalogLimitError, CatalogWriteDeniedError, EventLakeError
from eventlake.reports.words import count
from eventlake.workspace import Lake

_name = f"doctor_{uuid.uuid4().hex}"
_made: dict[str, bool] = {}  # lakes for which the database was made to try it


def reach(lake: Lake) -> str:
    return count(lake.hive.database_count(), "database")


def schema(lake: Lake) -> str:
    return count(len(lake.hive.tables()), "table")


def create(lake: Lake) -> str:
    try:
        _made[lake.name] = lake.hive.make_database(SYSTEM_DATABASE)
    except CatalogWriteDeniedError:
        lake.hive.prepare(SYSTEM_DATABASE)  # who may not make it needs it to be there
    folder = _folder(lake)
    lake.storage.write(f"{folder}/table", b"")  # where there is no folder, a metastore makes one
    trial = TableChange(SYSTEM_DATABASE, _name, "doctor", "doctor", folder, ("day",))
    try:
        for refused in lake.hive.apply([trial], run_id="doctor", at=lake.clock.now()):
            raise CatalogLimitError(refused, fix="see the log of the metastore: new tables are not shown")
    except EventLakeError:
        _tidy_up(lake)
        raise
    return f"{SYSTEM_DATABASE}.{_name}"


def compare(lake: Lake) -> str:
    """Whether two that change a table at once are told apart."""
    if not lake.hive.compares(SYSTEM_DATABASE, _name):
        raise SkippedStep(
            "in this metastore whoever writes last wins, as in all before Hive 2.3.10 and in Hive 3; runs do not meet "
            "there, but who edits a table in the same moment may lose the edit"
        )
    return "whoever comes second is told"


def delete(lake: Lake) -> str:
    lake.hive.drop(SYSTEM_DATABASE, _name)
    _tidy_up(lake)
    return f"{SYSTEM_DATABASE}.{_name}"


def _tidy_up(lake: Lake) -> None:
    lake.storage.delete_folder(_folder(lake))
    if _made.pop(lake.name, False):  # for this trial: a sync makes it again if it needs it
        with suppress(EventLakeError):  # not everybody may
            lake.hive.drop_database(SYSTEM_DATABASE)


def _folder(lake: Lake) -> str:
    return f"{lake.folders.stage}/.{_name}"
