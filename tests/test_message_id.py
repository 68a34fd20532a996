"""Ids of events that came without a usable one."""

import re
from typing import Any

import pytest
from msgspec import Raw

from eventlake.reading.exact_json import parse
from eventlake.schema.rescue import Rescued
from eventlake.tasks.message_id import message_id_of_line


def made(event: dict[str, Any], file: str = "segment-logs/src1/1/raw.gz", line: int = 7, content: bytes = b"{}") -> str:
    return message_id_of_line(event, [], file=file, line=line, content=content)


@pytest.mark.parametrize(
    ("sent", "text"), [(5, "5"), (-1, "-1"), (True, "true"), (10**30, "1" + "0" * 30), (Raw(b"1.50"), "1.50")]
)
def test_a_number_or_a_boolean_is_an_id_by_its_text(sent: Any, text: str) -> None:
    event, aside = {"messageId": sent}, list[Rescued]()
    assert message_id_of_line(event, aside, file="f", line=1, content=b"") == text
    assert event == {"messageId": sent}  # the cell of the column is made of what was sent
    assert aside == []


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ('""', '""'),
        ('"  "', '"  "'),
        ('"\\t\\u00a0"', '"\\t\u00a0"'),
        ('{"a":1.50}', '{"a":1.50}'),
        ("[1]", "[1]"),
        ("[]", "[]"),
        ("{}", "{}"),
    ],
)
def test_what_cannot_be_an_id_is_rescued_and_one_is_made(sent: str, text: str) -> None:
    event, aside = parse(f'{{"messageId":{sent}}}'.encode())
    found = message_id_of_line(event, aside, file="f", line=1, content=b"x")
    assert aside == [Rescued("/messageId", text, "not a message id")]
    assert event["messageId"] == found


@pytest.mark.parametrize("sent", [{}, {"messageId": None}])
def test_an_event_without_an_id_gets_one_and_nothing_is_rescued(sent: dict[str, Any]) -> None:
    event, aside = dict(sent), list[Rescued]()
    found = message_id_of_line(event, aside, file="f", line=1, content=b"x")
    assert re.fullmatch("line-[0-9a-f]{32}", found)
    assert event == {"messageId": found}
    assert aside == []


def test_the_id_of_a_line_never_changes() -> None:
    """Else what was loaded without an id would be loaded again."""
    assert made({}, "a/b/raw.gz", 12, b'{"a":1}') == "line-cf0887eb06ffb9e681f0fcea171c87a6"


def test_the_id_is_that_of_the_line_in_its_file_wherever_the_file_lies() -> None:
    assert made({}) == made({}, file="elsewhere/raw.gz") == made({}, file="raw.gz")
    others = [made({}, file="segment-logs/src1/1/other.gz"), made({}, line=8), made({}, content=b"{ }")]
    assert len({made({}), *others}) == 4
