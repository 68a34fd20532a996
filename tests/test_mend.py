"""Files of recent ids that are damaged: noticed, made anew from the archive, told; and events go on to the archive."""

import errno
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collectors import Collector
from eventlake.collector import log
from eventlake.collector.log import Log, Record
from eventlake.collector.mend import mend
from eventlake.collector.recent import PERIOD, RecentIds
from eventlake.collector.roll import roll
from eventlake.errors import TransientError
from eventlake.events.instants import to_milliseconds
from eventlake.lake.ids import DamageError
from eventlake.storage.local import LocalStorage
from test_write_order import wait_until

NOW = 1_794_800_000_000_000
Damage = Callable[[bytes], bytes]

DAMAGES: dict[str, Damage] = {
    "cut in the middle": lambda content: content[: len(content) // 2],
    "cut by one byte": lambda content: content[:-1],
    "empty": lambda _content: b"",
    "one byte flipped": lambda content: content[:-20] + bytes([content[-20] ^ 1]) + content[-19:],
    "as if it had no checksums": lambda content: b"EVLIDS01" + content[8:],
    "something else": lambda _content: b"no ids at all, but long enough to be some",
}


def record(name: str, *, at: int = NOW, source: str = "src1", **more: Any) -> Record:
    event = {"messageId": name, "receivedAt": to_milliseconds(at), **more}
    return Record(source, at, log.message_hash(source, name), json.dumps(event).encode())


class Place:
    """Logs, archive and recent ids in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.storage = LocalStorage(str(folder / "lake"))
        (folder / "logs").mkdir()

    @property
    def recent(self) -> RecentIds:
        """As after a restart."""
        return RecentIds(self.folder / "recent")

    def take(self, *records: Record, storage: LocalStorage | None = None, insist: bool = True) -> list[str]:
        """Bring records to the archive as the supervisor does; which were no copies."""
        made = Log(self.folder / "logs", "w0", max_bytes=1 << 20, max_seconds=60)
        made.append([one.line() for one in records])
        made.hand_on(all_of_it=True)
        [path] = log.sealed(self.folder / "logs")
        recent = self.recent
        mend(recent, storage or self.storage, since=min(r.received for r in records), insist=insist, at_once=2)
        files = roll(path, self.storage, recent).files
        lines = [gzip.decompress((self.folder / "lake" / file).read_bytes()).splitlines() for file in files]
        return sorted(json.loads(line)["messageId"] for part in lines for line in part)

    def damage(self, how: Damage) -> bytes:
        [path] = (self.folder / "recent").glob("*.ids")
        content = how(path.read_bytes())
        path.write_bytes(content)
        return content

    def set_aside(self) -> list[bytes]:
        return [path.read_bytes() for path in (self.folder / "recent").glob("*.damaged")]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    assert made.take(*(record(name) for name in "abcde")) == list("abcde")
    return made


@pytest.mark.parametrize("how", DAMAGES.values(), ids=DAMAGES)
def test_damaged_ids_are_made_anew_from_the_archive_and_the_file_is_kept(place: Place, how: Damage) -> None:
    damaged = place.damage(how)
    assert place.take(*(record(name, at=NOW + 1) for name in "aefd"), record("a", source="src2")) == ["a", "f"]
    assert place.set_aside() == [damaged]
    assert place.take(record("b", at=NOW + PERIOD - 10_000), record("f", at=NOW + 2)) == []


def test_any_flipped_byte_is_noticed(place: Place) -> None:
    [path] = (place.folder / "recent").glob("*.ids")
    content = path.read_bytes()
    known = place.recent
    assert known.damaged() == []
    for at in [*range(40), *range(40, len(content), 17), *range(len(content) - 120, len(content))]:
        path.write_bytes(content[:at] + bytes([content[at] ^ 3]) + content[at + 1 :])
        os.utime(path, ns=(at, at))  # another time, as any writing but this one's has
        assert known.damaged() == [path]
    with pytest.raises(DamageError):
        known.new([record("a")])
    path.write_bytes(content[:3])
    with pytest.raises(DamageError, match=r"^it does not begin as one with checksums$"):
        known.new([record("a")])
    path.write_bytes(content)
    assert known.damaged() == []


def test_what_is_made_anew_goes_back_a_day_from_what_waits_and_is_not_of_other_files(place: Place) -> None:
    day_before, older = record("day before", at=NOW - PERIOD + 2_000), record("older", at=NOW - 2 * PERIOD)
    for one, name in ((day_before, "w0-7-0.gz"), (older, "w0-8-0.gz"), (record("imported"), "0123abcd.gz")):
        folder = f"segment-logs/src1/{one.received // 86_400_000_000 * 86_400_000}"
        place.storage.write(f"{folder}/{name}", gzip.compress(one.event + b"\n"))
    place.damage(DAMAGES["empty"])
    again = [record(name) for name in ("day before", "older", "imported", "a")]
    assert place.take(*again) == ["imported", "older"]


def test_odd_lines_and_broken_files_of_the_archive_do_not_stop_it(place: Place) -> None:
    day = f"segment-logs/src1/{NOW // 86_400_000_000 * 86_400_000}"
    at = b'"receivedAt":"%s"' % to_milliseconds(NOW).encode()
    twice = [
        b'{"messageId":"twice",%s,"messageId":"other"}' % at,
        b'{"messageId":"both twice",%s,"messageId":"another",%s}' % (at, at),
    ]
    odd = [b'{"a":1}', b"no json", b'{"messageId":"never","receivedAt":"no time"}']
    place.storage.write(f"{day}/w0-1-0.gz", gzip.compress(b"\n".join([*odd, *twice])))
    place.storage.write(f"{day}/w0-2-0.gz", b"no gzip")
    place.damage(DAMAGES["empty"])
    recent = place.recent
    [mended] = mend(recent, place.storage, since=NOW, at_once=2)
    assert len(list((place.folder / "recent").glob("rebuilt-*.ids"))) == 4  # no more is held at once
    assert (mended.messages, mended.unread, mended.problem) == (7, [f"{day}/w0-2-0.gz"], None)
    unknown = [record(name) for name in ("other", "another", "never")]
    assert recent.new([record("twice"), record("both twice"), *unknown]) == unknown


class Unreadable(LocalStorage):
    """An archive that cannot be listed."""

    fault = errno.EACCES
    refused: tuple[str, ...] = ("folders", "_listed")

    def attempt(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if method.__name__ in self.refused:
            raise OSError(self.fault, os.strerror(self.fault))
        return super().attempt(method, *args, **kwargs)


class Away(Unreadable):
    fault = errno.EIO


class UnreadableFiles(Unreadable):
    refused = ("read",)


class FilesAway(Away):
    refused = ("read",)


def test_archive_files_that_may_not_be_read_are_told(place: Place) -> None:
    place.damage(DAMAGES["empty"])
    [mended] = mend(place.recent, UnreadableFiles(str(place.folder / "lake")), since=NOW)
    assert (mended.messages, mended.problem) == (0, None)
    assert mended.unread == [file.path for file in place.storage.files("segment-logs")]


def test_where_the_archive_may_not_be_read_the_file_is_set_aside_and_archiving_goes_on(place: Place) -> None:
    damaged = place.damage(DAMAGES["cut in the middle"])
    unreadable = Unreadable(str(place.folder / "lake"))
    assert place.take(record("a"), record("f"), storage=unreadable) == ["a", "f"]  # a once more: no ids, no copies
    assert place.set_aside() == [damaged]


@pytest.mark.parametrize("kind", [Away, FilesAway])
def test_while_the_archive_is_away_ids_wait_to_be_made_anew_but_not_for_ever(place: Place, kind: type[Away]) -> None:
    damaged = place.damage(DAMAGES["cut in the middle"])
    away = kind(str(place.folder / "lake"))
    with pytest.raises(TransientError):
        mend(place.recent, away, since=NOW)
    assert place.set_aside() == []
    [mended] = mend(place.recent, away, since=NOW, insist=False)
    assert mended.problem is not None
    assert "Input/output error" in mended.problem
    assert mended.kept_as.read_bytes() == damaged


def test_a_running_collector_notices_tells_and_goes_on(tmp_path: Path) -> None:
    def post(name: str) -> None:
        assert collector.post("/v1/track", {"userId": "u", "event": "x", "messageId": name}).status == 200

    with Collector(tmp_path) as collector:
        assert collector.get("/health").json == {"status": "ok"}
        post("m1")
        recent = tmp_path / "collector" / "recent"
        wait_until(lambda: bool(list(recent.glob("*.ids"))) and not list((tmp_path / "collector/logs").iterdir()))
        [path] = recent.glob("*.ids")
        path.write_bytes(path.read_bytes()[:100])
        post("m1")
        post("m2")
        wait_until(lambda: len(collector.lines()) == 2)
        health = collector.get("/health")
        assert (health.status, health.json["status"]) == (200, "degraded")
        [kept] = recent.glob("*.damaged")
        assert health.json["problems"] == [f"recent/{kept.name} was damaged; remove it when you have seen it"]
        metrics = collector.get("/metrics").body.decode()
        assert 'eventlake_collector_damaged_files{kind="recent_ids"} 1\n' in metrics
        kept.unlink()
        assert collector.get("/health").json == {"status": "ok"}
        said = collector.stop()
        assert sorted(sent["messageId"] for sent in collector.archived()) == ["m1", "m2"]
    assert f"a file of recent ids is damaged; it is kept as {kept.name}, and made anew from the archive" in said
