"""Tracking plans with all their versions, and how sources enforce them."""

import re
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from eventlake.control import policy_tables as tables
from eventlake.control.sources import Source
from eventlake.control.transformations import RESTORE, TransformationList
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.policies import plan as plans
from eventlake.policies.enforcement import Enforcement
from eventlake.policies.plan import Plan
from eventlake.policies.rules import RulesDocument


class PlanVersion(NamedTuple):
    version: int
    saved_at: int
    saved_by: str


class KnownPlan(NamedTuple):
    """A plan as lists show it."""

    id: str
    name: str
    version: int
    saved_at: int
    saved_by: str
    created_at: int
    rules: int
    description: str
    source_ids: tuple[str, ...]


class Plans:
    def __init__(self, engine: sa.Engine, now: Callable[[], int]) -> None:
        self._engine = engine
        self._now = now
        self.transformations = TransformationList(engine, now)

    def rules_of(self, source: Source) -> RulesDocument:
        """What a source has in the way of its events, but for suppression."""
        plan, enforcement = self.of_source(source.id)
        changes = self.transformations.of_source(source.id)
        return RulesDocument(source.id, plan, enforcement, changes, source.name, source.slug)

    def all(self) -> list[KnownPlan]:
        query = (
            sa.select(tables.plans.c.id, tables.plans.c.name, tables.plans.c.created_at, *_saved())
            .join(tables.plan_versions, _newest())
            .order_by(tables.plans.c.name)
        )
        with self._engine.connect() as connection:
            rows = list(connection.execute(query))
            found = list(connection.execute(sa.select(tables.source_plans.c.source_id, tables.source_plans.c.plan_id)))
        sources: dict[str, list[str]] = {}
        for source_id, plan_id in found:
            sources.setdefault(plan_id, []).append(source_id)
        known = []
        for row in rows:
            plan, of = _read(row.content), tuple(sorted(sources.get(row.id, ())))
            saved = (row.id, row.name, row.version, row.saved_at, row.saved_by, row.created_at)
            known.append(KnownPlan(*saved, len(plan.rules), plan.description, of))
        return known

    def get(self, name: str, version: int | None = None) -> Plan:
        """A plan by its name or id, as it is now or was in some version."""
        table = tables.plan_versions.c
        wanted = _newest() if version is None else sa.and_(table.plan_id == tables.plans.c.id, table.version == version)
        query = sa.select(tables.plans.c.id, table.content).join(tables.plan_versions, wanted).where(_called(name))
        with self._engine.connect() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise self._unknown(name, version)
        return msgspec.structs.replace(_read(row.content), id=row.id)

    def versions(self, name: str) -> list[PlanVersion]:
        """All versions of a plan, the newest first."""
        table = tables.plan_versions.c
        query = (
            sa.select(table.version, table.saved_at, table.saved_by)
            .join(tables.plans, table.plan_id == tables.plans.c.id)
            .where(_called(name))
            .order_by(table.version.desc())
        )
        with self._engine.connect() as connection:
            found = [PlanVersion(*row) for row in connection.execute(query)]
        if not found:
            raise self._unknown(name)
        return found

    def save(self, plan: Plan, by: str = "") -> PlanVersion:
        """Keep a plan: a new one, or the next version of the one with its id or name, if it differs from it."""
        content = plans.encoded(msgspec.structs.replace(plan, id=""))
        at, table = self._now(), tables.plans.c
        with self._engine.begin() as connection:
            query = sa.select(table.id, table.name, *_saved()).join(tables.plan_versions, _newest())
            named = connection.execute(query.where(table.name == plan.name)).first()
            known = (plan.id and connection.execute(query.where(table.id == plan.id)).first()) or named
            if named and known and named.id != known.id:
                raise InvalidSettingsError(f"another plan is called {plan.name!r}", fix="choose another name")
            if known is not None and bytes(known.content) == content:
                return PlanVersion(known.version, known.saved_at, known.saved_by)
            version = known.version + 1 if known else 1
            plan_id = known.id if known else plan.id or f"tp_{secrets.token_hex(12)}"
            if known:
                mine = tables.plans.update().where(table.id == plan_id)
                connection.execute(mine.values(version=version, name=plan.name))
            else:
                row = {"id": plan_id, "name": plan.name, "version": version, "created_at": at}
                connection.execute(tables.plans.insert().values(**row))
            kept = {"plan_id": plan_id, "version": version, "content": content, "saved_at": at, "saved_by": by}
            connection.execute(tables.plan_versions.insert().values(**kept))
        return PlanVersion(version, at, by)

    def delete(self, name: str) -> None:
        """Forget a plan and its versions; one that a source has is not forgotten."""
        plan_id = self.get(name).id
        with self._engine.begin() as connection:
            mine = tables.source_plans.c.plan_id == plan_id
            if connection.scalar(sa.select(sa.exists().where(mine))):
                raise InvalidSettingsError(
                    f"the plan {name!r} is connected to sources", fix="eventlake plan disconnect SOURCE, then delete it"
                )
            connection.execute(tables.plan_versions.delete().where(tables.plan_versions.c.plan_id == plan_id))
            connection.execute(tables.plans.delete().where(tables.plans.c.id == plan_id))

    # Sources

    def of_source(self, source_id: str) -> tuple[Plan | None, Enforcement]:
        """The plan of a source, if it has one, and how it is enforced."""
        plan_id, enforcement = self._of_source(source_id)
        return (self.get(plan_id) if plan_id else None), enforcement

    def connect(self, name: str, source_id: str) -> None:
        """Give a source a plan, in place of the one it may have. How it enforces plans stays."""
        self._set(source_id, self.get(name).id, self._of_source(source_id)[1])

    def disconnect(self, source_id: str) -> None:
        self._set(source_id, None, self._of_source(source_id)[1])

    def enforce(self, source_id: str, changes: Mapping[str, str]) -> Enforcement:
        """Change how a source enforces its plan: `track.allowUnplannedEvents` = `false`."""
        plan_id, enforcement = self._of_source(source_id)
        changed = with_changes(enforcement, changes)
        if source_id in (changed.forwarding_violations_to, changed.forwarding_blocked_events_to):
            raise InvalidSettingsError(
                "a source cannot forward to itself", fix="choose another source for what is not as planned"
            )
        self._set(source_id, plan_id, changed)
        return changed

    def restore(self, document: RulesDocument) -> None:
        """Let a source have what a lake says it had."""
        plan, source_id = document.plan, document.source_id
        if plan is not None:
            self.save(plan, RESTORE)
        self._set(source_id, self.get(plan.name).id if plan else None, document.enforcement)
        for one in document.transformations:
            self.transformations.save(source_id, one, RESTORE)

    def _of_source(self, source_id: str) -> tuple[str | None, Enforcement]:
        table = tables.source_plans.c
        with self._engine.connect() as connection:
            row = connection.execute(
                sa.select(table.plan_id, table.enforcement).where(table.source_id == source_id)
            ).first()
        return (row.plan_id, msgspec.json.decode(row.enforcement, type=Enforcement)) if row else (None, Enforcement())

    def _set(self, source_id: str, plan_id: str | None, enforcement: Enforcement) -> None:
        row = {"source_id": source_id, "plan_id": plan_id, "enforcement": msgspec.json.encode(enforcement)}
        with self._engine.begin() as connection:
            connection.execute(tables.source_plans.delete().where(tables.source_plans.c.source_id == source_id))
            connection.execute(tables.source_plans.insert().values(**row))

    def _unknown(self, name: str, version: int | None = None) -> NotFoundError:
        known = ", ".join(plan.name for plan in self.all()) or "none"
        what = f"version {version} of the plan {name!r}" if version is not None else f"plan {name!r}"
        return NotFoundError(f"there is no {what}", fix=f"there are: {known}; `eventlake plan import` makes one")


