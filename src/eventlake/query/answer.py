"""The rows that a query gives, or why it gives none."""

import os
import re
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path

import duckdb
import pyarrow as pa

from eventlake.errors import InvalidSettingsError, NotFoundError, TransientError
from eventlake.query import damage, guard
from eventlake.query.fixes import ON_THE_COMMAND_LINE, Fixes
from eventlake.query.named import is_blank, is_show_tables
from eventlake.query.views import Only, Views, all_files, quoted
from eventlake.storage.duck import LakeFiles
from eventlake.storage.local import LocalStorage
from eventlake.workspace import Lake

_SHOW_TABLES = 'SELECT table_schema AS "database", table_name AS "table" FROM information_schema.tables ORDER BY ALL'
_FORMATS = {
    ".csv": "FORMAT csv, HEADER",
    ".parquet": "FORMAT parquet",
    ".json": "FORMAT json, ARRAY",
    ".ndjson": "FORMAT json",
}


def query(
    lake: Lake,
    sql: str,
    *,
    unrestricted: bool = False,
    timeout: float | None = None,
    most_rows: int | None = None,
    memory: str | None = None,
    only: Only = all_files,
    fixes: Fixes = ON_THE_COMMAND_LINE,
) -> pa.Table:
    """The rows that a query gives, of its last statement. Tables are called `<database>.<table>`.

    It reads the lake's tables and works in memory, unless it is unrestricted; see `guard`. `only` chooses among the
    files of each table: to look at some rows, not all of them need be opened.
    """
    with tempfile.TemporaryDirectory(prefix="eventlake-query-") as scratch, duckdb.connect(":memory:") as connection:
        files = LakeFiles(lake.storage)
        connection.register_filesystem(files)
        views = Views(lake, connection, files, only)
        with _errors_explained(views, files, fixes), _ended_in_time(connection, timeout, fixes):
            connection.execute("SET TimeZone = 'UTC'")
            connection.execute("SET temp_directory = ?", [scratch])
            if memory is not None:
                connection.execute("SET memory_limit = ?", [memory])
            connection.execute("SET catalog_error_max_schemas = 0")  # it would propose tables of its own
            statements = connection.extract_statements(sql)
            if not statements:
                raise InvalidSettingsError("there is no query", fix=fixes.empty)
            views.make(sql)
            if not unrestricted:
                guard.check(statements, fixes.refused)
                guard.lock(connection, files)
            *before, last = (_SHOW_TABLES if is_show_tables(one.query) else one.query for one in statements)
            for statement in before:
                connection.execute(statement)
                connection.complete()
            found: duckdb.DuckDBPyRelation | None = connection.sql(_without_end(connection, last))
            if found is not None and most_rows is not None:
                found = found.limit(most_rows)
            if found is None or _gives_no_rows(statements[-1]):
                return pa.table({})
            rows = found.to_arrow_table()
            return rows.rename_columns(named_apart(rows.column_names))


def _gives_no_rows(statement: duckdb.Statement) -> bool:
    """Whether what comes of a statement only says that it was carried out, or counts."""
    is_for_effect = statement.expected_result_type == [duckdb.ExpectedResultType.NOTHING]
    return is_for_effect or statement.type is duckdb.StatementType.CREATE


def _without_end(connection: duckdb.DuckDBPyConnection, statement: str) -> str:
    """A statement without the semicolon at its end and what comments follow it, with which there is no relation."""
    for place in (found.start() for found in re.finditer(";", statement)):
        if is_blank(statement[place + 1 :]):
            with suppress(duckdb.ParserException):  # it is in a text
                if connection.extract_statements(statement[:place]):
                    return statement[:place]
    return statement


def save(lake: Lake, asked: Callable[[], pa.Table], target: Path) -> int:
    """Write rows to a file, in the format of its ending; how many they are. They are asked for if it can be written."""
    how = _FORMATS.get(target.suffix.lower())
    if how is None:
        raise InvalidSettingsError(f"{target} has none of the known endings", fix=f"use one of {', '.join(_FORMATS)}")
    target = target.resolve()
    places = (lake.archive, *(one.storage for one in lake.workspace.lakes.values()))
    if any(isinstance(place, LocalStorage) and target.is_relative_to(place.root) for place in places):
        raise InvalidSettingsError(f"{target} is in the lake, whose files are eventlake's", fix="choose another folder")
    if not target.parent.is_dir():
        raise NotFoundError(f"there is no folder {target.parent}", fix="make it, or choose another")
    rows = asked()
    aside = target.with_name(f".{uuid.uuid4().hex}{target.suffix}")
    try:
        with duckdb.connect(":memory:") as writer:  # knows the rows and the file, and nothing of the query
            writer.execute("SET TimeZone = 'UTC'")
            writer.register("rows", rows)
            writer.execute(f"COPY rows TO {quoted(os.fspath(aside))} ({how})")
        aside.replace(target)
    except duckdb.Error as error:
        raise TransientError(
            f"{target} cannot be written: {error}", fix="check the disk and the folder's rights"
        ) from error
    finally:
        aside.unlink(missing_ok=True)
    return int(rows.num_rows)


@contextmanager
def _ended_in_time(connection: duckdb.DuckDBPyConnection, seconds: float | None, fixes: Fixes) -> Iterator[None]:
    timer = threading.Timer(seconds, connection.interrupt) if seconds else None
    if timer is None:
        yield
        return
    timer.start()
    try:
        yield
    except duckdb.InterruptException as error:
        raise TransientError(f"the query took longer than {seconds:g} seconds", fix=fixes.too_long) from error
    finally:
        timer.cancel()


@contextmanager
def _errors_explained(views: Views, files: LakeFiles, fixes: Fixes) -> Iterator[None]:
    """Let an error of DuckDB say who must act: most are about the query, some about the lake's files."""
    try:
        yield
    except duckdb.Error as error:
        words = _words(error)
        if guard.was_refused(error):
            raise guard.refusal(words, fixes.refused) from error
        if isinstance(error, duckdb.OutOfMemoryException):
            raise TransientError(f"the query failed: {words}", fix="ask for fewer rows or columns at once") from error
        raise damage.explained(error, views, files) or InvalidSettingsError(
            f"the query failed: {words}", fix=_proposal(words, views.names, fixes)
        ) from error


def _proposal(words: str, names: list[str], fixes: Fixes) -> str:
    missing = re.search(r"Table with name (\S+) does not exist", words)
    by_table = {name.partition(".")[2]: name for name in names}
    alike = get_close_matches(missing[1].lower(), by_table, 3) if missing else []
    proposal = f"perhaps {' or '.join(by_table[name] for name in alike)}; " if alike else ""
    return f"{proposal}{fixes.names}"


def _words(error: duckdb.Error) -> str:
    """What DuckDB says, without the parts that are about this program and not about the query."""
    text = str(error)
    if "Traceback" in text or "lake://" in text:
        text = text.partition("\n\nLINE ")[0].strip().splitlines()[-1]
    return text


def named_apart(given: Iterable[str]) -> list[str]:
    """A join may give two columns one name; the second is called `name_1`, as DuckDB does in a subquery."""
    names: list[str] = []
    for name in given:
        count, unique = 0, name
        while unique in names:
            count += 1
            unique = f"{name}_{count}"
        names.append(unique)
    return names
