"""The raw archive: reading files of lines, whatever they hold, and putting files in."""

import gzip
import io
import json
import random
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.archive import layout
from eventlake.archive.importer import Imported, find_raw_files, import_file
from eventlake.archive.reader import Digested, Lines, LongLine, ReadSizes, UnreadableFileError, opened, read_lines
from eventlake.archive.whole import WholeArchive
from eventlake.errors import DownloadDeniedError, EventLakeError, InvalidSettingsError, PermissionMissingError
from eventlake.events import instants
from eventlake.storage.base import Storage, new_digest
from eventlake.storage.local import LocalStorage

DAY = 86_400_000_000
LINES = st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b" ")), max_size=30)


def numbered(content: bytes, sizes: ReadSizes | None = None) -> list[tuple[int, bytes]]:
    """All lines of a file with their numbers."""
    lines: list[tuple[int, bytes]] = []
    for block in read_lines(io.BytesIO(content), sizes or ReadSizes()):
        assert isinstance(block, Lines)
        assert block.lines
        lines += zip(block.numbers.tolist(), block.lines, strict=True)
    return lines


def read(content: bytes) -> list[bytes]:
    return [line for _, line in numbered(content)]


def filled(content: bytes) -> list[tuple[int, bytes]]:
    """The lines of a text that are not blank, with their numbers."""
    return [(number, line) for number, line in enumerate(content.split(b"\n"), 1) if line.strip()]


def is_plain(content: bytes) -> bool:
    return not content.startswith(b"\x1f\x8b")


def tiny(block: int) -> ReadSizes:
    """Small limits, so that small files reach them."""
    return ReadSizes(block=block, longest_line=1000, sample=10)


# Reading


@given(LINES, st.booleans(), st.integers(2, 50))
def test_lines_come_back_with_their_numbers_from_plain_and_gzip_files(
    lines: list[bytes], ends_in_newline: bool, block: int
) -> None:
    content = b"\n".join(lines) + b"\n" * ends_in_newline
    sizes = tiny(block)
    assert numbered(gzip.compress(content), sizes) == filled(content)
    if is_plain(content):
        assert numbered(content, sizes) == filled(content)


@given(
    st.lists(
        st.sampled_from([b"", b" ", b"\r", b"\t \v\f", b"x", b"\x00", b"\x1c", b"\xc2\x85", b"y" * 70]), max_size=60
    ),
    st.integers(2, 200),
)
@example([b""] * 50 + [b"x"] + [b""] * 50, 30)
@example([b"x", b""], 200)
@example([b"", b"x"], 200)
def test_blank_lines_are_left_out_and_counted_wherever_they_stand(lines: list[bytes], block: int) -> None:
    content = b"\n".join(lines)
    assert numbered(gzip.compress(content), tiny(block)) == filled(content)


@pytest.mark.parametrize("blank", [b"", b"\r", b"  ", b" " * 100], ids=["empty", "cr", "spaces", "many spaces"])
def test_a_hundred_megabytes_of_blank_lines_cost_no_more_than_a_copy_of_them(blank: bytes) -> None:
    """They fit into a tenth of a megabyte of gzip: who sends them must not keep a sync busy."""
    unit = (blank + b"\n") * 1000
    content = gzip.compress(unit * (100_000_000 // len(unit)) + b"last")
    before = time.process_time()
    (last,) = numbered(content)
    seconds = time.process_time() - before
    assert last == (100_000_000 // len(unit) * 1000 + 1, b"last")
    assert seconds < 5  # 0.3 to 0.9 on a quiet machine; line by line it was 50


@given(st.lists(LINES, min_size=1, max_size=4))
def test_the_members_of_a_gzip_file_are_read_as_one(parts: list[list[bytes]]) -> None:
    contents = [b"".join(line + b"\n" for line in lines) for lines in parts]
    assert numbered(b"".join(map(gzip.compress, contents))) == filled(b"".join(contents))


def test_a_line_may_go_on_in_the_next_member() -> None:
    assert read(gzip.compress(b'{"a":') + gzip.compress(b"1}\n{}")) == [b'{"a":1}', b"{}"]


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")])
def test_an_empty_file_has_no_lines(content: bytes) -> None:
    assert read(content) == []


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"\n", []),
        (b"\n\na", [b"a"]),
        (b"a\r\nb\r\n", [b"a\r", b"b\r"]),
        (b"a\rb", [b"a\rb"]),
        (b"a\x0bb\x0cc\xe2\x80\xa8d\x85e", [b"a\x0bb\x0cc\xe2\x80\xa8d\x85e"]),
        (b"\x1f", [b"\x1f"]),
        (b"\x00\n\xff", [b"\x00", b"\xff"]),
    ],
)
def test_only_a_newline_ends_a_line(content: bytes, lines: list[bytes]) -> None:
    assert read(content) == lines
    assert read(gzip.compress(content)) == lines


