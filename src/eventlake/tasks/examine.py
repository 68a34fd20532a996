"""What `verify` looks at, as tasks: raw files, data files and the index of message ids as they are now."""

import functools
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.archive.reader import Lines, UnreadableFileError, opened, read_lines
from eventlake.archive.whole import WholeArchive
from eventlake.errors import DamagedIdsError
from eventlake.lake import ids
from eventlake.lake.dialects import Dialect
from eventlake.lake.discards import ROW_ID
from eventlake.lake.routes import Route
from eventlake.reading import exact_json
from eventlake.storage.base import Storage

EXAMPLES = 10  # message ids that are named where a partition differs


@dataclass(frozen=True)
class ExamineContext:
    storage: Storage
    archive: WholeArchive
    dialect: Dialect

    @property
    def partition_width(self) -> int:
        return self.dialect.date_partition.width


class Messages(NamedTuple):
    """How many messages, and the checksum of their ids."""

    rows: int = 0
    checksum: int = 0

    def plus(self, other: "Messages") -> "Messages":
        return Messages(self.rows + other.rows, ids.add_checksums(self.checksum, other.checksum))


class FileSeen(NamedTuple):
    """A file as it is now; None where it cannot be read any more."""

    path: str
    digest: str | None
    messages: Messages | None = None
    problem: str | None = None


def examine_raw(context: ExamineContext, paths: Sequence[str]) -> list[FileSeen]:
    return [FileSeen(path, context.archive.digest(path)) for path in paths]


class TableFile(NamedTuple):
    """A data file, and the table whose rows it holds."""

    path: str
    table_key: str


def examine_data(context: ExamineContext, files: Sequence[TableFile]) -> list[FileSeen]:
    seen = []
    for path, table_key in files:
        digest = context.storage.digest(path)
        if digest is None:
            seen.append(FileSeen(path, None))
            continue
        try:
            seen.append(FileSeen(path, digest, _sum(_message_ids(context, path, table_key))))
        except (pa.ArrowInvalid, OSError, KeyError) as error:
            seen.append(FileSeen(path, digest, None, str(error)))
    return seen


class Partition(NamedTuple):
    """The messages of one partition and route in an index file."""

    route: int  # its hash
    number: int
    messages: Messages


class IndexSeen(NamedTuple):
    """A file of the index as it is now."""

    partitions: list[Partition] | None  # None if the file is no use
    problem: str | None = None  # none if it is gone

    @property
    def whole(self) -> Messages | None:
        if self.partitions is None:
            return None
        return functools.reduce(Messages.plus, (part.messages for part in self.partitions), Messages())


def examine_index(context: ExamineContext, path: str) -> IndexSeen:
    try:
        return IndexSeen(_by_partition(context, _index(context.storage, path)))
    except FileNotFoundError:
        return IndexSeen(None)
    except DamagedIdsError as error:
        return IndexSeen(None, error.problem)


def _by_partition(context: ExamineContext, messages: ids.Ids) -> list[Partition]:
    partitions = messages["received"] // context.partition_width
    order = np.lexsort([partitions, messages["route"]])
    messages, partitions = messages.take(order), partitions[order]
    if not len(messages):
        return []
    changes = (messages["route"][1:] != messages["route"][:-1]) | (partitions[1:] != partitions[:-1])
    starts = np.flatnonzero(np.append(True, changes))
    sums = [np.add.reduceat(messages[half], starts).tolist() for half in ("high", "low")]
    rows = np.diff(np.append(starts, len(messages))).tolist()
    keys = (messages["route"][starts].tolist(), partitions[starts].tolist())
    return [
        Partition(route, number, Messages(count, ids.checksum_of(high, low)))
        for route, number, count, high, low in zip(*keys, rows, *sums, strict=True)
    ]


class Suspect(NamedTuple):
    """A partition whose rows are not those of the index."""

    table_key: str
    number: int
    data_files: tuple[str, ...]
    index_files: tuple[str, ...]
    routes: tuple[Route, ...]  # that lead to the table


class Difference(NamedTuple):
    missing: int
    missing_hashes: list[bytes]  # some of them
    extra: int
    extra_ids: list[str]


def difference(context: ExamineContext, suspect: Suspect) -> Difference:
    """Which messages of a partition are in the index only, and which in the data only."""
    routes = np.array([ids.route_hash(route) for route in suspect.routes], "<u8")
    expected: set[bytes] = set()
    for path in suspect.index_files:
        messages = _index(context.storage, path)
        here = np.isin(messages["route"], routes) & (messages["received"] // context.partition_width == suspect.number)
        for high, low in zip(messages["high"][here].tolist(), messages["low"][here].tolist(), strict=True):
            expected.add(high.to_bytes(8, "big") + low.to_bytes(8, "big"))
    found: dict[bytes, str] = {}
    extra = []
    for path in suspect.data_files:
        for message_id in _message_ids(context, path, suspect.table_key):
            digest = ids.message_hash(message_id)
            if digest not in expected or digest in found:
                extra.append(message_id)
            found[digest] = message_id
    missing = sorted(expected - found.keys())
    return Difference(len(missing), missing[:EXAMPLES], len(extra), sorted(extra)[:EXAMPLES])


class Nameless(NamedTuple):
    """Messages known by their hashes only, and raw files that may hold them."""

    hashes: frozenset[bytes]
    raw_files: tuple[str, ...]


def names_of(context: ExamineContext, nameless: Nameless) -> dict[bytes, str]:
    """The message ids that the raw archive has for some hashes."""
    names: dict[bytes, str] = {}
    for path in nameless.raw_files:
        with suppress(UnreadableFileError), opened(context.archive, path) as raw:
            for block in read_lines(raw):
                for line in block.lines if isinstance(block, Lines) else ():
                    message_id = _sent_id(line)
                    if message_id is not None and (digest := ids.message_hash(message_id)) in nameless.hashes:
                        names[digest] = message_id
    return names


def _sent_id(line: bytes) -> str | None:
    try:
        event = exact_json.parse(line).value
    except exact_json.NotJsonError:
        return None
    sent = event.get("messageId") if isinstance(event, dict) else None
    return sent if isinstance(sent, str) else None


def _index(storage: Storage, path: str) -> ids.Ids:
    with ids.opened(storage, path) as file:
        part = file.read(ids.ALL, ids.INDEX_FIELDS)
        return ids.Ids({name: values.copy() for name, values in part.arrays.items()})


def _message_ids(context: ExamineContext, path: str, table_key: str) -> list[str]:
    """The ids of the messages whose rows these are; of discarded values, the ids of the rows that they are from."""
    is_of_values = table_key == context.dialect.discards
    column = ROW_ID if is_of_values else context.dialect.columns(table_key).message_column
    with context.storage.open_input(path) as source:
        found: list[Any] = pq.read_table(source, columns=[column]).column(column).to_pylist()
    return found


def _sum(message_ids: list[str]) -> Messages:
    if not message_ids:
        return Messages()
    messages = ids.Ids(ids.from_digests([ids.message_hash(message_id) for message_id in message_ids]))
    return Messages(len(messages), ids.checksum(messages))
