"""Reading events: exact as `exact_json`, but what clients send again and again stays text.

Every event tells the app, the device, the library and the page anew: more than half of all its values. So the members
of `context`, `integrations` and `_metadata` come out as `Raw`, the text that was sent. What is in them is parsed once
for each distinct text (see `folding`), not once for each event.
"""

from collections.abc import Iterable
from typing import Any, TypedDict

import msgspec
from msgspec import Raw

from eventlake.schema import exact_json
from eventlake.schema.exact_json import encode
from eventlake.schema.rescue import Rescued

Path = tuple[str, ...]

CONTEXT = "context"
AT_TOP: tuple[Path, ...] = (("integrations",), ("_metadata",))  # parts that are not in `context`

_MAX_KEYS = 200  # a sender that makes up keys must not have a decoder made for each


class EventParser:
    """Parses lines. It learns the keys at the top of events and in their `context` as it meets them."""

    def __init__(self) -> None:
        self._paths: set[Path] = {(CONTEXT,), *AT_TOP}
        self._whole: set[Path] = set()
        self._make_decoder()

    def _make_decoder(self) -> None:
        context = {path[1]: self._type(path) for path in self._paths if len(path) > 1}
        event = {path[0]: self._type(path) for path in self._paths if len(path) == 1}
        event[CONTEXT] = TypedDict("Context", context, total=False) | None  # type: ignore[operator]
        self._decode = msgspec.json.Decoder(
            TypedDict("Event", event, total=False),  # type: ignore[operator]
            float_hook=Raw,
        ).decode

    def _type(self, path: Path) -> Any:
        return Raw if self.is_text(path) else Any

    def is_text(self, path: Path) -> bool:
        """Whether this part of an event comes out as text."""
        return (len(path) > 1 or path in AT_TOP) and path not in self._whole

    def take_whole(self, paths: Iterable[Path]) -> None:
        """Parse these parts with the event from now on."""
        self._whole.update(paths)
        self._make_decoder()

    def parse(self, line: bytes) -> tuple[Any, list[Rescued]]:
        """The value that a line holds; if it is an object, what is repeated is Raw. Raises NotJsonError."""
        try:
            if not line.isascii():
                line.decode()  # the only thing that the decoder does not look at where it leaves text as it is
            event: Any = self._decode(line)
            if exact_json.is_shallow(line) and exact_json.has_all_keys(line, event):
                return event, []
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            pass
        event, set_aside = exact_json.parse(line)
        if type(event) is dict:
            self._learn(event)
            self._fold(event)
        return event, set_aside

    def _learn(self, event: dict[str, Any]) -> None:
        context = event.get(CONTEXT)
        found = {(key,) for key in event} | {(CONTEXT, key) for key in (context if type(context) is dict else ())}
        # A decoder takes the empty key for any key that is not ASCII (msgspec 0.22).
        new = {path for path in found - self._paths if path[-1].isascii()}
        if new and len(self._paths) + len(new) <= _MAX_KEYS:
            self._paths |= new
            self._make_decoder()

    def _fold(self, event: dict[str, Any]) -> None:
        context = event.get(CONTEXT)
        if type(context) is dict:
            for key, value in context.items():
                if self.is_text((CONTEXT, key)):
                    context[key] = Raw(encode(value))
        for path in AT_TOP:
            if path[0] in event and self.is_text(path):
                event[path[0]] = Raw(encode(event[path[0]]))
