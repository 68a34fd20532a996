"""Message ids: hashes, files of them, look-ups and shares."""

import random
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.lake import ids
from eventlake.lake.ids import BUCKETS, FIELDS, INDEX_FIELDS, IdFile, Ids, Share

# Few first halves, so that many hashes share theirs; and both ends of the range.
EDGES = [0, 1, 2**56 - 1, 2**56, 2**63, 2**64 - 2**56, 2**64 - 1]
HALVES = st.sampled_from(EDGES) | st.integers(0, 2**64 - 1)
HASHES = st.lists(st.tuples(HALVES, HALVES), unique=True, max_size=60)
SHARES = st.tuples(st.integers(0, BUCKETS), st.integers(0, BUCKETS)).map(lambda edges: Share(*sorted(edges)))
ALL = Share(0, BUCKETS)


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
    assert same(file.read(ALL, ["row", "high"]), Ids({name: written[name] for name in ("row", "high")}))


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


@pytest.mark.parametrize("content", [b"", b"PAR1", b"EVLIDS00" + bytes(4000)])
def test_a_file_of_something_else_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="not a file of message ids"):
        IdFile(pa.BufferReader(content))


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
    assert reduce(ids.add_checksums, one_by_one, 0) == whole
    half = len(hashes) // 2
    parts = [reduce(ids.add_checksums, part, 0) for part in (one_by_one[:half], one_by_one[half:])]
    assert ids.add_checksums(*parts) == whole
    assert 0 <= whole < 2**128


@given(HASHES.filter(bool), st.tuples(HALVES, HALVES))
def test_the_checksum_tells_when_a_message_is_another(hashes: list[tuple[int, int]], other: tuple[int, int]) -> None:
    def checksum(some: list[tuple[int, int]]) -> int:
        return reduce(ids.add_checksums, [ids.checksum_of(*pair) for pair in some], 0)

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
    assert ids.table_key("track_order_completed") == 13392852861226815739


@given(st.lists(HASHES, max_size=4))
def test_joined_messages_keep_their_order(parts: list[list[tuple[int, int]]]) -> None:
    some = [messages(hashes) for hashes in parts]
    assert pairs(ids.joined(some)) == [pair for part in some for pair in pairs(part)]