def slug_of(name: str) -> str:
    """A plan's name for addresses, as Segment's API has it."""
    return "-".join(re.findall(r"[a-z0-9]+", name.lower()))


def with_changes(enforcement: Enforcement, changes: Mapping[str, str]) -> Enforcement:
    """Other settings, from texts; names as Segment has them."""
    told: dict[str, Any] = msgspec.to_builtins(enforcement)
    for name, text in changes.items():
        if name not in _names(told):
            raise InvalidSettingsError(f"there is no setting {name!r}", fix=f"use one of {', '.join(_names(told))}")
        part, _, last = name.rpartition(".")
        (told[part] if part else told)[last] = {"true": True, "false": False}.get(text.lower(), text)
    try:
        return msgspec.convert(told, Enforcement)
    except msgspec.ValidationError as error:
        raise InvalidSettingsError(
            str(error), fix="use true or false; common violations are for ALLOW, BLOCK or OMIT_PROPERTIES"
        ) from error


def _names(told: Mapping[str, Any], before: str = "") -> list[str]:
    found = []
    for name, value in told.items():
        found += _names(value, f"{before}{name}.") if isinstance(value, dict) else [f"{before}{name}"]
    return found


def _saved() -> list[sa.Column[Any]]:
    table = tables.plan_versions.c
    return [table.version, table.saved_at, table.saved_by, table.content]


def _newest() -> sa.ColumnElement[bool]:
    table = tables.plan_versions.c
    return sa.and_(table.plan_id == tables.plans.c.id, table.version == tables.plans.c.version)


def _called(name: str) -> sa.ColumnElement[bool]:
    return sa.or_(tables.plans.c.name == name, tables.plans.c.id == name)


def _read(content: bytes) -> Plan:
    return msgspec.json.decode(content, type=Plan)
