"""Segment's dialect: one table for each type of event, as Segment Data Lakes has them."""

from collections.abc import Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from eventlake.events import instants
from eventlake.events.envelope import CALLS, reject_reason
from eventlake.lake import layout
from eventlake.lake.layout import DatePartition, Folders
from eventlake.lake.routes import Route, Sent, all_routes
from eventlake.schema import claims, names
from eventlake.schema.claims import ColumnRules, Path
from eventlake.schema.reading import SEGMENT, Reading
from eventlake.schema.tallies import Tallies
from eventlake.schema.types import ColumnType

if TYPE_CHECKING:  # takes its time to load, and commands that only look shall answer at once
    from eventlake.schema.cast import Casts
    from eventlake.schema.kinds import Typed


class TableNaming(Enum):
    PREFIXED = "prefixed"  # track_order_completed
    PLAIN = "plain"  # order_completed
    PLURAL = "plural"  # tracks_order_completed, identifies: as Segment's first documents had them


def _plural(table_key: str) -> str:
    """A table's name, of which the call is in the plural."""
    call, underscore, rest = table_key.partition("_")
    return f"{PLURALS.get(call, call)}{underscore}{rest}"


PLURALS = {
    **{call: f"{call}s" for call in ("track", "page", "screen", "group")},
    "identify": "identifies",
    "alias": "aliases",
}


class SegmentDialect(msgspec.Struct, frozen=True, tag="segment"):
    source_folder: str  # the source's id, or its slug
    database: str
    table_prefix: str = ""
    date_partition: DatePartition = DatePartition.DAY_HOUR
    naming: TableNaming = TableNaming.PREFIXED
    exact_casts: bool = False

    folders: ClassVar[Folders] = layout.SEGMENT
    reading: ClassVar[Reading] = SEGMENT
    numbers: ClassVar[ColumnType] = ColumnType.DECIMAL
    discards: ClassVar[str | None] = None
    longest_table: ClassVar[int] = names.MAX_TABLE_LENGTH
    longest_column: ClassVar[int] = names.MAX_COLUMN_LENGTH

    def sent(self, event: Any) -> Sent | str:
        """What an event says of where it goes; or the reason why it is none."""
        reason = reject_reason(event)
        if reason:
            return reason
        call = event["type"]
        return Sent(call, event["event"] if call == "track" else "")

    def is_special(self, path: Path) -> bool:
        """Whether values at a place, besides the type and the name, decide where an event goes."""
        del path
        return False

    def route(self, sent: Sent) -> Route:
        """The tables of a message: here always one, by the type of the event (`identify`, `track_order_completed`)."""
        return (sent.call if sent.call != "track" else self.event_table(sent.event),)

    def event_table(self, event: str) -> str:
        """The key of the table that is for track calls with this name."""
        name = names.event_name(event)
        # In plain naming, a track event called "Page" must not land among the page calls.
        is_plain = self.naming is TableNaming.PLAIN and name not in CALLS - {"track"}
        return names.shortened(name if is_plain else f"track_{name}", names.MAX_TABLE_LENGTH)

    def event_of(self, table_key: str) -> str | None:
        """What its track calls are called, as names of tables are written; None if a table is for other calls."""
        if table_key in CALLS - {"track"}:
            return None
        bare = table_key.removeprefix("track_")
        return bare if self.naming is not TableNaming.PLAIN or bare in CALLS - {"track"} else table_key

    def routes(self, table_keys: frozenset[str]) -> frozenset[Route]:
        """All routes that messages can have taken, if these are the tables."""
        return all_routes((key,) for key in table_keys)

    def tables_of_call(self, call: str) -> frozenset[str]:
        """The keys of the tables that are for calls of a type other than track."""
        return frozenset({call} & CALLS)

    @property
    def objects_as_text(self) -> bool:
        """Whether an object for a column of text is JSON text there, instead of getting columns for its members."""
        return not self.exact_casts

    @property
    def data_folder(self) -> str:
        """Where all tables of the source are."""
        return f"{self.folders.data}/{self.source_folder}"

    def table_name(self, table_key: str) -> str:
        name = _plural(table_key) if self.naming is TableNaming.PLURAL else table_key
        return f"{self.table_prefix}_{name}" if self.table_prefix else name

    def location(self, table_key: str) -> str:
        return f"{self.data_folder}/segment_type={table_key}"

    def key_at(self, location: str) -> str | None:
        """The key of the table that lies there; None if none of the source's does."""
        folder, mark, key = location.partition("/segment_type=")
        return key if mark and folder == self.data_folder and "/" not in key else None

    def columns(self, table_key: str, sent: Sent | None = None, *, is_first: bool = True) -> ColumnRules:
        """The columns of a table, for events that ask for nothing special or say what they do."""
        del table_key, sent, is_first
        return claims.SEGMENT

    def tallied(self, typed: "Typed") -> Tallies:
        """What the values of a column tell about the type it should have."""
        from eventlake.schema import tallying  # noqa: PLC0415

        return tallying.tallied(typed)

    @property
    def casts(self) -> "Casts":
        """How values are brought into the types of columns."""
        from eventlake.schema import best_effort, cast  # noqa: PLC0415

        return cast.EXACT if self.exact_casts else best_effort.BEST_EFFORT

    def received(self, sent: Any) -> int | None:
        """When an event was received that says so, in microseconds since 1970; None if it says something else.

        It is what the cast of the column makes of it.
        """
        instant = instants.parse(sent) if isinstance(sent, str) else None
        if instant or self.exact_casts:
            return instant.micros if instant else None
        from eventlake.schema import best_effort  # noqa: PLC0415

        return best_effort.received(sent)

    def constants(self, run_id: str) -> Mapping[str, Any]:
        """The columns that have the same value in all rows of a run."""
        del run_id
        return {}

    def maker(self, table_key: str, column: str) -> Callable[[str], str] | None:
        """What makes the texts of a column out of those at its place; None if they are the same."""
        del table_key, column
        return None
