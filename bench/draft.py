"""An event of the corpus while it is being made; its values are JSON texts, written by hand.

No JSON library writes what clients send: keys that come twice, numbers beyond every type, half surrogate pairs.
"""

from __future__ import annotations

import json

from eventlake.demo.maker import iso

Member = tuple[tuple[str, ...], str]


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class Draft:
    """An event that is being made: its values as JSON texts, by path; a path may come twice."""

    def __init__(self, message_id: str, call: str, received_ms: int, members: list[Member] | None = None) -> None:
        self.message_id = message_id
        self.call = call
        self.received_ms = received_ms
        self.late = False  # among the last of the corpus
        self.members: list[Member] = list(members or [])

    @property
    def body(self) -> str:
        return "traits" if self.call in ("identify", "group") else "properties"

    def put(self, path: str, value: str) -> None:
        """Set a value, in place of what was there."""
        keys = tuple(path.split("/"))
        self.members = [member for member in self.members if member[0][: len(keys)] != keys]
        self.members.append((keys, value))

    def add(self, key: str, value: str) -> None:
        """Add a property, whatever is there and whatever is in the key."""
        self.members.append(((self.body, key), value))

    def line(self, received_ms: int | None = None) -> str:
        head = f'{{"type":{quoted(self.call)},"messageId":{quoted(self.message_id)},'
        tail = f'"receivedAt":{quoted(iso(received_ms or self.received_ms))}}}'
        return f"{head}{_written(self.members)},{tail}"


def _written(members: list[Member]) -> str:
    """The members of an object, without its braces."""
    parts: list[str] = []
    done: set[str] = set()
    for keys, value in members:
        if len(keys) == 1:
            parts.append(f"{_key(keys[0])}:{value}")
        elif keys[0] not in done:
            done.add(keys[0])
            inner = [(rest[1:], text) for rest, text in members if len(rest) > 1 and rest[0] == keys[0]]
            parts.append(f"{_key(keys[0])}:{{{_written(inner)}}}")
    return ",".join(parts)


def _key(key: str) -> str:
    return key if key.startswith('"') else quoted(key)  # a half surrogate pair comes with its own quotes
