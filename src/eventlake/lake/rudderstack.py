"""RudderStack's dialect: the tables of its S3 data lake.

A track call has a row in `tracks` and one in the table of its event, an identify call one in `identifies` and one in
`users`. Whatever a cast changes or refuses also is a row of `rudder_discards`.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from eventlake.events import instants
from eventlake.events.envelope import CALLS, is_there, reject_reason
from eventlake.lake import layout
from eventlake.lake.layout import Folders, TimeWindow
from eventlake.lake.routes import Route, Sent, all_routes
from eventlake.schema import rudder_names
from eventlake.schema.claims import ColumnRules, Path
from eventlake.schema.names import short_hash, shortened
from eventlake.schema.reading import MAX_DEPTH, Reading
from eventlake.schema.rudder_columns import STAMPED, UUID_TS, RudderColumns, TableKind
from eventlake.schema.rudder_names import NameRules
from eventlake.schema.tallies import Tallies
from eventlake.schema.types import ColumnType

if TYPE_CHECKING:  # takes its time to load, and commands that only look shall answer at once
    from eventlake.schema.cast import Casts
    from eventlake.schema.kinds import Typed

DISCARDS = "rudder_discards"
MAX_FOLDER_LENGTH = 200

_TABLES = {"identify": "identifies", "page": "pages", "screen": "screens", "group": "groups", "alias": "aliases"}
_KINDS = {kind.value: kind for kind in TableKind if kind not in (TableKind.EVENT, TableKind.EXTRACT)}
_DESTINATIONS = ("S3_DATALAKE", "DATA_WAREHOUSE")
_OPTIONS = ("skipTracksTable", "skipUsersTable", "skipReservedKeywordsEscaping", "useBlendoCasing")
_ENDS_IN_HASH = re.compile(r"_[0-9a-f]{8}$")
_DEPTH_OF_CLOUD = 5  # keys, with the one of the part of the event that is flattened


class RudderStackDialect(msgspec.Struct, frozen=True, tag="rudderstack"):
    source_id: str
    lake: str
    namespace: str
    date_partition: TimeWindow = TimeWindow()
    skip_tracks_table: bool = False
    skip_users_table: bool = True
    underscore_divide_numbers: bool = False
    allow_users_context_traits: bool = False
    is_cloud: bool = False  # what the source sends are records of a cloud application

    folders: ClassVar[Folders] = layout.RUDDERSTACK
    numbers: ClassVar[ColumnType] = ColumnType.DOUBLE
    objects_as_text: ClassVar[bool] = False
    discards: ClassVar[str | None] = DISCARDS
    longest_table: ClassVar[int] = rudder_names.MAX_LENGTH + 1  # with an underscore before it
    longest_column: ClassVar[int] = rudder_names.MAX_LENGTH

    @property
    def database(self) -> str:
        return self.namespace

    @property
    def reading(self) -> Reading:
        depth = _DEPTH_OF_CLOUD if self.is_cloud else MAX_DEPTH
        return Reading(max_depth=depth, leaves_out_empty=True, last_key_wins=True)

    def sent(self, event: Any) -> Sent | str:
        """What an event says of where it goes; or the reason why it is none. Its type may be in capitals."""
        sent = event.get("type") if isinstance(event, dict) else None
        call = sent.lower() if isinstance(sent, str) else sent
        is_extract = self.is_cloud and call == "extract"
        reason = reject_reason(event, "track" if is_extract else call)
        if reason:
            return reason
        if is_extract and not is_there(event.get("recordId")):
            return "record_id_not_defined"
        name = event["event"] if call in ("track", "extract") else ""
        return Sent(str(call), name, is_there(event.get("userId")), frozenset(_options(event.get("integrations"))))

    def is_special(self, path: Path) -> bool:
        return path[0] == "integrations" and len(path) > 2 and path[1] in _DESTINATIONS and path[2] == "options"

    def route(self, sent: Sent) -> Route:
        if sent.call == "extract":
            return (self._event_table(sent),)
        if sent.call == "track":
            skips = self.skip_tracks_table or "skipTracksTable" in sent.options
            return (self._event_table(sent),) if skips else ("tracks", self._event_table(sent))
        if sent.call == "identify":
            skips = self.skip_users_table or "skipUsersTable" in sent.options or not sent.has_user
            return ("identifies",) if skips else ("identifies", "users")
        return (_TABLES[sent.call],)

    def _event_table(self, sent: Sent) -> str:
        return rudder_names.table_name(sent.event, self._names(sent.options))

    def _names(self, options: frozenset[str] = frozenset()) -> NameRules:
        return NameRules(
            self.underscore_divide_numbers, "skipReservedKeywordsEscaping" in options, "useBlendoCasing" in options
        )

    def event_table(self, event: str) -> str:
        return rudder_names.table_name(event, self._names())

    def routes(self, table_keys: frozenset[str]) -> frozenset[Route]:
        """All routes that messages can have taken, if these are the tables."""
        of_events = (("tracks", key) for key in table_keys - _KINDS.keys() - {DISCARDS})
        of_calls = ((key,) for key in table_keys & _KINDS.keys())
        return all_routes((*of_events, *of_calls, ("identifies", "users")))

    def tables_of_call(self, call: str) -> frozenset[str]:
        of_call = {"identify": {"identifies", "users"}, "track": {"tracks"}}.get(call, {_TABLES.get(call, "")})
        return frozenset(of_call) if call in CALLS else frozenset()

    @property
    def data_folder(self) -> str:
        return f"{self.folders.data}/{self.namespace}"

    def table_name(self, table_key: str) -> str:
        return table_key

    def location(self, table_key: str) -> str:
        """The folder of a table, which is called like it unless no file system could have such a name."""
        folder = table_key.replace("\\", "_")  # which separates folders in some places
        folder = folder if folder == table_key else f"{folder}_{short_hash(table_key)}"
        return f"{self.data_folder}/{shortened(folder, MAX_FOLDER_LENGTH)}"

    def key_at(self, location: str) -> str | None:
        key = location.rpartition("/")[2]
        is_cut = len(key) == MAX_FOLDER_LENGTH and _ENDS_IN_HASH.search(key)  # what was there is not to be known
        return None if is_cut or self.location(key) != location else key

    def columns(self, table_key: str, sent: Sent | None = None, *, is_first: bool = True) -> ColumnRules:
        of_event = TableKind.EXTRACT if self.is_cloud else TableKind.EVENT
        return RudderColumns(
            _KINDS.get(table_key, of_event),
            self._names(sent.options if sent else frozenset()),
            self.allow_users_context_traits,
            frozenset(self.date_partition.keys),
            is_first,
        )

    def tallied(self, typed: "Typed") -> Tallies:
        from eventlake.schema import rudder_values  # noqa: PLC0415

        return rudder_values.tallied(typed)

    @property
    def casts(self) -> "Casts":
        from eventlake.schema import rudder_values  # noqa: PLC0415

        return rudder_values.CASTS

    def received(self, sent: Any) -> int | None:
        if not isinstance(sent, str):
            return None
        instant = instants.parse(sent)
        if instant:  # which also knows zones without minutes
            return instant.micros
        from eventlake.schema import rudder_values  # noqa: PLC0415

        cell = rudder_values.timestamp(sent)
        return cell.value if cell else None

    def constants(self, run_id: str) -> Mapping[str, Any]:
        stamps = (self.source_id, "HTTP", self.lake, "S3_DATALAKE")
        whole_seconds = int(run_id) // 10**9 * 10**6
        return {**dict(zip(STAMPED, stamps, strict=True)), UUID_TS: whole_seconds}

    def maker(self, table_key: str, column: str) -> Callable[[str], str] | None:
        has_both = table_key == "tracks" or (table_key not in _KINDS and not self.is_cloud)
        return partial(rudder_names.event_name, rules=self._names()) if column == "event" and has_both else None


def _options(integrations: Any) -> list[str]:
    """The options that an event sets, for any destination of this kind."""
    found = []
    for destination in _DESTINATIONS:
        settings = integrations.get(destination) if isinstance(integrations, dict) else None
        options = settings.get("options") if isinstance(settings, dict) else None
        found += [name for name in _OPTIONS if isinstance(options, dict) and options.get(name) is True]
    return found
