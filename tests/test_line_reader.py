"""Lines are read in groups of what they seem to be. A guess that is wrong costs time, and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.reading import exact_json
from eventlake.reading.columns import ColumnSizes
from eventlake.reading.flatten import TableColumns
from eventlake.reading.line_reader import ALL_OTHERS, LineReader, Readers, ReadingSizes, grouped, hint
from eventlake.reading.route_buffer import RouteBuffer

SIZES = ReadingSizes(fewest_at_once=1, fewest_in_group=3, shared_groups=4, learn_from=100)


def line(number: int, event: str | None = "A", **fields: Any) -> bytes:
    whole = {"messageId": f"m{number}", **({"event": event} if event else {}), "type": "track", **fields}
    return json.dumps(whole, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"event":"Order Completed","type":"track"}', b"Order Completed"),
        (b'{"type":"track","event":"A"}', b"A"),
        (b'{"type":"page"}', b"page"),
        (b'{"context":{"type":"ios"},"type":"page"}', b"ios"),
        (b'{"event":""}', b""),
        (b'{"event":"A\\"B"}', b"A\\"),
        (b'{"event":null,"type":"track"}', b"track"),
        (b'{"event" : "A","type":"page"}', b"page"),
        (b'{"event":"cut off', b"cut of"),
        (b"", b""),
        (b"[]", b""),
    ],
)
def test_what_a_line_is_is_guessed_from_its_text(text: bytes, expected: bytes) -> None:
    assert hint(text) == expected


LINES = [b'{"event":"A"}', b'{"event":"B"}', b'{"type":"page"}', b"", b"{", b'{"x":1}']


@given(st.lists(st.sampled_from(LINES)), st.integers(1, 5), st.integers(1, 3))
def test_every_line_is_in_one_group_that_is_large_enough_or_with_all_others(
    lines: list[bytes], fewest: int, shared: int
) -> None:
    group_of, groups = grouped(lines, ReadingSizes(fewest_in_group=fewest, shared_groups=shared))
    assert sorted(place for places in groups.values() for place in places) == list(range(len(lines)))
    assert all(places == sorted(places) and places for places in groups.values())
    for group, places in groups.items():
        names = {hint(lines[place]) for place in places}
        assert {group_of[name] for name in names} == {group}
        assert group == ALL_OTHERS or len(places) >= fewest
        if isinstance(group, bytes):
            assert names == {group}
        else:
            assert group in range(-1, shared)
            assert all(sum(hint(line) == name for line in lines) < fewest for name in names)


class Read:
    """Lines that are read at once, and those that are left."""

    def __init__(self, sizes: ReadingSizes = SIZES) -> None:
        self.readers = Readers(sizes)
        self._reader = LineReader(self.readers, sizes)
        self._buffers: dict[tuple[str, str], RouteBuffer] = {}

    def _buffer(self, call: str, name: str) -> RouteBuffer:
        return self._buffers.setdefault((call, name), RouteBuffer((f"{call}_{name}",), [TableColumns()]))

    def __call__(self, *lines: bytes) -> tuple[list[str], list[bytes]]:
        """The messages that were read at once, and the lines that are left, of which the reader learns."""
        taken: list[str] = []
        left = set(range(len(lines)))
        for places, read in self._reader.at_once(lines, self._buffer):
            left -= set(places[read.taken].tolist())
            taken += [json.loads(lines[place])["messageId"] for place in places[read.taken]]
        for place in left:
            self._reader.learn(lines[place], exact_json.parse(lines[place]).value)
        return sorted(taken), [lines[place] for place in sorted(left)]


def test_keys_of_other_kinds_in_other_events_are_all_read_at_once() -> None:
    of_a = [line(n, "A", properties={"x": {"y": n}}) for n in range(10, 14)]
    of_b = [line(n, "B", properties={"x": n}) for n in range(14, 18)]
    together = ReadingSizes(fewest_at_once=1, fewest_in_group=99)
    assert len(Read(together)(*of_a, *of_b)[1]) == 4, "read together, half of them are odd"
    taken, left = Read()(*of_a, *of_b)
    assert (taken, left) == ([f"m{n}" for n in range(10, 18)], [])


def test_what_odd_lines_of_an_event_teach_is_known_for_that_event_and_groups_that_are_small_share_a_reader() -> None:
    read = Read()
    assert read(*(line(n) for n in range(10, 14)))[1] == []
    new = [line(n, k=1) for n in range(10, 14)]
    assert read(*new)[1] == new
    assert read(*new)[1] == []
    other = [line(n, "B", k=1) for n in range(10, 14)]
    assert read(*other)[1] == [], "its reader learns first"
    few = [line(10, "C", k=1), line(11, "D", k=2)]
    assert read(*few)[1] == []
    many = [line(10 + n, f"E{n}", k=n) for n in range(20)]
    assert read(*many)[1] == [], "some share a reader, each with few others"
    assert read.readers.of(b"A") is not read.readers.of(b"B")


def test_only_so_many_readers_are_kept_and_the_others_share_one() -> None:
    read = Read(ReadingSizes(fewest_at_once=1, fewest_in_group=1, readers=2))
    lines = [line(1, "A", a=1), line(2, "B", b=2), line(3, "C", c=3)]
    assert read(*lines)[1] == lines[2:], "the one that two share had learned of the first"
    assert read(*lines)[1] == []
    assert read.readers.of(b"A") is not read.readers.of(ALL_OTHERS)
    assert read.readers.of(b"B") is read.readers.of(b"Z") is read.readers.of(ALL_OTHERS)


@given(
    st.lists(
        st.sampled_from(
            [
                line(1, "A", a=1),
                line(2, "A", properties={"event": "B"}),
                line(3, "B", b="x"),
                line(4, None, properties={"event": "A"}, event2="A"),
                line(5, 'A","event":"B'),
                line(6, "A", text='"event":"B"'),
                b'{"event":"A","event":"B","messageId":"m7","type":"track"}',
                b'{"event":"\\u0041","messageId":"m8","type":"track"}',
                b'{"messageId":"m9","properties":{"event":"B"},"type":"track","event":"A"}',
            ]
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 6),
    st.integers(1, 4),
)
@example([line(2, "A", properties={"event": "B"})] * 3, 1, 2)
def test_a_line_that_is_taken_is_what_the_exact_reader_finds_whatever_was_guessed(
    lines: list[bytes], fewest: int, readers: int
) -> None:
    sizes = ReadingSizes(ColumnSizes(lines_at_once=4), 1, fewest, 2, 1, 2, readers)
    reader = LineReader(Readers(sizes), sizes)
    asked: dict[str, RouteBuffer] = {}

    def buffer(call: str, name: str) -> RouteBuffer | None:
        if not name:
            return None
        return asked.setdefault(name, RouteBuffer((name,), [TableColumns()]))

    for places, read in reader.at_once(lines, buffer):
        of_group = [lines[place] for place in places]
        for found, taken in read.rows(of_group, places * 0, lambda _: 0):
            cells = taken.tables[0].rows.to_pylist()
            events = [exact_json.parse(lines[place]).value for place in places[read.taken]]
            expected = [event for event in events if event["event"] == found.route[0]]
            assert [_ids(row) for row in cells] == [event["messageId"] for event in expected]
        for place in places[read.taken]:
            assert not exact_json.parse(lines[place]).set_aside


def _ids(row: dict[str, Any]) -> str:
    return str(next(value for name, value in row.items() if name.startswith('["message_id"')))
