"""Counts of dedupe tasks: however they are spread over tasks, they add up to the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from counted import counts, told
from eventlake.tasks.counts import Count, added_up, largest, packed

U8 = (1 << 64) - 1
COUNT = st.builds(Count, *[st.integers(0, 1 << 60)] * 3, st.integers(0, (1 << 128) - 1))
COUNTED = st.dictionaries(st.sampled_from([0, 1, 7, 1 << 32, U8 - 1, U8]), COUNT)


@given(st.lists(COUNTED, max_size=6))
def test_counts_of_all_tasks_are_added_up_key_by_key(parts: list[dict[int, Count]]) -> None:
    whole: dict[int, Count] = {}
    for part in parts:
        assert told(counts(part)) == part
        for key, count in part.items():
            whole[key] = whole.get(key, Count()).plus(count)
    assert added_up(map(counts, parts)) == whole


def test_a_run_may_have_millions_of_raw_files() -> None:
    numbers = np.arange(2_000_000)
    whole = packed(numbers, [np.ones(len(numbers))] * 5)
    assert largest(whole) == 1
    added = added_up([whole, whole])
    assert len(added) == len(numbers)
    assert added[1_999_999] == Count(2, 2, 2, 2 << 64 | 2)
