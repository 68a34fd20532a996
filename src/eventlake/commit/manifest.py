"""Manifests: all that a run does to the lake, as one file that is written before any of it is done.

Manifests stay in the lake, and later versions read them: they finish a run that died, and tell a database that was
lost what it knew.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from eventlake.catalog.base import TableChange
from eventlake.control.connections import Connection
from eventlake.control.ledger import Entry
from eventlake.errors import ConfigurationError, DamagedError
from eventlake.workspace import Lake

VERSION = 4
"""Of the form. The first had neither a version nor a connection; in the first two, files did not stand by table, and
nothing told on top of which run a manifest was made; in the first three, a table's partitions were all that it has."""

Form = TypeVar("Form")


class Noted(msgspec.Struct):
    """A connection as a manifest notes it, for a database that has to be built anew from the lake."""

    slug: str
    name: str
    settings: dict[str, Any]

    @classmethod
    def of(cls, connection: Connection) -> "Noted":
        source = connection.source
        return cls(source.slug, source.name, connection.settings.model_dump(mode="json"))


class Manifest(msgspec.Struct):
    """All that a run does to the lake."""

    entry: Entry
    moves: list[tuple[str, str]]  # from the staging folder to the final name
    tables: list[TableChange]
    dropped_tables: list[tuple[str, str]] = []
    connection: Noted | None = None
    version: int = VERSION


def path_of(lake: Lake, source_id: str, run_id: str) -> str:
    return f"{lake.folders.commits}/source={source_id}/{run_id}.json"


def run_of(path: str) -> str:
    """The id of the run whose manifest this is."""
    return path.rpartition("/")[2].removesuffix(".json")


def manifest_paths(lake: Lake, source_id: str) -> list[str]:
    """Where the manifests of a source are, in order of the runs' ids."""
    files = (file.path for file in lake.storage.files(f"{lake.folders.commits}/source={source_id}"))
    return sorted(path for path in files if run_of(path).isdigit())


def manifests(lake: Lake, source_id: str) -> Iterator[Manifest]:
    """What the runs of a source did to the lake, in the order in which they did it."""
    paths = manifest_paths(lake, source_id)
    for path in in_order(paths, bases_of(lake, paths)):
        yield read_manifest(lake, path)


def bases_of(lake: Lake, paths: Iterable[str]) -> dict[str, str | None]:
    """For each run with a manifest, the one on top of which it was made; None if its manifest does not tell."""
    return {run_of(path): part_of_manifest(lake, path, _Base).entry.base for path in paths}


def in_order(paths: Sequence[str], bases: Mapping[str, str | None]) -> list[str]:
    """Manifests in the order of their commits: each tells after which it came, if it is not the order of their ids.

    A replay begins before syncs that are committed while it goes on.
    """
    after: dict[str | None, list[str]] = {}
    for path in paths:
        base = bases[run_of(path)]
        after.setdefault(base if base in bases else None, []).append(path)
    ordered, next_ones = [], list(reversed(after.get(None, [])))
    while next_ones:
        path = next_ones.pop()
        ordered.append(path)
        next_ones += reversed(after.get(run_of(path), []))
    return ordered


class _Base(msgspec.Struct):
    """As much of a manifest as tells after which it came."""

    class Entry(msgspec.Struct):
        base: str | None = None

    entry: Entry


class _Versioned(msgspec.Struct):
    version: int = 1


def read_manifest(lake: Lake, path: str) -> Manifest:
    content = lake.storage.read(path)
    version = _decoded(lake, path, content, _Versioned).version
    if version > VERSION:
        raise ConfigurationError(
            f"{lake.storage.full(path)} was written by a newer version of eventlake: its form is {version}, and this "
            f"version knows {VERSION}",
            fix="install that version or a newer one: pip install --upgrade eventlake",
        )
    if version < VERSION:
        content = msgspec.json.encode(_as_written_today(_decoded(lake, path, content, dict)))
    return _decoded(lake, path, content, Manifest)


def part_of_manifest(lake: Lake, path: str, kind: type[Form]) -> Form:
    """As much of a manifest as somebody wants to know, whatever its version."""
    return _decoded(lake, path, lake.storage.read(path), kind)


def _decoded(lake: Lake, path: str, content: bytes, kind: type[Form]) -> Form:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise DamagedError(
            f"the manifest {lake.storage.full(path)} cannot be read: {error}",
            fix="put it back from a backup or an older version of the object",
        ) from error


_BY_TABLE = 3  # the first version in which files stand by table
_TABLE_OF_FILE = re.compile(r".*/segment_type=(?P<key>[^/]+)/.*")
_KEY_IN_DATA_FILE = 2  # position
_KEY_OF_FOLDER = re.compile(r"([^/=]+)=([^/]+)(?=/)")


def _as_written_today(old: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest of an older version in the form of today."""
    by_table = old if old.get("version", 1) >= _BY_TABLE else _by_table(old)
    removed = {files["table_key"]: files["removed"] for files in by_table["entry"]["files"]}
    tables = [{**change, "forgotten": _forgotten(change, removed)} for change in by_table["tables"]]
    return {**by_table, "tables": tables, "version": VERSION}


def _forgotten(change: Mapping[str, Any], removed: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The partitions of files that a run took away, if it named all that the table had afterwards."""
    keys = change["partition_keys"]
    if not change.get("anew") or not keys:
        return []
    folders = [dict(_KEY_OF_FOLDER.findall(path)) for path in removed.get(change["table_key"], ())]
    before = {tuple(values[key] for key in keys) for values in folders if values.keys() >= set(keys)}
    return sorted(map(list, before - set(map(tuple, change["partitions"]))))


def _by_table(old: Mapping[str, Any]) -> dict[str, Any]:
    entry = dict(old["entry"])
    files: dict[str, dict[str, list[Any]]] = {}

    def of_table(key: str) -> dict[str, list[Any]]:
        return files.setdefault(key, {"added": [], "removed": []})

    for file in entry.pop("data_files", []):
        of_table(file[_KEY_IN_DATA_FILE])["added"].append(file)
    for path in entry.pop("removed_data_files", []):
        found = _TABLE_OF_FILE.fullmatch(path)
        of_table(found["key"] if found else "")["removed"].append(path)
    entry["files"] = [{"table_key": key, **of_key} for key, of_key in files.items()]
    tables = [{**change, "table_key": change["segment_type"]} for change in old["tables"]]
    return {**old, "entry": entry, "tables": tables}
