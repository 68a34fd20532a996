"""When people are told, and what. Pure: from what is known of a connection to an alert, or to none.

An alert's id is made of what it is about, so that the same thing is told once, whoever finds it, and however often.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from eventlake.control.alerts import Alert, Kind
from eventlake.control.run_lines import Counts, LastLoaded, RunLine
from eventlake.events import instants
from eventlake.reports.words import count
from eventlake.timetable import DAY, MINUTE

TOLD_FAILURES = (1, 5, 20)  # in a row, as Segment does
FEW = 100  # rows; a share of less says nothing
_MOST_NAMES = 20
HOUR = 60 * MINUTE
VOLUME_OF = 6 * HOUR  # what is compared with the week before: a quarter of a day


class About(NamedTuple):
    """The connection that an alert is about."""

    source_id: str
    lake: str
    name: str


def sync_failed(about: About, run: RunLine, failures: int) -> Alert | None:
    """`failures` are those in a row, with this run."""
    if failures not in TOLD_FAILURES:
        return None
    times = "" if failures == 1 else f" {failures} times in a row"
    problem = (run.notices or ["it was interrupted"])[-1]
    fix = f"\nFix: {run.fix}" if run.fix else ""
    body = f"{problem}{fix}\n\nNothing is lost: events are kept in the raw archive, and the next sync loads them."
    return _alert(Kind.SYNC_FAILED, about, run.run_id, f"{about.name}: sync failed{times}", body, f"/runs/{run.run_id}")


def recovered(about: About, run: RunLine, failures: int) -> Alert | None:
    """`failures` are those in a row before this run, which finished."""
    if not failures:
        return None
    body = f"After {count(failures, 'failed sync')} in a row, a sync finished: {count(run.loaded or 0, 'row')} loaded."
    return _alert(
        Kind.SYNC_FAILED, about, f"{run.run_id} works", f"{about.name}: sync works again", body, f"/runs/{run.run_id}"
    )


def no_data(about: About, last: LastLoaded, now: int, hours: float) -> Alert | None:
    if now - last.at <= hours * HOUR:
        return None
    since, ago = _minute(last.at), count((now - last.at) // HOUR, "hour")
    if last.ever:
        body = f"The last sync that loaded something ended at {since} UTC, {ago} ago. Is the app still sending?"
    else:
        body = (
            f"It was connected at {since} UTC, {ago} ago, and nothing was loaded since. "
            "Does the app send with a write key of this source?"
        )
    return _alert(
        Kind.NO_DATA,
        about,
        f"{last.at} {hours:g}",
        f"{about.name}: no data for {hours:g} hours",
        body,
        f"/connections/{about.name}",
    )


def volume(about: About, start: int, rows: int, week_before: int, percent: float) -> Alert | None:
    """How many messages came in some hours from a moment on and were loaded, and in the same hours a week before."""
    if week_before < FEW or abs(rows - week_before) * 100 <= percent * week_before:
        return None
    change = round((rows - week_before) * 100 / week_before)
    hours = f"{_minute(start)} and {_minute(start + VOLUME_OF)[11:]} UTC"
    body = f"{count(rows, 'event')} came between {hours}; in the same hours of last week it was {week_before:,}."
    subject = f"{about.name}: {abs(change)} % {'more' if change > 0 else 'fewer'} events than a week ago"
    link = f"/health?source={about.name.split('/')[0]}"
    return _alert(Kind.VOLUME, about, f"{start} {percent:g}", subject, body, link)


def _minute(moment: int) -> str:
    return instants.to_text(moment)[:16].replace("T", " ")


_SHARES = {
    Kind.RESCUED: "values that did not fit their columns; they are kept in _rescued_data",
    Kind.QUARANTINED: "lines that are not events; they are kept in __segment_datalake.quarantine",
    Kind.BLOCKED: "blocked events",
}


def share(kind: Kind, about: About, run_id: str, counts: Counts, percent: float) -> Alert | None:
    """One of those kinds of which too many are told."""
    found = int(getattr(counts, kind.value))
    if counts.lines < FEW or found * 100 <= percent * counts.lines:
        return None
    part = found * 100 / counts.lines
    body = f"{found:,} {_SHARES[kind]}, of {count(counts.lines, 'line')} that were read."
    subject = f"{about.name}: {part:.1f} % {kind.value}"
    return _alert(kind, about, f"{run_id} {percent:g}", subject, body, f"/runs/{run_id}")


def new_columns(about: About, day: int, reports: Sequence[Sequence[dict[str, Any]]]) -> Alert | None:
    """What the reports of a day tell of tables and columns that were not there before."""
    tables = [line["table_name"] for lines in reports for line in lines[1:] if line.get("is_new")]
    columns = [
        f"{line['table_name']}.{column['name']} ({column['type']})"
        for lines in reports
        for line in lines[1:]
        if not line.get("is_new")
        for column in line.get("new_columns", ())
    ]
    if not tables and not columns:
        return None
    told = [*(f"new table {name}" for name in tables), *(f"new column {name}" for name in columns)]
    more = [f"… and {len(told) - _MOST_NAMES:,} more"] if len(told) > _MOST_NAMES else []
    date = instants.to_text(day * DAY)[:10]
    what = " and ".join(
        words
        for words in (
            count(len(tables), "new table") if tables else "",
            count(len(columns), "new column") if columns else "",
        )
        if words
    )
    body = f"On {date}:\n" + "\n".join([*told[:_MOST_NAMES], *more])
    link = f"/tables?source={about.name.split('/')[0]}"
    return _alert(Kind.NEW_COLUMNS, about, str(day), f"{about.name}: {what}", body, link)


def _alert(kind: Kind, about: About, what: str, subject: str, body: str, link: str) -> Alert:
    key = f"{kind.value} {about.source_id} {about.lake} {what}"
    made = hashlib.sha256(key.encode()).hexdigest()[:32]
    return Alert(made, 0, kind, about.lake, about.source_id, subject, body, link)
