"""Ids of events, also of those that came without one."""

from typing import Any

from eventlake.lake import ids
from eventlake.reading import exact_json
from eventlake.schema.rescue import Rescued


def message_id_of_line(event: dict[str, Any], set_aside: list[Rescued], *, file: str, line: int, content: bytes) -> str:
    """The id of an event; if it has none, one that is the same whenever this line of this file is read."""
    sent = event.get("messageId")
    if type(sent) is str and sent.strip():  # blanks tell nobody apart
        return sent
    if sent is not None and not isinstance(sent, str | dict | list | bytes):
        return exact_json.json_text(sent)  # a number or a boolean: its text identifies it, and fits the column
    if sent is not None:
        set_aside.append(Rescued("/messageId", exact_json.json_text(sent), "not a message id"))
    place = f"{file.rpartition('/')[2]}:{line}:".encode()
    event["messageId"] = f"line-{ids.content_hash(place + content).hex()}"
    return str(event["messageId"])