def test_a_file_on_disk_is_read_like_one_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "raw"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    with path.open("rb") as buffered:
        (block,) = read_lines(buffered)
    assert isinstance(block, Lines)
    assert (block.numbers.tolist(), block.lines) == ([1, 2], [b"a", b"b"])


def test_a_file_of_many_blocks_is_read_block_by_block() -> None:
    lines = [b"x" * (number % 1000) for number in range(10_000)]
    blocks = list(read_lines(io.BytesIO(gzip.compress(b"\n".join(lines), 1))))
    assert len(blocks) > 4
    assert numbered(b"\n".join(lines)) == filled(b"\n".join(lines))


@given(LINES, st.booleans(), st.integers(0, 3))
def test_a_file_is_hashed_whole_however_much_of_it_was_read(lines: list[bytes], zipped: bool, wanted: int) -> None:
    content = gzip.compress(b"\n".join(lines)) if zipped else b"\n".join(lines)
    expected = new_digest()
    expected.update(content)
    digested = Digested(io.BytesIO(content))
    with suppress(UnreadableFileError):
        list(islice(read_lines(digested, tiny(8)), wanted))
    assert digested.digest() == expected.hexdigest()


# Lines that are too long


@given(
    st.lists(st.integers(0, 90), max_size=12),
    st.booleans(),
    st.integers(2, 20),
    st.booleans(),
)
def test_a_line_is_too_long_by_its_length_and_nothing_else(
    lengths: list[int], ends_in_newline: bool, block: int, zipped: bool
) -> None:
    lines = [bytes([97 + number]) * length for number, length in enumerate(lengths)]
    content = b"\n".join(lines) + b"\n" * ends_in_newline
    expected: list[tuple[int, bytes] | LongLine] = [
        LongLine(number, line[:10], len(line)) if len(line) > 30 else (number, line) for number, line in filled(content)
    ]
    found: list[tuple[int, bytes] | LongLine] = []
    sizes = ReadSizes(block=block, longest_line=30, sample=10)
    for part in read_lines(io.BytesIO(gzip.compress(content) if zipped else content), sizes):
        found += zip(part.numbers.tolist(), part.lines, strict=True) if isinstance(part, Lines) else [part]
    assert found == expected


@pytest.mark.parametrize("before", [0, 1, ReadSizes().block // 2])
@pytest.mark.parametrize("over", [0, 1])
def test_the_limit_is_the_same_wherever_a_line_stands(before: int, over: int) -> None:
    long = b"x" * (ReadSizes().longest_line + over)
    blocks = list(read_lines(io.BytesIO(b"y" * before + b"\n" + long + b"\nafter")))
    long_ones = [block for block in blocks if isinstance(block, LongLine)]
    assert long_ones == ([LongLine(2, long[: ReadSizes().sample], len(long))] if over else [])
    assert isinstance(blocks[-1], Lines)
    assert blocks[-1].lines[-1] == b"after"
    assert blocks[-1].numbers[-1] == 3


# Files that break off


def noise(size: int) -> bytes:
    """Lines that cannot be compressed, so that every cut hits data."""
    return random.Random(7).randbytes(size).replace(b"\n", b" ").replace(b"x", b"\n")


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 100, 50_000])
def test_a_gzip_file_that_breaks_off_is_unreadable(cut: int) -> None:
    whole = gzip.compress(noise(100_000))
    with pytest.raises(UnreadableFileError):
        list(read_lines(io.BytesIO(whole[:-cut])))


def test_the_lines_before_the_break_are_lines_of_the_file() -> None:
    content = noise(5 << 20)
    found: list[bytes] = []
    with pytest.raises(UnreadableFileError):
        found.extend(
            line
            for block in read_lines(io.BytesIO(gzip.compress(content, 1)[: 3 << 20]))
            for line in (block.lines if isinstance(block, Lines) else ())
        )
    assert found
    assert [line for _, line in filled(content)][: len(found)] == found


