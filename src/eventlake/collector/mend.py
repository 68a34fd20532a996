"""What becomes of a damaged file of recent ids: the archive has what it held, so it is made anew from there.

Which messages were in it cannot be known, so all that the collector wrote to the archive in the period is remembered
again. Only then the damaged file gets another name: if this dies halfway, the next attempt begins anew.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from eventlake.archive import layout
from eventlake.collector.log import message_hash
from eventlake.collector.recent import PERIOD, RecentIds
from eventlake.collector.roll import archived_lines
from eventlake.errors import EventLakeError, TransientError
from eventlake.events import instants
from eventlake.lake import ids
from eventlake.lake.ids import Ids
from eventlake.reading import exact_json
from eventlake.reading.exact_json import NotJsonError
from eventlake.storage.base import Storage

AT_ONCE = 1_000_000  # messages in a file that is made
_OURS = re.compile(r"w\d+-\d+-\d+(-again)*\.gz")  # see `log` and `roll`


class Mended(NamedTuple):
    kept_as: Path  # the damaged file
    messages: int  # that were found in the archive
    unread: list[str]  # archive files that could not be read
    problem: str | None = None  # why it could not be made anew


def mend(
    recent: RecentIds, storage: Storage, *, since: int, insist: bool = True, at_once: int = AT_ONCE
) -> list[Mended]:
    """Make damaged files anew, for records that were received after `since`.

    Raises TransientError if the archive is away, unless nobody insists.
    """
    damaged = recent.damaged()
    if not damaged:
        return []
    unread: list[str] = []
    messages, problem = 0, None
    try:
        for number, part in enumerate(_parts(_archived(storage, since - PERIOD, unread), at_once)):
            recent.write(f"rebuilt-{number}", part)
            messages += len(part)
    except EventLakeError as error:
        if insist and isinstance(error, TransientError):
            raise  # an archive that is away cannot be written to either
        problem = error.problem  # to wait longer would not help, and events must go on to the archive
    return [Mended(recent.set_aside(path), messages, unread, problem) for path in damaged]


def _parts(messages: Iterator[tuple[bytes, int]], at_once: int) -> Iterator[Ids]:
    part: list[tuple[bytes, int]] = []
    for message in messages:
        part.append(message)
        if len(part) == at_once:
            yield _ids(part)
            part = []
    if part:
        yield _ids(part)


def _ids(part: list[tuple[bytes, int]]) -> Ids:
    received = np.fromiter((at for _, at in part), "<i8", len(part))
    return Ids({**ids.from_digests([hashed for hashed, _ in part]), "received": received})


def _archived(storage: Storage, oldest: int, unread: list[str]) -> Iterator[tuple[bytes, int]]:
    """Hash and time of the messages that the collector wrote to the archive, from the day of the oldest on."""
    for source_id in layout.sources(storage):
        for file in layout.raw_files(storage, source_id):
            is_late = layout.day_micros(file.path) + layout.DAY_MS * 1000 > oldest
            if is_late and _OURS.fullmatch(file.path.rpartition("/")[2]):
                messages = (_message(line, source_id) for line in _lines(storage, file.path, unread))
                yield from filter(None, messages)


def _lines(storage: Storage, path: str, unread: list[str]) -> list[bytes]:
    try:
        lines = archived_lines(storage.read(path))
    except TransientError:
        raise  # nor could the others be read
    except (EventLakeError, FileNotFoundError):
        lines = None
    if lines is None:
        unread.append(path)
    return lines or []


class _Stamped(msgspec.Struct):
    messageId: str  # noqa: N815 # as it is stored
    receivedAt: str  # noqa: N815


_decode = msgspec.json.Decoder(_Stamped).decode


def _message(line: bytes, source_id: str) -> tuple[bytes, int] | None:
    try:
        if line.count(b'"messageId"') == line.count(b'"receivedAt"') == 1:
            stamped = _decode(line)
        else:
            stamped = msgspec.convert(exact_json.parse(line).value, _Stamped)
    except (msgspec.MsgspecError, UnicodeError, NotJsonError):
        return None  # no event of ours
    received = instants.parse(stamped.receivedAt)
    return (message_hash(source_id, stamped.messageId), received.micros) if received else None
