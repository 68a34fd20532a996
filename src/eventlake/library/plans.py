"""What can be done with plans beside keeping them: files, trying them on events, letting in what they blocked."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from eventlake.archive import layout as archive
from eventlake.archive.annexes import whole_archive
from eventlake.archive.reader import Lines, UnreadableFileError, opened, read_lines
from eventlake.control.connections import Connection
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.events import instants
from eventlake.events.envelope import reject_reason
from eventlake.lake.violations import DAYS_KEPT
from eventlake.policies import plan as plans
from eventlake.policies import plan_csv
from eventlake.policies.plan import Plan, PlanError, Rule
from eventlake.policies.rules import Rules, RulesDocument
from eventlake.reading import exact_json
from eventlake.schema import best_effort
from eventlake.sync import requests
from eventlake.sync.jobs import Job
from eventlake.timetable import DAY
from eventlake.workspace import Workspace

_RULE_FILE = re.compile(r"(?P<key>.*?)(?:\.v(?P<version>[1-9]\d*))?\.json", re.DOTALL)
_FOLDERS = {"track": "TRACK", "page": "PAGE", "screen": "SCREEN"}
_SINGLE = {"common": "COMMON", "identify": "IDENTIFY", "group": "GROUP", "page": "PAGE", "screen": "SCREEN"}


@contextmanager
def explained(where: str = "") -> Iterator[None]:
    """What is wrong with a plan, as an error that says what to do."""
    try:
        yield
    except PlanError as error:
        raise InvalidSettingsError(f"{where}{error}", fix="correct it; docs/plans.md shows each form") from error


def read_plan(path: Path, name: str | None = None) -> Plan:
    """A plan from a file in one of Segment's forms (JSON or CSV), or from a folder with a schema in each file."""
    with explained(f"{path}: "):
        try:
            if path.is_dir():
                return plans.of_rules(name or path.resolve().name, _rules_in(path))
            content = path.read_bytes()
        except OSError as error:
            raise NotFoundError(f"{path} cannot be read: {error.strerror}", fix="check the name of the file") from error
        if path.suffix.lower() == ".csv":
            return plan_csv.decoded(name or path.stem, content)
        return _called(plans.decoded(content), name)


def told_plan(text: str, name: str | None = None) -> Plan:
    """A plan from what somebody wrote into a form: JSON, or CSV, which has no name for it."""
    with explained():
        if text.lstrip().startswith("{"):
            return _called(plans.decoded(text.encode()), name)
        if not name:
            raise PlanError("a spreadsheet has no name for the plan: give it one")
        return plan_csv.decoded(name, text.encode())


def _called(plan: Plan, name: str | None) -> Plan:
    return msgspec.structs.replace(plan, name=name) if name else plan


def _rules_in(folder: Path) -> Iterator[Rule]:
    for file in sorted(folder.glob("*.json")):
        name, version = _named(file)
        if name in _SINGLE:
            yield Rule(_SINGLE[name], _schema(file), "", version)  # type: ignore[arg-type]
    for below, kind in _FOLDERS.items():
        for file in sorted((folder / below).glob("*.json")):
            yield Rule(kind, _schema(file), *_named(file))  # type: ignore[arg-type]


def _named(file: Path) -> tuple[str, int]:
    """The key and the version that the name of a file tells."""
    found = _RULE_FILE.fullmatch(file.name)
    assert found  # noqa: S101 - the glob sees to it
    return unquote(found["key"]), int(found["version"] or 1)


def _schema(file: Path) -> Any:
    try:
        return msgspec.json.decode(file.read_bytes())
    except msgspec.DecodeError as error:
        raise PlanError(f"{file.name}: not JSON: {error}") from error


def write_plan(plan: Plan, path: Path) -> set[str]:
    """Write a plan to a file (.json or .csv), or to a folder with a schema in each file.

    Gives the keywords of its schemas that this form has no place for.
    """
    if path.suffix.lower() == ".csv":
        path.write_text(plan_csv.encoded(plan), encoding="utf-8", newline="")
        return plan_csv.left_out(plan)
    if path.suffix.lower() == ".json":
        path.write_bytes(plans.encoded(plan))
        return set()
    for rule in plan.rules:
        version = f".v{rule.version}" if rule.version != 1 else ""
        # Of an event that is called "Order.v2", the dot must not look like that of a version.
        key = rule.key.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
        name = re.sub(r"\.(?=v\d+$)", "%2E", key)
        below = f"{rule.type.lower()}/{name}" if rule.key else rule.type.lower()
        file = path / f"{below}{version}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.format(msgspec.json.encode(rule.json_schema), indent=2) + b"\n")
    return set()


