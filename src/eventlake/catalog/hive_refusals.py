"""What an answer of a Hive metastore that refuses means, and who must act."""

import re

from pymetastore.hive_metastore import ttypes as hive
from thrift.Thrift import TApplicationException

from eventlake.errors import (
    CatalogDeleteDeniedError,
    CatalogLimitError,
    CatalogReadDeniedError,
    CatalogWriteDeniedError,
    EventLakeError,
    InvalidSettingsError,
    SetupError,
    TransientError,
)

_UNKNOWN_FILES = re.compile(r"No FileSystem for scheme|ClassNotFoundException.*\bfs\b")
_NO_ROOM = re.compile(r"maximum length of|^(Add|Put|Update|Insert).*(request|object).* failed")
_DENIED = re.compile(r"permission denied|not authori[sz]ed|AccessControlException|unable to create one", re.IGNORECASE)
_SEE_LOG = "see the log of the metastore"


def is_overtaken(error: Exception) -> bool:
    """Whether a table is not changed because somebody else changed it meanwhile."""
    return isinstance(error, hive.MetaException) and str(error.message).startswith("The table has been modified")


def explained(error: Exception, method: str, what: str) -> EventLakeError:
    """The error to raise instead."""
    told = str(getattr(error, "message", None) or error)
    problem = f"could not {what}: {told}"
    if isinstance(error, TApplicationException) and error.type == TApplicationException.UNKNOWN_METHOD:
        return SetupError(problem, fix="use a metastore of Hive 2.3 or newer")
    if _UNKNOWN_FILES.search(told):
        return InvalidSettingsError(
            problem,
            fix="the metastore itself looks at where tables are: give it the library for this kind of storage, or set "
            "catalog.location_scheme to one that it knows; see docs/hive.md",
        )
    if _DENIED.search(told):
        kind = CatalogDeleteDeniedError if method.startswith("drop") else CatalogWriteDeniedError
        return (CatalogReadDeniedError if method.startswith("get") else kind)(
            problem, fix="give the metastore, or the user it acts for, the right to do this; see docs/hive.md"
        )
    if _NO_ROOM.search(told) or isinstance(error, hive.InvalidObjectException | hive.InvalidOperationException):
        return CatalogLimitError(problem, fix=f"{_SEE_LOG}: it, or its database, does not take this")
    if isinstance(error, hive.MetaException | TApplicationException):
        return TransientError(problem, fix=f"{_SEE_LOG}, then run it again: nothing is lost")
    return SetupError(problem, fix=_SEE_LOG)
