"""Message ids: hashes, files of them, look-ups and shares."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.errors import DamagedIdsError
from eventlake.lake import ids
from eventlake.lake.ids import ALL, BUCKETS, FIELDS, INDEX_FIELDS, DamageError, IdFile, Ids, Share
from eventlake.storage.local import LocalStorage

# Few first halves, so that many hashes share theirs; and both ends of the range.
EDGES = [0, 1, 2**56 - 1, 2**56, 2**63, 2**64 - 2**56, 2**64 - 1]
HALVES = st.sampled_from(EDGES) | st.integers(0, 2**64 - 1)
HASHES = st.lists(st.tuples(HALVES, HALVES), unique=True, max_size=60)
SHARES = st.tuples(st.integers(0, BUCKETS), st.integers(0, BUCKETS)).map(lambda edges: Share(*sorted(edges)))


def messages(hashes: list[tuple[int, int]], fields: tuple[str, ...] = tuple(FIELDS)) -> Ids:
    """Sorted messages; what is kept of each besides its hash tells them apart."""
    dice = random.Random(len(hashes))
    arrays = {name: np.array([dice.randrange(2**31) for _ in hashes], FIELDS[name]) for name in fields}
    arrays["high"] = np.array([high for high, _ in hashes], "<u8")
    arrays["low"] = np.array([low for _, low in hashes], "<u8")
    return Ids(arrays).ordered()


def in_a_file(written: Ids, *, before: bytes = b"", after: bytes = b"") -> pa.BufferReader:
    sink = pa.BufferOutputStream()
    sink.write(before)
    ids.write(sink, written)
    sink.write(after)
    return pa.BufferReader(sink.getvalue())


def pairs(some: Ids) -> list[tuple[int, int]]:
    return list(zip(some["high"].tolist(), some["low"].tolist(), strict=True))


def within(share: Share, some: Ids) -> Ids:
    first_bytes = some["high"] >> np.uint64(56)
    return some.take((first_bytes >= share.start) & (first_bytes < share.stop))


def same(one: Ids, other: Ids) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in other.arrays)


# Files


@given(HASHES, SHARES, st.binary(max_size=9))
def test_any_share_of_a_file_is_read_as_it_was_written(
    hashes: list[tuple[int, int]], share: Share, around: bytes
) -> None:
    written = messages(hashes)
    file = IdFile(in_a_file(written, before=around, after=around), len(around), tuple(FIELDS))
    assert len(file) == len(written)
    assert same(file.read(share, FIELDS), within(share, written))
    assert same(file.read(ALL, ["number", "high"]), Ids({name: written[name] for name in ("number", "high")}))


@given(HASHES, st.integers(1, BUCKETS))
def test_the_shares_of_a_file_are_the_whole_file(hashes: list[tuple[int, int]], parts: int) -> None:
    written = messages(hashes, INDEX_FIELDS)
    file = IdFile(in_a_file(written))
    read = ids.joined([file.read(share, INDEX_FIELDS) for share in ids.shares(parts)])
    assert same(read, written)


def test_an_empty_file_has_no_messages() -> None:
    file = IdFile(in_a_file(ids.empty(INDEX_FIELDS)))
    assert len(file) == 0
    assert len(file.read(ALL, INDEX_FIELDS)) == 0
    assert file.positions(ALL, messages([(1, 2)])).tolist() == [-1]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"EVLIDS00" + bytes(8000)])
def test_a_file_of_something_else_is_refused(content: bytes) -> None:
    with pytest.raises(DamageError, match=r"^it does not begin as one$"):
        IdFile(pa.BufferReader(content))


# Damage: whatever is read is what was written, or the file is refused


@given(HASHES.filter(bool), st.data())
def test_one_changed_bit_anywhere_is_noticed(hashes: list[tuple[int, int]], data: st.DataObject) -> None:
    content = bytearray(in_a_file(messages(hashes, INDEX_FIELDS)).read())
    content[data.draw(st.integers(0, len(content) - 1), "byte")] ^= 1 << data.draw(st.integers(0, 7), "bit")
    with pytest.raises(DamageError):
        IdFile(pa.BufferReader(bytes(content))).read(ALL, INDEX_FIELDS)


@given(HASHES.filter(bool), st.data())
def test_a_file_that_was_cut_off_is_refused(hashes: list[tuple[int, int]], data: st.DataObject) -> None:
    content = in_a_file(messages(hashes, INDEX_FIELDS)).read()
    cut = content[: data.draw(st.integers(0, len(content) - 1))]
    with pytest.raises(DamageError):
        IdFile(pa.BufferReader(cut)).read(ALL, INDEX_FIELDS)


@given(HASHES.filter(bool), SHARES)
def test_damage_in_one_share_does_not_keep_the_others_from_being_read(
    hashes: list[tuple[int, int]], share: Share
) -> None:
    written = messages(hashes, INDEX_FIELDS)
    content = bytearray(in_a_file(written).read())
    content[-1] ^= 1  # the last field of the last message
    file = IdFile(pa.BufferReader(bytes(content)))
    last_bucket = int(written["high"][-1]) >> 56
    if share.start <= last_bucket < share.stop:
        with pytest.raises(DamageError, match="route"):
            file.read(share, INDEX_FIELDS)
    else:
        assert same(file.read(share, INDEX_FIELDS), within(share, written))
    assert same(file.read(ALL, ["high", "low"]), Ids({name: written[name] for name in ("high", "low")}))


def without_checksums(written: Ids) -> bytes:
    """A file of the index as earlier versions wrote it."""
    first_bytes = np.arange(BUCKETS, dtype=np.uint64) << np.uint64(56)
    fences = np.append(np.searchsorted(written["high"], first_bytes), len(written)).astype("<u8")
    arrays = b"".join(written[name].astype(FIELDS[name]).tobytes() for name in INDEX_FIELDS)
    return b"EVLIDS01" + len(written).to_bytes(8, "little") + fences.tobytes() + arrays


@given(HASHES, SHARES)
def test_files_of_earlier_versions_are_still_read(hashes: list[tuple[int, int]], share: Share) -> None:
    written = messages(hashes, INDEX_FIELDS)
    content = without_checksums(written)
    assert same(IdFile(pa.BufferReader(content)).read(share, INDEX_FIELDS), within(share, written))
    if hashes:
        with pytest.raises(DamageError, match=r"^its end is cut off$"):
            IdFile(pa.BufferReader(content[:-1])).read(ALL, INDEX_FIELDS)
    with pytest.raises(DamageError, match=r"^its head is cut off$"):
        IdFile(pa.BufferReader(content[:2000]))


@given(HASHES)
def test_the_size_of_a_file_tells_how_many_messages_it_has(hashes: list[tuple[int, int]]) -> None:
    written = messages(hashes, INDEX_FIELDS)
    sizes = (in_a_file(written).size(), len(without_checksums(written)))
    assert ids.index_sizes(len(written)) == sizes


def test_damage_is_told_with_the_path_of_the_file(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write("some/index.ids", b"nonsense" * 1000)
    with pytest.raises(DamagedIdsError) as caught, ids.opened(storage, "some/index.ids"):
        pass
    told = "some/index.ids: this file of message ids is damaged: it does not begin as one"
    assert caught.value.problem == told
    assert caught.value.fix == "run it again; if it happens twice, `eventlake verify --repair` makes the index anew"


@pytest.mark.parametrize(("fields", "before"), [(INDEX_FIELDS, b""), (tuple(FIELDS), b"something else first")])
def test_a_file_in_storage_or_a_part_of_one_is_read_as_it_was_written(
    tmp_path: Path, fields: tuple[str, ...], before: bytes
) -> None:
    storage = LocalStorage(str(tmp_path))
    written = messages([(7, 8), (7, 9), (2**64 - 1, 0)], fields)
    storage.write("some.ids", in_a_file(written, before=before).read())
    part = (len(before), fields) if before else ()
    with ids.opened(storage, "some.ids", *part) as file:
        assert same(file.read(ALL, fields), written)
        assert file.positions(ALL, messages([(2**64 - 1, 0), (2**64 - 1, 1)], fields)).tolist() == [2, -1]


def test_the_head_of_a_file_is_what_was_written_or_it_is_refused() -> None:
    content = bytearray(in_a_file(messages([(7, 8)], INDEX_FIELDS)).read())
    content[20] ^= 1
    with pytest.raises(DamageError, match=r"^its head is not what was written$"):
        IdFile(pa.BufferReader(bytes(content)))


def test_what_comes_after_all_that_is_held_is_not_found() -> None:
    file = IdFile(in_a_file(messages([(7, 8)], INDEX_FIELDS)))
    assert file.positions(ALL, messages([(7, 8), (8, 8)], INDEX_FIELDS)).tolist() == [0, -1]


# Look-ups


@given(HASHES, HASHES, SHARES)
def test_each_message_is_found_where_it_is_and_no_other_is_found(
    held: list[tuple[int, int]], others: list[tuple[int, int]], share: Share
) -> None:
    written = messages(held, INDEX_FIELDS)
    wanted = messages(list(dict.fromkeys(held[::2] + others)), INDEX_FIELDS)
    expected = {pair: place for place, pair in enumerate(pairs(within(share, written)))}
    found = IdFile(in_a_file(written)).positions(share, wanted)
    assert found.tolist() == [expected.get(pair, -1) for pair in pairs(wanted)]


@given(st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=20), st.sets(st.integers(0, 2**64 - 1), max_size=20))
def test_hashes_that_share_their_first_half_are_told_apart(held: set[int], others: set[int]) -> None:
    high = 7 << 56
    written = messages([(high, low) for low in held], INDEX_FIELDS)
    wanted = messages([(high, low) for low in held | others], INDEX_FIELDS)
    expected = {pair: place for place, pair in enumerate(pairs(written))}
    found = IdFile(in_a_file(written)).positions(Share(7, 8), wanted)
    assert found.tolist() == [expected.get(pair, -1) for pair in pairs(wanted)]


# Order and sums


@given(st.lists(st.tuples(st.sampled_from(EDGES), st.integers(0, 2), st.integers(0, 2)), max_size=30))
def test_messages_are_ordered_by_hash_and_then_as_asked(rows: list[tuple[int, int, int]]) -> None:
    unordered = Ids(
        {name: np.array([row[at] for row in rows], FIELDS[name]) for at, name in enumerate(("high", "low", "received"))}
    )
    ordered = unordered.ordered("received")
    assert list(zip(*(ordered[name].tolist() for name in ("high", "low", "received")), strict=True)) == sorted(rows)


@given(st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=20))
def test_digests_become_numbers_that_sort_alike(digests: list[bytes]) -> None:
    halves = Ids(ids.from_digests(digests))
    assert pairs(halves) == [(int.from_bytes(d[:8], "big"), int.from_bytes(d[8:], "big")) for d in digests]
    assert pairs(halves.ordered()) == pairs(Ids(ids.from_digests(sorted(digests))))


@given(HASHES, st.randoms(use_true_random=False))
def test_the_checksum_does_not_depend_on_order_or_grouping(hashes: list[tuple[int, int]], dice: Any) -> None:
    whole = ids.checksum_of(sum(high for high, _ in hashes), sum(low for _, low in hashes))
    one_by_one = [ids.checksum_of(*pair) for pair in dice.sample(hashes, len(hashes))]
    assert ids.sum_checksums(one_by_one) == whole
    half = len(hashes) // 2
    parts = [ids.sum_checksums(part) for part in (one_by_one[:half], one_by_one[half:])]
    assert ids.add_checksums(*parts) == whole
    assert 0 <= whole < 2**128


@given(HASHES.filter(bool), st.tuples(HALVES, HALVES))
def test_the_checksum_tells_when_a_message_is_another(hashes: list[tuple[int, int]], other: tuple[int, int]) -> None:
    def checksum(some: list[tuple[int, int]]) -> int:
        return ids.sum_checksums(ids.checksum_of(*pair) for pair in some)

    assert (checksum([*hashes[1:], other]) == checksum(hashes)) == (other == hashes[0])
    assert (checksum(hashes[1:]) == checksum(hashes)) == (hashes[0] == (0, 0))


# Hashes and shares


def test_shares_cover_every_bucket_once() -> None:
    for parts in range(1, BUCKETS + 1):
        shares = ids.shares(parts)
        assert len(shares) == parts
        assert [bucket for share in shares for bucket in range(share.start, share.stop)] == list(range(BUCKETS))
        sizes = [share.stop - share.start for share in shares]
        assert max(sizes) - min(sizes) <= 1


def test_more_shares_than_buckets_are_as_many_as_buckets() -> None:
    assert ids.shares(1000) == ids.shares(BUCKETS)


def test_hashes_are_the_same_for_ever() -> None:
    assert ids.message_hash("m1").hex() == "7431160d65c1010c5e92d398569d1266"
    assert ids.message_hash("é🎉") == ids.content_hash("é🎉".encode())
    assert ids.route_hash(("track_order_completed",)) == 13392852861226815739
    assert ids.route_hash(("tracks", "order_completed")) == 3696985857723923400


@given(st.lists(HASHES, max_size=4))
def test_joined_messages_keep_their_order(parts: list[list[tuple[int, int]]]) -> None:
    some = [messages(hashes) for hashes in parts]
    assert pairs(ids.joined(some)) == [pair for part in some for pair in pairs(part)]


# At the edges


def test_a_message_is_not_found_by_the_second_half_of_another() -> None:
    """A message that is taken for one that is there would be dropped as its copy."""
    first = 7 << 56
    written = messages([(first, 5), (first, 6), (first + 1, 9), (first + 2, 9)], INDEX_FIELDS)
    wanted = messages([(first, 4), (first, 6), (first, 9), (first + 1, 5), (first + 2, 9)], INDEX_FIELDS)
    assert IdFile(in_a_file(written)).positions(Share(7, 8), wanted).tolist() == [-1, 1, -1, -1, 3]


@given(HASHES)
def test_the_checksum_of_messages_is_that_of_their_hashes(hashes: list[tuple[int, int]]) -> None:
    expected = ids.sum_checksums(ids.checksum_of(*pair) for pair in hashes)
    assert ids.checksum(messages(hashes)) == expected


def test_the_halves_of_a_checksum_do_not_mix() -> None:
    assert ids.checksum(messages([(1, 2)])) == (1 << 64) + 2
    assert ids.checksum(messages([(2**64 - 1, 2**64 - 1), (1, 1)])) == 0
    assert ids.add_checksums((1 << 64) + 2**64 - 1, 1) == 1 << 64


def test_no_messages_have_the_types_of_messages() -> None:
    nothing = IdFile(in_a_file(ids.empty()), fields=tuple(FIELDS)).read(ALL, FIELDS)
    for some in (ids.empty(), ids.joined([]), nothing):
        assert {name: some[name].dtype.str for name in some.arrays} == FIELDS
    assert list(ids.empty(INDEX_FIELDS).arrays) == list(INDEX_FIELDS)


def test_numbers_of_any_width_are_written_in_that_of_their_field() -> None:
    wide = Ids(
        {
            **messages([(1, 2), (3, 4)], INDEX_FIELDS).arrays,
            "digest": np.array([5, 2**32 - 1]),
            "number": np.array([7, 8]),
        }
    )
    file = IdFile(in_a_file(wide), fields=(*INDEX_FIELDS, "digest", "number"))
    assert file.read(ALL, ["digest"])["digest"].tolist() == [5, 2**32 - 1]
    assert file.read(ALL, ["number"])["number"].tolist() == [7, 8]
