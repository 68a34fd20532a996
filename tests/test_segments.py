"""Where rows lie in staged files: packed and unpacked, numbered and shared out, nothing changes or gets lost."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from altered_segments import NO_SEGMENTS
from eventlake.lake.segments import Segment, packed, records_of, rows_of, segments_of, split, unpacked
from unpacked_segments import segments_by_table, segments_in

U4, U8 = (1 << 32) - 1, (1 << 64) - 1
SEGMENT = st.builds(Segment, st.just(0), *[st.integers(0, U4)] * 4, st.integers(0, U8))
TABLES = st.dictionaries(st.text("abc_", min_size=1, max_size=5), st.lists(SEGMENT, min_size=1, max_size=5), max_size=5)


@given(TABLES)
def test_what_was_packed_is_unpacked(tables: dict[str, list[Segment]]) -> None:
    found = unpacked(packed(tables))
    assert segments_by_table(packed(tables)) == tables
    assert found.tables == list(tables)
    assert found.rows == [sum(segment.rows for segment in own) for own in tables.values()]


@given(TABLES, st.integers(0, U4))
def test_records_get_the_number_of_their_file(tables: dict[str, list[Segment]], number: int) -> None:
    found = unpacked(packed(tables))
    content = found.in_file(number)
    for own, (start, end) in zip(tables.values(), pairwise(found.ends), strict=True):
        assert segments_in(content[start:end].tobytes()) == [segment._replace(file=number) for segment in own]


@pytest.mark.parametrize("content", NO_SEGMENTS)
def test_what_was_not_packed_is_not_unpacked(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"what one task can tell|cannot be unpacked|as they should be|Expected|large"):
        unpacked(content)


@pytest.mark.parametrize("field", Segment._fields)
def test_a_number_that_has_no_room_is_an_error_and_not_another_number(field: str) -> None:
    too_large = Segment(*[1] * 6)._replace(**{field: (U8 if field == "offset" else U4) + 1})
    with pytest.raises((OverflowError, ValueError)):
        records_of([too_large])


SIZES = st.lists(st.integers(0, 20), max_size=30)


@given(SIZES, st.integers(1, 25), st.randoms(use_true_random=False))
def test_a_split_has_all_segments_in_order_and_is_no_larger_than_it_must_be(
    sizes: list[int], limit: int, dice: random.Random
) -> None:
    segments = [Segment(number % 3, rows, 0, 1, 1, number * 7) for number, rows in enumerate(sizes)]
    mixed = dice.sample(segments, len(segments))
    groups = split(records_of(mixed), limit)
    assert [segment for group in groups for segment in segments_of(group.packed)] == sorted(
        segments, key=lambda segment: (segment.file, segment.offset)
    )
    assert rows_of(records_of(mixed)) == sum(sizes)
    for group in groups:
        own = segments_of(group.packed)
        assert group.rows == sum(segment.rows for segment in own)
        assert not own or group.rows - own[-1].rows < limit
    assert all(group.rows >= limit for group in groups[:-1])
    assert len(groups) >= 1