GOOD = gzip.compress(b'{"type":"page"}\n' * 500)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(GOOD[:10] + b"\xff" * 500, id="garbage after the header"),
        pytest.param(GOOD[:10] + bytes(500), id="zeros after the header"),
        pytest.param(GOOD[:20] + bytes([GOOD[20] ^ 255]) + GOOD[21:], id="a byte flipped"),
        pytest.param(GOOD[:-8] + bytes(4) + GOOD[-4:], id="wrong checksum"),
        pytest.param(GOOD[:-4] + bytes(4), id="wrong length"),
        pytest.param(GOOD + b"trailing garbage that is no member", id="garbage after the end"),
        pytest.param(GOOD + GOOD[:15], id="second member breaks off"),
        pytest.param(b"\x1f\x8b", id="only the magic number"),
        pytest.param(b"\x1f\x8b" + b"text" * 50, id="not gzip after all"),
    ],
)
def test_a_damaged_gzip_file_is_unreadable(content: bytes) -> None:
    with pytest.raises(UnreadableFileError, match=r".+: .+"):
        list(read_lines(io.BytesIO(content)))


@given(st.integers(0, len(GOOD) - 1), st.integers(1, 255))
def test_a_changed_byte_is_noticed_or_changes_nothing(place: int, change: int) -> None:
    content = bytearray(GOOD)
    content[place] ^= change
    if place < 2:
        return  # then it is a plain file
    with suppress(UnreadableFileError):
        assert read(bytes(content)) == read(GOOD)


# Importing


NOW = 20_000 * DAY + 12345


def micros(text: str) -> int:
    instant = instants.parse(text)
    assert instant
    return instant.micros


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path / "lake"))


def file_with(path: Path, *events: dict[str, Any], zipped: bool = False) -> Path:
    content = b"".join(json.dumps(event).encode() + b"\n" for event in events)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if zipped else content)
    return path


def imported(storage: Storage, file: Path, now: int = NOW) -> Imported:
    return import_file(storage, "src1", file, now_micros=now)


def archived(storage: Storage) -> list[str]:
    root = Path(storage.root)
    return sorted(str(file.relative_to(root)) for file in root.rglob("*") if file.is_file())


def day_folder(path: str) -> int:
    return layout.day_micros(path)


EVENT = {"type": "page", "messageId": "m1", "receivedAt": "2026-01-05T23:59:59.999Z"}


def test_a_file_lands_in_the_folder_of_the_day_it_was_received(tmp_path: Path, storage: Storage) -> None:
    done = imported(storage, file_with(tmp_path / "raw.json", EVENT))
    assert done.is_new
    assert archived(storage) == [done.path]
    assert done.path.startswith("segment-logs/src1/1767571200000/")
    assert day_folder(done.path) == micros("2026-01-05T00:00:00Z")
    assert [file.path for file in layout.raw_files(storage, "src1")] == [done.path]


@pytest.mark.parametrize("zipped", [True, False])
def test_the_same_content_is_imported_once_under_any_name(tmp_path: Path, storage: Storage, zipped: bool) -> None:
    first = imported(storage, file_with(tmp_path / "one.json", EVENT, zipped=zipped))
    stored = storage.read(first.path)
    (tmp_path / "deep" / "er").mkdir(parents=True)
    copy = tmp_path / "deep" / "er" / "another.gz"
    copy.write_bytes(first.file.read_bytes())
    again = [imported(storage, file, NOW + 5 * DAY) for file in (first.file, copy)]
    assert [(done.path, done.is_new) for done in again] == [(first.path, False)] * 2
    assert archived(storage) == [first.path]
    assert storage.read(first.path) == stored


@pytest.mark.parametrize("folders", [("a", "b"), ("1767571200000", "b"), ("1767571200000", "1767657600000")])
def test_content_that_does_not_tell_its_day_is_imported_once_as_well(
    tmp_path: Path, storage: Storage, folders: tuple[str, str]
) -> None:
    event = {"type": "page", "messageId": "m1"}
    first = imported(storage, file_with(tmp_path / folders[0] / "raw.json", event))
    again = imported(storage, file_with(tmp_path / folders[1] / "copy.json", event), NOW + DAY)
    assert (again.path, again.is_new) == (first.path, False)
    assert archived(storage) == [first.path]


def test_other_content_is_another_file(tmp_path: Path, storage: Storage) -> None:
    one = imported(storage, file_with(tmp_path / "one.json", EVENT))
    other = imported(storage, file_with(tmp_path / "other.json", EVENT, EVENT))
    assert one.path != other.path
    assert other.is_new
    assert archived(storage) == sorted([one.path, other.path])


