"""What a query may do: read the lake's tables, and work with them in memory.

DuckDB can read and write every file that its process can, fetch from the network and load code. Queries come from
people, scripts and tools that should get rows and nothing else, so each of these is switched off, and then the switches
themselves. The lake's files are read through `LakeFiles`, which cannot write.
"""

from collections.abc import Sequence

import duckdb

from eventlake.errors import InvalidSettingsError
from eventlake.storage.duck import LakeFiles

_OFF = (
    "python_enable_replacements",  # a name in a query would find variables of this program
    "autoinstall_known_extensions",
    "autoload_known_extensions",
    "allow_community_extensions",
    "allow_persistent_secrets",
    "enable_external_access",
)
_OPEN = ("schema", "search_path", "TimeZone", "Calendar")  # USE, and how times are shown

_TYPES = duckdb.StatementType
_READS = {_TYPES.SELECT, _TYPES.EXPLAIN, _TYPES.MULTI, _TYPES.RELATION, _TYPES.PRAGMA}  # MULTI is PIVOT
_IN_MEMORY = {
    *(_TYPES.CREATE, _TYPES.CREATE_FUNC, _TYPES.ALTER, _TYPES.DROP, _TYPES.SET, _TYPES.VARIABLE_SET),
    *(_TYPES.INSERT, _TYPES.UPDATE, _TYPES.DELETE, _TYPES.MERGE_INTO, _TYPES.TRANSACTION),
}


def lock(connection: duckdb.DuckDBPyConnection, files: LakeFiles) -> None:
    """From here on the connection reads the lake's files that are known, and nothing else of the machine."""
    # Exact paths: of a folder, DuckDB would let pass whatever begins like it, also in capital letters.
    connection.execute("SET allowed_paths = ?", [files.addresses])
    for setting in _OFF:
        connection.execute(f"SET {setting} = false")
    connection.execute("SET allowed_configs = ?", [list(_OPEN)])
    connection.execute("SET lock_configuration = true")


def check(statements: Sequence[duckdb.Statement], fix: str) -> None:
    """Refuse, with a sentence, the kinds of statements that `lock` would make fail one by one."""
    for statement in statements:
        if statement.type not in _READS | _IN_MEMORY:
            raise refusal(f"{statement.type.name} is refused", fix)


def refusal(problem: str, fix: str) -> InvalidSettingsError:
    return InvalidSettingsError(f"a query only reads the tables of the lake: {problem}", fix=fix)


def was_refused(error: duckdb.Error) -> bool:
    """Whether the lock made a statement fail."""
    return isinstance(error, duckdb.PermissionException) or any(
        words in str(error) for words in ("configuration has been locked", "queries only read", "is no file of a table")
    )
