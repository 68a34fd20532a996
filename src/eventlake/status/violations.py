"""What of events was not as planned in the last days: by event and field, with samples."""

from typing import NamedTuple

from eventlake.query.answer import query
from eventlake.query.views import quoted
from eventlake.timetable import DAY
from eventlake.workspace import Lake

MOST = 500
_SAMPLES = 20
_SHOWN = 20_000  # bytes of a line
_SECONDS = 30.0
_MEMORY = "1GB"


class Violated(NamedTuple):
    """Violations of one kind; those that blocked events have the reason."""

    source_id: str
    event_type: str
    event: str
    violation_type: str
    field: str
    action: str  # allowed, omitted or blocked
    reason: str
    events: int
    last: int


class Sample(NamedTuple):
    received_at: int
    message_id: str
    run_id: str
    raw_file: str
    line: int
    description: str
    text: str  # the line as it was sent; empty if it was not kept


class Kind(NamedTuple):
    """What is asked for; whatever is empty stands for all."""

    source_id: str = ""
    event: str = ""
    violation_type: str = ""
    field: str = ""
    action: str = ""

    def condition(self, since: int) -> str:
        told = [f"coalesce({name}, '') = {quoted(value)}" for name, value in self._asdict().items() if value]
        return " and ".join([f"received_at >= make_timestamptz({since:d})", *told])


def violations(lake: Lake, now: int, kind: Kind = Kind(), days: int = 7) -> list[Violated]:  # noqa: B008 - immutable
    """How many events, by what was wrong with them and what became of them; the most frequent first."""
    found = query(
        lake,
        f"""select source_id, event_type, coalesce(event, '') as event, coalesce(violation_type, '') as violation_type,
            coalesce(field, '') as field, action, coalesce(reason, '') as reason,
            count(*) as events, epoch_us(max(received_at)) as last
        from __segment_datalake.violations where {kind.condition(now - days * DAY)}
        group by all order by events desc, source_id, event, field, violation_type, action limit {MOST:d}""",  # noqa: S608
        timeout=_SECONDS,
        memory=_MEMORY,
    )
    return [Violated(**row) for row in found.to_pylist()]


def samples(lake: Lake, now: int, kind: Kind, days: int = 7) -> list[Sample]:
    """Some events of a kind, those of which the line was kept first, then the newest."""
    found = query(
        lake,
        f"""select epoch_us(received_at) as received_at, coalesce(message_id, '') as message_id, run_id, raw_file, line,
            coalesce(description, '') as description, content
        from __segment_datalake.violations where {kind.condition(now - days * DAY)}
        order by content is null, received_at desc, raw_file, line limit {_SAMPLES:d}""",  # noqa: S608
        timeout=_SECONDS,
        memory=_MEMORY,
    )
    return [
        Sample(**{key: value for key, value in row.items() if key != "content"}, text=_text(row["content"]))
        for row in found.to_pylist()
    ]


def _text(content: bytes | None) -> str:
    return (content or b"")[:_SHOWN].decode("utf-8", "replace")