class Sent(NamedTuple):
    """An event as it lies in the archive."""

    event: dict[str, Any]
    line: bytes


def events_sent(
    workspace: Workspace, source_id: str, start: int | None, stop: int | None, limit: int
) -> Iterator[Sent]:
    """Events of a source that were received in [start, stop): those of the last days first, file by file.

    Within a day, files that arrived late may hold older events than those before them.
    """
    annexes = workspace.annexes(source_id)
    whole = whole_archive(workspace.archive, annexes)
    files = [*archive.raw_files(workspace.archive, source_id), *(file for annex in annexes for file in annex.wanted())]
    for file in sorted(files, key=lambda file: (archive.day_micros(file.path), file.path), reverse=True):
        if start is not None and 0 < archive.day_micros(file.path) <= start - 2 * DAY:
            continue  # nothing is put into the archive long before it is received; where no day is told, it is read
        try:
            with opened(whole, file.path) as raw:
                for block in read_lines(raw):
                    for line in _lines(block) if isinstance(block, Lines) else ():
                        sent = _parsed(line)
                        if sent is None or reject_reason(sent.event, sent.event.get("type")):
                            continue
                        told = best_effort.received(sent.event.get("receivedAt"))
                        received = archive.day_micros(file.path) if told is None else told
                        if (start is None or received >= start) and (stop is None or received < stop):
                            yield sent
                            limit -= 1
                            if not limit:
                                return
        except UnreadableFileError:
            continue  # a sync tells of it


def _lines(block: Lines) -> Iterator[bytes]:
    for begin, end in zip(block.starts.tolist(), block.ends.tolist(), strict=True):
        yield bytes(block.text[begin:end])


def _parsed(line: bytes) -> Sent | None:
    try:
        event = exact_json.parse(line).value
    except exact_json.NotJsonError:
        return None
    return Sent(event, line) if isinstance(event, dict) else None


class Tried(NamedTuple):
    """What a plan would make of events."""

    events: int
    violations: Counter[tuple[str, str, str]]  # by event, type and field
    blocked: Counter[str]  # by reason
    omitted: Counter[str]  # by place


def tried(document: RulesDocument, events: Iterable[Sent]) -> Tried:
    """Try rules on events; nothing is changed by it."""
    rules, found = Rules(document), Tried(0, Counter(), Counter(), Counter())
    for sent in events:
        decision = rules.decided(sent.event)
        name = str(sent.event.get("event") or sent.event.get("name") or sent.event.get("type"))
        found.violations.update((name, one.type, one.field) for one in decision.verdict.violations)
        found.omitted.update(decision.verdict.omitted + decision.verdict.omitted_on_violation)
        if decision.blocked:
            found.blocked[decision.blocked] += 1
        found = found._replace(events=found.events + 1)
    return found


def release(workspace: Workspace, connection: Connection) -> Job:
    """The replay that lets in what was blocked in the last 30 days, as far as the rules of today do."""
    return requests.replay(workspace.lake(connection.lake), connection, *blocked_period(workspace, connection), ())


def blocked_period(workspace: Workspace, connection: Connection) -> tuple[int, int]:
    """From the first to the last event that runs of the last 30 days blocked, syncs and replays."""
    now = workspace.clock.now()
    runs = workspace.lake(connection.lake).runs.begun_between(connection.source.id, now - DAYS_KEPT * DAY, now + 1)
    told = (time for run in runs for head in (run.report or [])[:1] for time in head.get("blocked_between", ()))
    blocked = [instant.micros for time in told if (instant := instants.parse(time))]
    if not blocked:
        raise NotFoundError(
            f"nothing of {connection.name} was blocked in the last 30 days", fix="nothing is to be done"
        )
    return min(blocked), max(blocked) + 1
