"""Where a stage task collects events: a buffer for each route, found by what an event says of where it goes."""

from collections.abc import Iterator
from typing import Any

from eventlake.lake.routes import Route, Sent
from eventlake.reading.flatten import NewColumns, TableColumns
from eventlake.reading.route_buffer import RouteBuffer
from eventlake.schema.selection import SelectedColumns
from eventlake.tasks.gate import Gate
from eventlake.tasks.staged import StageContext


class NotAnEventError(Exception):
    """Why a line of JSON goes to the quarantine."""


class Buffers:
    def __init__(self, context: StageContext) -> None:
        self.gate = Gate(context)
        self._context = context
        self._buffers: dict[tuple[Route, frozenset[str]], RouteBuffer] = {}  # by route and options
        self._by_name: dict[Sent, RouteBuffer] = {}
        self._new_columns = NewColumns(context.sizes.new_columns)

    def __iter__(self) -> Iterator[RouteBuffer]:
        return iter(self._buffers.values())

    def _sent(self, event: Any) -> Sent:
        sent = self._context.dialect.sent(event)
        if isinstance(sent, str):
            raise NotAnEventError(sent)
        return sent

    def route_of(self, event: Any) -> Route:
        """Where an event would go that does not get in, whatever tables there are. Raises NotAnEventError."""
        return self._context.dialect.route(self._sent(event))

    def of(self, event: Any) -> RouteBuffer:
        """The buffer of an event's route. Raises NotAnEventError, or what the gate raises."""
        dialect, sent = self._context.dialect, self._sent(event)
        if sent in self._by_name:
            return self._by_name[sent]
        route = self.gate.opened(dialect.route(sent))
        buffer = self._buffers.get((route, sent.options))
        if buffer is None:  # one that is empty is there as well, though it looks false
            columns = [self._columns_of(key, sent, is_first=key == route[0]) for key in route]
            buffer = self._buffers[route, sent.options] = RouteBuffer(route, columns, dialect.reading)
        if len(self._by_name) < self._context.sizes.names_remembered:
            self._by_name[sent] = buffer
        return buffer

    def _columns_of(self, table_key: str, sent: Sent, *, is_first: bool) -> TableColumns:
        rules = self._context.dialect.columns(table_key, sent, is_first=is_first)
        if self._context.selection.left_out:
            rules = SelectedColumns(rules, table_key, self._context.selection)
        return TableColumns(
            rules,
            known=self._context.known_columns.get(table_key, ()),
            texts=self._context.text_columns.get(table_key, ()),
            column_limit=self._context.column_limit,
            new_columns=self._new_columns,
        )
