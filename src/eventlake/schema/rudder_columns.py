"""The columns of RudderStack's tables.

A table has standard columns, from fields of the event; `context_*`; and what the event says of itself, without a
prefix. A standard column is for its own field only: a property of that name loses, and is kept beside the row. Fields
that no table of theirs has, and that say how the event is to be handled, are left to the raw archive (`LEFT_OUT`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from eventlake.schema import rudder_names
from eventlake.schema.claims import NOWHERE, Claim, Claims, Path
from eventlake.schema.names import RESCUED_COLUMN
from eventlake.schema.rudder_names import NameRules
from eventlake.schema.types import ColumnType

# Where `id` is not that of the message: which row is which must be known to write it again, and to leave out copies.
MESSAGE_ID = "_message_id"
UUID_TS = "uuid_ts"
LEFT_OUT = frozenset({"type", "integrations", "version", "writeKey", "projectId", "_metadata", "rudderId"})


class TableKind(Enum):
    TRACKS = "tracks"
    IDENTIFIES = "identifies"
    USERS = "users"
    PAGES = "pages"
    SCREENS = "screens"
    GROUPS = "groups"
    ALIASES = "aliases"
    EVENT = "event"  # one for each name of a track event
    EXTRACT = "extract"  # the same for what cloud sources send


_PAGE_LIKE = (TableKind.PAGES, TableKind.SCREENS)
_OF_IDENTIFY = (TableKind.IDENTIFIES, TableKind.USERS)

_COMMON = {
    "messageId": "id",
    "anonymousId": "anonymous_id",
    "userId": "user_id",
    "channel": "channel",
    "receivedAt": "received_at",
    "sentAt": "sent_at",
    "timestamp": "timestamp",
    "originalTimestamp": "original_timestamp",
}
# Besides `event`, which gives two columns.
_FIELDS: dict[TableKind, dict[str, str]] = {
    **dict.fromkeys(TableKind, _COMMON),
    TableKind.USERS: {"userId": "id", "receivedAt": "received_at", "messageId": MESSAGE_ID},
    TableKind.GROUPS: _COMMON | {"groupId": "group_id"},
    TableKind.ALIASES: _COMMON | {"previousId": "previous_id"},
    TableKind.PAGES: _COMMON | {"name": "name"},
    TableKind.SCREENS: _COMMON | {"name": "name"},
    TableKind.EXTRACT: _COMMON | {"messageId": MESSAGE_ID, "recordId": "id"},
}
_WITH_EVENT = (TableKind.TRACKS, TableKind.EVENT, TableKind.EXTRACT)

# What an event says of itself: where, and which of two values with one name is taken.
_OWN: dict[TableKind, dict[str, int]] = {
    TableKind.TRACKS: {},
    TableKind.EVENT: {"userProperties": 1, "properties": 2},
    TableKind.EXTRACT: {"userProperties": 1, "properties": 2},
    TableKind.PAGES: {"properties": 1},
    TableKind.SCREENS: {"properties": 1},
    TableKind.IDENTIFIES: {"traits": 1, "userProperties": 3},
    TableKind.USERS: {"traits": 1, "userProperties": 3},
    TableKind.GROUPS: {"traits": 1},
    TableKind.ALIASES: {"traits": 1},
}
_CONTEXT_TRAITS = 2  # before userProperties, after traits
_LAST = 9

_IPS: dict[Path, Claims] = {
    ("context", "ip"): (Claim("context_ip"), Claim("context_passed_ip")),
    ("request_ip",): (Claim("context_request_ip"), Claim("context_ip", 1)),
}
STAMPED = ("context_source_id", "context_source_type", "context_destination_id", "context_destination_type")

_TIMES = ("received_at", UUID_TS, "sent_at", "original_timestamp", "timestamp", "_timestamp")
_TEXTS = ("id", MESSAGE_ID, "event", "event_text", "user_id", "anonymous_id", "channel", "group_id", "previous_id")
_TEXTS_OF_CONTEXT = ("context_ip", "context_request_ip", "context_passed_ip", *STAMPED)


@dataclass(frozen=True)
class RudderColumns:
    """The columns of one table."""

    kind: TableKind
    names: NameRules = rudder_names.DEFAULT
    context_traits_too: bool = False  # allow_users_context_traits
    partition_keys: frozenset[str] = frozenset()
    is_first: bool = True  # of the tables of a message: what has no column is kept beside that row

    @property
    def message_column(self) -> str:
        return MESSAGE_ID if self.kind in (TableKind.USERS, TableKind.EXTRACT) else "id"

    @cached_property
    def standard(self) -> Mapping[str, str]:
        """The columns that are for one field only, and the places of these."""
        found = {column: f"/{field}" for field, column in (_COMMON | _FIELDS[self.kind]).items() if column != "id"}
        found["id"] = next(f"/{field}" for field, column in _FIELDS[self.kind].items() if column == "id")
        found["_timestamp"] = found["timestamp"]  # however an event has its names written
        if self.kind in _WITH_EVENT:
            found |= {"event_text": "/event", "event": "/event"}
        if self.kind is TableKind.TRACKS:
            found["record_id"] = "/recordId"
        for path, claims in reversed(_IPS.items()):  # the first has the last word
            found |= {claim.column: "/" + "/".join(path) for claim in claims}
        return found | dict.fromkeys((*STAMPED, UUID_TS, MESSAGE_ID), "eventlake")

    def _named(self, column: str) -> str:
        return rudder_names.escaped(column, self.names)

    @cached_property
    def always(self) -> Mapping[str, str]:
        of_all = {self.message_column: "/messageId", "received_at": "/receivedAt"}
        if self.kind is TableKind.USERS:
            # Theirs has the columns of identifies there as well, without values.
            others = ("anonymous_id", "channel", "sent_at", "original_timestamp", self._named("timestamp"))
            of_all |= {"id": "/userId", **dict.fromkeys(others, "")}
        return of_all | dict.fromkeys((UUID_TS, *STAMPED), "")

    @cached_property
    def fixed(self) -> Mapping[str, ColumnType]:
        texts = [*_TEXTS, *(("name",) if self.kind in _PAGE_LIKE else ())]
        mine = self.standard.keys() | {"timestamp"} | self.always.keys()
        types = {
            **dict.fromkeys(texts, ColumnType.STRING),
            **dict.fromkeys(_TIMES, ColumnType.TIMESTAMP),
            **dict.fromkeys((*_TEXTS_OF_CONTEXT, "record_id"), ColumnType.STRING),
        }
        return {name: kind for name, kind in types.items() if name in mine}

    def claims(self, path: Path) -> Claims | str:
        field = path[0]
        if path in _IPS:
            return _IPS[path]
        if field == "context":
            return self._of_context(path)
        if field in _OWN[self.kind]:
            return self._own(path, path[1:], _OWN[self.kind][field])
        if path == ("messageId",) and self.kind is TableKind.EXTRACT:
            return (Claim(MESSAGE_ID), Claim("id", 1))  # of what is no record
        if len(path) == 1 and field in _FIELDS[self.kind]:
            return (Claim(self._named(_FIELDS[self.kind][field])),)
        if path == ("event",) and self.kind in _WITH_EVENT:
            return (Claim("event_text"), Claim("event"))
        if path == ("recordId",) and self.kind is TableKind.TRACKS:
            return (Claim("record_id"),)
        if path == ("category",) and self.kind in _PAGE_LIKE:
            return (Claim("category", _LAST),)  # SDKs of Segment send it twice, theirs only among the properties
        if field in LEFT_OUT or not self.is_first:
            return NOWHERE
        if self.kind is TableKind.TRACKS and field in _OWN[TableKind.EVENT]:
            return NOWHERE  # the event's own table has them
        if len(path) > 1 and (field in _FIELDS[self.kind] or (field == "event" and self.kind in _WITH_EVENT)):
            return f"{field} is an object, and its column is for one value"
        return f"RudderStack's tables have no column for {field}"

    def _of_context(self, path: Path) -> Claims | str:
        name = self.column_of(path)
        if len(path) == 1:
            return "the context is not an object" if self.is_first else NOWHERE
        if name in self.standard:
            return f"the column {name} is for {self.standard[name]}" if self.is_first else NOWHERE
        if self.context_traits_too and self.kind in _OF_IDENTIFY and path[1] == "traits" and len(path) > 2:
            short = self._own(path, path[2:], _CONTEXT_TRAITS)
            return (Claim(name), *short) if not isinstance(short, str) else (Claim(name),)
        return (Claim(name),)

    def _own(self, path: Path, rest: Path, rank: int) -> Claims | str:
        if not rest:
            return f"{path[0]} is not an object"
        name = rudder_names.column_name(*rest, rules=self.names)
        if name == "name" and self.kind in _PAGE_LIKE:
            return (Claim(name, rank),)
        owner = self.standard.get(name) or ("/userId" if name == "user_id" else None)
        if owner is not None:
            return f"the column {name} is for {owner}"
        if name in self.partition_keys:
            return f"{name} is the name of a partition"
        return f"the column {name} is eventlake's own" if name == RESCUED_COLUMN else (Claim(name, rank),)

    def column_of(self, path: Path) -> str:
        if len(path) == 1 and path[0] in _FIELDS[self.kind]:
            return self._named(_FIELDS[self.kind][path[0]])
        if path in _IPS:
            return _IPS[path][0].column
        if path == ("event",) and self.kind in _WITH_EVENT:
            return "event_text"
        keys = path[1:] if path[0] in _OWN[self.kind] and len(path) > 1 else path
        return rudder_names.column_name(*keys, rules=self.names)


STANDARD_COLUMNS = frozenset(name for kind in TableKind for name in RudderColumns(kind).standard)
