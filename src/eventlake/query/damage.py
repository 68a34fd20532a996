"""Which file of the lake made a query fail."""

import re

import duckdb

from eventlake.errors import DamagedError, EventLakeError
from eventlake.query.views import Views
from eventlake.storage.duck import LakeFiles

# Errors that DuckDB raises about a query or its values, never about a file.
_OF_THE_QUERY = (
    duckdb.ProgrammingError,
    duckdb.ConversionException,
    duckdb.OutOfRangeException,
    duckdb.ConstraintException,
    duckdb.TypeMismatchException,
)


def explained(error: duckdb.Error, views: Views, files: LakeFiles) -> EventLakeError | None:
    """An error that names the broken file, or what its storage said; None if no file is to blame."""
    for path, failure in files.failures.items():
        if isinstance(failure, EventLakeError):
            return failure
        return _broken(views, path, "it is gone" if isinstance(failure, FileNotFoundError) else str(failure))
    # The last part of the message shows the statement, in which all files are named.
    words = str(error).partition("\n\nLINE ")[0]
    for path in re.findall(r"lake://([^'\"\s]+)", words):
        if path in views.files:
            return _broken(views, path, words.strip().splitlines()[-1])
    if isinstance(error, _OF_THE_QUERY):
        return None
    for path, digest in views.files.items():  # not every message names the file
        if digest and views.lake.storage.digest(path) != digest:
            return _broken(views, path, words.strip().splitlines()[-1])
    return None


def _broken(views: Views, path: str, why: str) -> EventLakeError:
    source = next((one.name for one in views.lake.connections if path.startswith(f"{one.dialect.data_folder}/")), "")
    return DamagedError(
        f"{views.lake.storage.full(path)} is broken: {why.replace('lake://', '')}",
        fix=f"`eventlake verify {source} --repair` writes it anew from the raw archive",
    )
