"""The transformations of sources, in the order in which they are applied."""

import secrets
from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from eventlake.control import policy_tables as tables
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.policies.transformations import HIDDEN, Transformation, TransformationError, Transformations

_table = tables.transformations

RESTORE = "restore"  # who saves what a lake kept, which is without keys; nothing is loaded before they are given


class TransformationList:
    def __init__(self, engine: sa.Engine, now: Callable[[], int]) -> None:
        self._engine = engine
        self._now = now

    def of_source(self, source_id: str) -> tuple[Transformation, ...]:
        query = sa.select(_table.c.content).where(_table.c.source_id == source_id).order_by(_table.c.position)
        with self._engine.connect() as connection:
            found = list(connection.scalars(query))
        return tuple(msgspec.json.decode(content, type=Transformation) for content in found)

    def get(self, source_id: str, name: str) -> Transformation:
        """One of a source, by its id or name."""
        for one in self.of_source(source_id):
            if name in (one.id, one.name):
                return one
        known = ", ".join(one.name for one in self.of_source(source_id)) or "none"
        raise NotFoundError(f"there is no transformation {name!r}", fix=f"the source has: {known}")

    def save(self, source_id: str, told: Any, by: str = "") -> Transformation:
        """Keep a transformation: a new one, at the end, or one that takes the place of the one with its id or name."""
        made = told if isinstance(told, Transformation) else decoded(told)
        others = self.of_source(source_id)
        before = next((one for one in others if made.id == one.id), None)
        named = next((one for one in others if made.name == one.name), None)
        if before and named and before.id != named.id:
            raise InvalidSettingsError(f"another transformation is called {made.name!r}", fix="choose another name")
        before = before or named
        made = msgspec.structs.replace(made, id=before.id if before else f"tf_{secrets.token_hex(12)}")
        made = made if by == RESTORE else _with_its_key(made, before)
        for one in others:
            if one.id != made.id and one.if_.strip() == made.if_.strip() and one.enabled and made.enabled:
                raise InvalidSettingsError(
                    f"the transformation {one.name!r} has the same condition",
                    fix="put both into one, or disable one of them",
                )
        _checked(made)
        row = {"content": msgspec.json.encode(made), "changed_at": self._now(), "changed_by": by}
        with self._engine.begin() as connection:
            if before:
                connection.execute(_table.update().where(_table.c.id == made.id).values(**row))
            else:
                last = connection.scalar(
                    sa.select(sa.func.max(_table.c.position)).where(_table.c.source_id == source_id)
                )
                place = {"id": made.id, "source_id": source_id, "position": (last or 0) + 1}
                connection.execute(_table.insert().values(**place, **row))
        return made

    def find(self, which: str) -> tuple[str, Transformation]:
        """The source that has a transformation, and the transformation, by its id."""
        query = sa.select(_table.c.source_id, _table.c.content).where(_table.c.id == which)
        with self._engine.connect() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise NotFoundError(f"there is no transformation {which!r}", fix="GET /transformations lists them")
        return row.source_id, msgspec.json.decode(row.content, type=Transformation)

    def remove(self, source_id: str, name: str) -> Transformation:
        gone = self.get(source_id, name)
        with self._engine.begin() as connection:
            connection.execute(_table.delete().where(_table.c.id == gone.id))
        return gone


def decoded(told: Any) -> Transformation:
    """A transformation in the form of Segment's API. What Segment's has and ours does not need is left aside."""
    if isinstance(told, dict):
        told = {key: value for key, value in told.items() if key not in ("sourceId", "destinationMetadataId")}
    try:
        return msgspec.convert(told, Transformation)
    except msgspec.ValidationError as error:
        raise InvalidSettingsError(
            f"not a transformation: {error}",
            fix='it needs at least {"name": …, "if": "event=\'X\'"}; see docs/plans.md',
        ) from error


def _with_its_key(made: Transformation, before: Transformation | None) -> Transformation:
    """With the key it has, if somebody sends back what they were shown, which is without it."""
    hashes, old = made.hash_properties_configuration, before and before.hash_properties_configuration
    if hashes is None or hashes.key != HIDDEN:
        return made
    if not old or old.key in (None, "", HIDDEN):
        raise InvalidSettingsError(f"{made.name}: a key is missing", fix=f"write it where {HIDDEN} is")
    return msgspec.structs.replace(made, hash_properties_configuration=msgspec.structs.replace(hashes, key=old.key))


def _checked(made: Transformation) -> None:
    if not made.name.strip():
        raise InvalidSettingsError("a transformation has a name", fix="give it one")
    try:
        Transformations([msgspec.structs.replace(made, enabled=True)])
    except TransformationError as error:
        raise InvalidSettingsError(
            str(error), fix="correct it; docs/plans.md has the language of conditions"
        ) from error