def test_a_gzip_file_is_kept_byte_for_byte(tmp_path: Path, storage: Storage) -> None:
    file = file_with(tmp_path / "raw.gz", EVENT, zipped=True)
    assert storage.read(imported(storage, file).path) == file.read_bytes()


def test_a_plain_file_is_compressed(tmp_path: Path, storage: Storage) -> None:
    file = file_with(tmp_path / "raw.json", *[EVENT] * 1000)
    stored = storage.read(imported(storage, file).path)
    assert stored.startswith(b"\x1f\x8b")
    assert gzip.decompress(stored) == file.read_bytes()
    assert len(stored) < file.stat().st_size / 10


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"not json", GOOD[:40]])
def test_a_file_without_events_is_imported_today_as_it_is(tmp_path: Path, storage: Storage, content: bytes) -> None:
    file = tmp_path / "odd"
    file.write_bytes(content)
    done = imported(storage, file)
    assert day_folder(done.path) == NOW // DAY * DAY
    stored = storage.read(done.path)
    assert (stored if content.startswith(b"\x1f\x8b") else gzip.decompress(stored)) == content


def test_the_first_line_that_tells_decides_about_the_day(tmp_path: Path, storage: Storage) -> None:
    file = tmp_path / "raw.json"
    lines = [
        b"",
        b"not json",
        b"[1,2]",
        b'{"receivedAt":5}',
        b'{"receivedAt":"2026-01-05"}',
        b'{"receivedAt":"2026-01-05T23:30:00-01:00","receivedAt":"2001-01-01T00:00:00Z"}',
        b'{"receivedAt":"2026-02-02T00:00:00Z"}',
    ]
    file.write_bytes(b"\r\n".join(lines))
    assert day_folder(imported(storage, file).path) == micros("2026-01-06T00:00:00Z")


