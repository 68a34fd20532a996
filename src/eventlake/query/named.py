"""Which tables a query names. Pure: DuckDB opens the files of every view that is made, so only those are made."""

import re
from collections.abc import Collection, Iterator

_NAME = r'(?:"(?:[^"]|"")*"|\w+)'
_PAIR = re.compile(rf"(?=(?<!\w)({_NAME})\s*\.\s*({_NAME}))")
_USED = re.compile(rf"\buse\s+(?:{_NAME}\s*\.\s*)?({_NAME})", re.IGNORECASE)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
# Questions about tables in general.
_GENERAL = re.compile(
    # `desc` begins a statement; behind a name it is how rows are ordered, for which not all tables need be there.
    r"(?:^|[;(])\s*desc\b|\b(show|describe|pragma|information_schema|duckdb_\w+|pg_\w+|sqlite_master|query|query_table)\b",
    re.IGNORECASE,
)
_SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)

Table = tuple[str, str]
"""A database and a table."""


def named(sql: str, tables: Collection[Table]) -> set[Table]:
    """The tables that a query may be about: at least those that it is about, wherever their names stand."""
    return set(_found(sql, set(tables)))


def _found(sql: str, tables: set[Table]) -> Iterator[Table]:
    # What looks like a comment may be part of a text, so both readings count.
    for text in (sql, _COMMENT.sub(" ", sql)):
        yield from tables & {(_plain(a), _plain(b)) for a, b in _PAIR.findall(text)}
        used = {_plain(name) for name in _USED.findall(text)}
        if used:
            words = {_plain(word) for word in re.findall(_NAME, text)}
            yield from ((database, name) for database, name in tables if database in used and name in words)


def asks_in_general(sql: str) -> bool:
    """Whether a query asks which tables there are."""
    return any(_GENERAL.search(text) for text in (sql, _COMMENT.sub(" ", sql)))


def is_show_tables(statement: str) -> bool:
    return bool(_SHOW_TABLES.fullmatch(_COMMENT.sub(" ", statement)))


def is_blank(text: str) -> bool:
    """Whether there is nothing but comments and semicolons."""
    return not _COMMENT.sub(" ", text).strip("; \t\r\n")


def _plain(name: str) -> str:
    """A name as the catalog has it; to DuckDB, capital letters are the same as small ones, quoted or not."""
    return (name[1:-1].replace('""', '"') if name.startswith('"') else name).lower()
