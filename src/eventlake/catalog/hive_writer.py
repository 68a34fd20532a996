"""How a table of a Hive metastore is read and written, so that nothing is lost if others write to it as well.

A table is written on the condition that it is still as it was read, by the time of its last change. If somebody else
was quicker, it is read again. Metastores of Hive 2.3.10 and of Hive 4 keep that condition; in others the last one wins.
"""

import random
import time
from collections.abc import Callable
from copy import copy
from typing import Any

from pymetastore.hive_metastore import ttypes as hive

from eventlake.catalog import described, hive_tables
from eventlake.catalog.described import Described
from eventlake.catalog.hive_client import Metastore
from eventlake.catalog.hive_refusals import explained, is_overtaken
from eventlake.errors import TransientError

TITLE = "the Hive metastore"
GONE, THERE = hive.NoSuchObjectException, hive.AlreadyExistsException
UNCOUNTED = {"DO_NOT_UPDATE_STATS": "true"}  # else it lists the files of whatever is changed
_ATTEMPTS = 20  # to change a table that others change as well

TableName = tuple[str, str]
"""Database and table."""


class HiveWriter:
    """The tables of a metastore; places in buckets are written with a `scheme`."""

    def __init__(self, metastore: Metastore, scheme: str) -> None:
        self._metastore = metastore
        self.scheme = scheme

    def ask(self, method: str, *asked: Any, of: str | TableName, expecting: tuple[type[Exception], ...] = ()) -> Any:
        """Carry out one call, which is about a database or a table."""
        about = of if isinstance(of, str) else ".".join(of)
        return self._metastore.ask(method, f"{method} {about} in {TITLE}", *asked, expecting=expecting)

    def table(self, place: TableName) -> Any | None:
        try:
            return self.ask("get_table_req", hive.GetTableRequest(*place), of=place, expecting=(GONE,)).table
        except GONE:
            return None

    def make_database(self, database: str) -> bool:
        """Make a database where the metastore makes all of them. Whether there was none before."""
        try:
            self.ask("create_database", hive.Database(database, parameters={}), of=database, expecting=(THERE,))
        except THERE:
            return False
        return True

    def write(
        self, place: TableName, change: Callable[[Described | None], Described], instead_of: Any | None = None
    ) -> Described:
        """Make or change a table; what it is now. One that is made `instead_of` another keeps what people added."""
        for attempt in range(_ATTEMPTS):
            time.sleep(random.random() * 0.05 * attempt)  # noqa: S311 - so that the same do not meet again
            found = self.table(place)
            if found is None and instead_of:
                new = described.begun(change(hive_tables.as_told(instead_of)))
            else:
                new = change(hive_tables.as_told(found) if found else None)
            table = hive_tables.as_table(new, place[0], found or instead_of, scheme=self.scheme)
            if table == found or (self._alter(place, found, table) if found else self._create(place, table)):
                return new
        raise TransientError(
            f"{'.'.join(place)} is changed by others all the time", fix=f"see who writes to it in {TITLE}; run it again"
        )

    def _create(self, place: TableName, table: Any) -> bool:
        """Make a table, and its database if that is not there; whether there was no such table meanwhile."""
        no_database = hive.InvalidObjectException
        try:
            try:
                self.ask("create_table", table, of=place, expecting=(THERE, no_database))
            except no_database:
                self.make_database(place[0])
                self.ask("create_table", table, of=place, expecting=(THERE,))
        except THERE:
            return False
        return True

    def _alter(self, place: TableName, found: Any, table: Any) -> bool:
        """Change a table, if it is still as it was found; whether it was."""
        now = int(time.time())
        new = hive_tables.newer(table, found, now)
        shorter = hive_tables.cut(new, found)
        if shorter is None:
            return self._replaced(place, found, new)
        try:
            return self._replaced(place, found, new, or_refused=True)
        except hive.InvalidOperationException:  # the types do not go together: it takes two steps
            whole = hive_tables.newer(new, shorter, now)
            return self._replaced(place, found, shorter) and self._replaced(place, shorter, whole)

    def _replaced(self, place: TableName, found: Any, table: Any, *, or_refused: bool = False) -> bool:
        method = "alter_table_with_environment_context"
        condition = {
            "expected_parameter_key": hive_tables.VERSION,
            "expected_parameter_value": found.parameters.get(hive_tables.VERSION, ""),
        }
        expecting = (hive.MetaException, *([hive.InvalidOperationException] if or_refused else []))
        context = hive.EnvironmentContext({**UNCOUNTED, **condition})
        try:
            self.ask(method, *place, table, context, of=place, expecting=expecting)
        except hive.MetaException as error:
            if is_overtaken(error):
                return False
            raise explained(error, method, f"change {'.'.join(place)} in {TITLE}") from error
        return True

    def compares(self, place: TableName) -> bool:
        """Whether the metastore keeps the condition under which a table is changed."""
        found: Any = self.table(place)
        older = copy(found)
        older.parameters = {**found.parameters, hive_tables.VERSION: "0"}
        return not self._replaced(place, older, hive_tables.newer(found, found, int(time.time())))