@pytest.mark.parametrize(
    ("folder", "day"),
    [
        ("1767571200000", "2026-01-05T00:00:00Z"),
        ("1767574800000", "2026-01-05T00:00:00Z"),
        ("999907200000", "2001-09-08T00:00:00Z"),
        ("2026-01-05", None),
        ("17675712000000", None),
        ("17675712000", None),
    ],
)
def test_a_segment_archive_tells_the_day_by_its_folder(
    tmp_path: Path, storage: Storage, folder: str, day: str | None
) -> None:
    file = file_with(tmp_path / folder / "raw.gz", {"type": "page"}, zipped=True)
    assert day_folder(imported(storage, file).path) == (micros(day) if day else NOW // DAY * DAY)


def test_events_tell_the_day_before_the_folder_does(tmp_path: Path, storage: Storage) -> None:
    file = file_with(tmp_path / "999907200000" / "raw.gz", EVENT, zipped=True)
    assert day_folder(imported(storage, file).path) == micros("2026-01-05T00:00:00Z")


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """As if the disk had room for no larger file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("zipped", [True, False])
def test_an_import_that_breaks_off_leaves_no_raw_file(tmp_path: Path, storage: Storage, zipped: bool) -> None:
    file = tmp_path / "raw"
    file.write_bytes(gzip.compress(noise(1 << 20)) if zipped else noise(1 << 20))
    with room_for(200_000), pytest.raises(OSError, match="too large"):
        imported(storage, file)
    assert list(layout.raw_files(storage, "src1")) == []
    assert imported(storage, file).is_new
    assert len(list(layout.raw_files(storage, "src1"))) == 1


# Finding


def test_folders_are_searched_and_hidden_files_passed_over(tmp_path: Path) -> None:
    wanted = [file_with(tmp_path / name, EVENT) for name in ("a/1.gz", "a/b/2.json", "c.log")]
    for name in (".hidden", "a/.DS_Store", "a/_SUCCESS", "a/b/.3.gz.part"):
        file_with(tmp_path / name, EVENT)
    assert find_raw_files([tmp_path / "a", tmp_path / "c.log"]) == wanted
    assert find_raw_files([tmp_path]) == sorted(wanted)


def test_a_file_that_is_named_is_taken_even_if_hidden(tmp_path: Path) -> None:
    file = file_with(tmp_path / ".hidden", EVENT)
    assert find_raw_files([file]) == [file]


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError, match=r"there is no file or folder .*nowhere"):
        find_raw_files([tmp_path, tmp_path / "nowhere"])


MAY_HOLD_EVENTS = {
    "empty": b"",
    "blank": b"\n \r\n",
    "one line of JSON": b"no JSON\n" * 3 + b"{}\n" + b"no JSON\n",
    "a long line": b"no JSON\n" + b"x" * (ReadSizes().longest_line + 1),
    "broken off": gzip.compress(b"no JSON\n" * 1000)[:-10],
}


@pytest.mark.parametrize("content", MAY_HOLD_EVENTS.values(), ids=MAY_HOLD_EVENTS)
def test_a_file_that_may_hold_events_is_taken_whatever_is_wrong_with_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    assert find_raw_files([tmp_path]) == [tmp_path / "a"]


@pytest.mark.parametrize("content", [b"no JSON\n\nnor this", gzip.compress(b"no JSON\n", mtime=0)])
def test_a_file_without_any_json_is_refused_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    file_with(tmp_path / "a", EVENT)
    (tmp_path / "b").write_bytes(content)
    with pytest.raises(InvalidSettingsError) as caught:
        find_raw_files([tmp_path])
    assert caught.value.problem == f"{tmp_path / 'b'} holds no JSON: not one of its lines is a JSON value"
    wanted = "give files with one JSON object per line, plain or gzipped; nothing was added to the archive"
    assert caught.value.fix == wanted


def test_an_empty_folder_has_no_files(tmp_path: Path) -> None:
    assert find_raw_files([tmp_path]) == []


# Layout


@given(st.integers(0, 253402300799_999999), st.integers(0, DAY - 1))
def test_a_path_names_the_day_in_which_its_events_were_received(received: int, later: int) -> None:
    path = layout.path("src1", received, "x.gz")
    assert layout.day_micros(path) == received // DAY * DAY
    same_day = (received + later) // DAY == received // DAY
    assert (layout.path("src1", received + later, "x.gz") == path) == same_day


@pytest.mark.parametrize("folder", ["x", "", "-1", "1e3", "٣", "9" * 15, "9" * 16])
def test_a_folder_that_is_no_day_counts_as_1970(folder: str) -> None:
    assert layout.day_micros(f"segment-logs/src1/{folder}/x.gz") == 0


def test_uploads_under_way_are_not_raw_files(storage: Storage) -> None:
    for name in ("1/a.gz", "1/.b.gz", "2/_c", "d"):
        storage.write(f"segment-logs/src1/{name}", b"x")
    storage.write("segment-logs/src2/1/e.gz", b"x")
    found = [file.path for file in layout.raw_files(storage, "src1")]
    assert found == ["segment-logs/src1/1/a.gz", "segment-logs/src1/d"]


# Opening


RAW = "segment-logs/src1/1/raw.gz"


class Refusing(LocalStorage):
    """A store that refuses to read."""

    refusal: EventLakeError

    def open_stream(self, path: str) -> Any:
        raise self.refusal


def test_a_raw_file_is_read_and_hashed_and_closed(storage: Storage) -> None:
    content = gzip.compress(b"a\nb\n")
    storage.write(RAW, content)
    with opened(WholeArchive(storage), RAW) as raw:
        assert [by_number(block) for block in read_lines(raw)] == [{1: b"a", 2: b"b"}]
        assert raw.digest() == storage.digest(RAW)
    with pytest.raises(ValueError, match="closed"):
        raw.readall()


def test_a_raw_file_that_is_gone_is_told_by_its_name(storage: Storage) -> None:
    with (
        pytest.raises(UnreadableFileError, match=rf"^{RAW} is gone$"),
        opened(WholeArchive(storage), RAW),
    ):
        pass


def test_a_raw_file_that_may_not_be_read_is_left_out_and_a_bucket_that_may_not_be_read_stops_the_run(
    tmp_path: Path,
) -> None:
    refusing = Refusing(str(tmp_path))
    refusing.refusal = PermissionMissingError("raw.gz may not be read", fix="chmod")
    whole = WholeArchive(refusing)
    with (
        pytest.raises(UnreadableFileError, match=r"^raw\.gz may not be read$"),
        opened(whole, RAW),
    ):
        pass
    refusing.refusal = DownloadDeniedError("no right to get objects", fix="a policy")
    with pytest.raises(DownloadDeniedError), opened(whole, RAW):
        pass


def by_number(block: Lines | LongLine) -> dict[int, bytes]:
    """Lines by their numbers in the file."""
    assert isinstance(block, Lines)
    return dict(zip(block.numbers.tolist(), block.lines, strict=True))


def test_a_file_that_fails_while_it_is_hashed_is_unreadable() -> None:
    class Broken(io.RawIOBase):
        def readinto(self, _: Any) -> int:
            raise OSError("disk error")

    with pytest.raises(UnreadableFileError, match=r"^OSError: disk error$"):
        Digested(Broken()).digest()
    with pytest.raises(UnreadableFileError, match=r"^OSError: disk error$"):
        list(read_lines(Digested(Broken())))


@pytest.mark.parametrize("over", [0, 1, 40])
def test_the_lines_that_follow_a_long_one_at_once_are_all_read(over: int) -> None:
    """The long line ends in the block in which it becomes too long, or in a later one; whole lines follow it there."""
    sizes = ReadSizes(block=20, longest_line=40, sample=10)
    long = b"x" * (sizes.longest_line + over)
    first, *rest = read_lines(io.BytesIO(long + b"\none\ntwo\nthree"), sizes)
    if over:
        assert first == LongLine(1, long[: sizes.sample], len(long))
        assert [by_number(block) for block in rest] == [{2: b"one", 3: b"two"}, {4: b"three"}]
    else:
        assert by_number(first) == {1: long, 2: b"one", 3: b"two"}
        assert [by_number(block) for block in rest] == [{4: b"three"}]


@pytest.mark.parametrize(("silent", "tells"), [(999, True), (1000, False)])
def test_the_day_is_looked_for_in_the_first_thousand_lines(
    tmp_path: Path, storage: Storage, silent: int, tells: bool
) -> None:
    lines = [b'{"type":"page"}' if number % 2 else b"not json" for number in range(silent)]
    file = tmp_path / "raw.json"
    file.write_bytes(b"\n".join([*lines, b'{"receivedAt":"2026-01-05T10:00:00Z"}']))
    expected = micros("2026-01-05T00:00:00Z") if tells else NOW // DAY * DAY
    assert day_folder(imported(storage, file).path) == expected


def test_a_plain_file_is_compressed_alike_whenever_and_wherever(tmp_path: Path, storage: Storage) -> None:
    stored = storage.read(imported(storage, file_with(tmp_path / "raw.json", EVENT)).path)
    flags, time = stored[3], stored[4:8]
    assert (flags, time) == (0, bytes(4)), "neither the name nor the time of the file"


def test_an_import_under_way_is_hidden_beside_its_place(tmp_path: Path) -> None:
    class Watched(LocalStorage):
        moves: list[tuple[str, str]]

        def move(self, source: str, target: str) -> None:
            assert self.read(source).startswith(b"\x1f\x8b"), "it is complete by then"
            self.moves.append((source, target))
            super().move(source, target)

    storage = Watched(str(tmp_path / "lake"))
    storage.moves = []
    done = [imported(storage, file_with(tmp_path / name, {**EVENT, "n": name})) for name in ("a.json", "b.json")]
    assert [target for _, target in storage.moves] == [one.path for one in done]
    folders = {Path(source).parent for source, _ in storage.moves} | {Path(one.path).parent for one in done}
    assert len(folders) == 1, "a move within one folder"
    assert len({source for source, _ in storage.moves}) == 2
    assert all(Path(source).name.startswith(".") for source, _ in storage.moves)


def test_a_missing_file_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        find_raw_files([tmp_path / "nowhere"])
    assert caught.value.problem == f"there is no file or folder {tmp_path / 'nowhere'}"
    assert caught.value.fix == "name existing raw files"


@pytest.mark.parametrize("event", [EVENT, {"type": "page"}])
def test_what_is_there_already_is_told_of_the_file_that_was_named(
    tmp_path: Path, storage: Storage, event: dict[str, Any]
) -> None:
    first = imported(storage, file_with(tmp_path / "one.json", event))
    copy = file_with(tmp_path / "other.json", event)
    assert imported(storage, copy) == Imported(copy, first.path, is_new=False)


def test_several_folders_are_searched_one_after_the_other(tmp_path: Path) -> None:
    files = [file_with(tmp_path / name, EVENT) for name in ("b/1.gz", "b/2.gz", "a/1.gz", "c/1.gz")]
    assert find_raw_files([tmp_path / "b", tmp_path / "a", files[3], tmp_path / "a"]) == [*files, files[2]]


def test_a_line_that_is_too_long_does_not_hide_the_day(tmp_path: Path, storage: Storage) -> None:
    file = tmp_path / "raw.json"
    file.write_bytes(b"x" * (ReadSizes().longest_line + 1) + b"\n" + json.dumps(EVENT).encode())
    assert day_folder(imported(storage, file).path) == micros("2026-01-05T00:00:00Z")
