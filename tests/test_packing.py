"""Records in few bytes: what was packed comes back, and nothing else is taken for it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlake.lake.packing import LARGEST, packed, packed_records, unpacked, unpacked_records

RECORD = np.dtype([("small", "<u2"), ("large", "<u8")])


@given(st.lists(st.tuples(st.integers(0, (1 << 16) - 1), st.integers(0, (1 << 64) - 1)), max_size=20))
def test_records_come_back_and_can_be_written_to(records: list[tuple[int, int]]) -> None:
    found = unpacked_records(packed_records(np.array(records, RECORD)), RECORD)
    assert found.tolist() == records
    found["small"] = 7
    assert [small for small, _ in found.tolist()] == [7] * len(records)


def test_like_records_take_few_bytes() -> None:
    records = np.zeros(10_000, RECORD)
    records["large"] = np.arange(10_000)
    assert len(packed_records(records)) < 25_000


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "not what one task can tell"),
        (bytes(7), "not what one task can tell"),
        ((LARGEST + 1).to_bytes(8, "little") + b"x", "not what one task can tell"),
        (LARGEST.to_bytes(8, "little") + b"x", "cannot be unpacked"),
        (packed(b"abc")[:-1], "cannot be unpacked"),
    ],
)
def test_what_was_not_packed_is_refused(content: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        unpacked(content)


@pytest.mark.parametrize("size", [1, 9, 11])
def test_records_that_are_not_whole_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="reshape"):
        unpacked_records(packed(bytes(size)), RECORD)


def test_nothing_is_nothing() -> None:
    none: Any = unpacked_records(packed_records(np.empty(0, RECORD)), RECORD)
    assert len(none) == 0
