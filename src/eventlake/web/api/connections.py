"""Lakes, and the connections of sources to them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from eventlake.control.connections import Connection
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.events import instants
from eventlake.library.workspace import Workspace
from eventlake.status import replay_size
from eventlake.status.connections import status_of, statuses
from eventlake.web.access import Admin, Operator, TheWorkspace, reader
from eventlake.web.api.models import (
    CheckOut,
    ConnectionChange,
    ConnectionOut,
    LakeOut,
    NewConnection,
    NewReplay,
    OrderOut,
    ReplaySize,
    settings_given,
)
from eventlake.web.checks import checks_of

router = APIRouter(tags=["connections"])
looking = [Depends(reader)]
Moment = Annotated[str | None, Query(max_length=40, examples=["2026-11-17T00:00:00Z"])]


@router.get("/lakes", dependencies=looking)
def list_lakes(workspace: TheWorkspace) -> list[LakeOut]:
    """The lakes that the settings file names."""
    return [
        LakeOut(
            name=name,
            root=lake.root,
            dialect=lake.dialect,
            catalog=lake.catalog.kind,
            runner=lake.runner.kind,
        )
        for name, lake in workspace.settings.all_lakes.items()
    ]


@router.get("/connections", dependencies=looking)
def list_connections(workspace: TheWorkspace) -> list[ConnectionOut]:
    """All connections, each with its last and its next sync."""
    return [ConnectionOut.of(one) for one in statuses(workspace)]


@router.post("/connections", status_code=201)
def connect(new: NewConnection, changes: Admin, workspace: TheWorkspace) -> ConnectionOut:
    """Connect a source to a lake."""
    return _shown(workspace, changes.connect(new.source, new.lake, settings_given(new.settings), like=new.like))


@router.get("/connections/{source}/{lake}", dependencies=looking)
def get_connection(source: str, lake: str, workspace: TheWorkspace) -> ConnectionOut:
    """One connection."""
    return _shown(workspace, workspace.connections.get(f"{source}/{lake}"))


@router.patch("/connections/{source}/{lake}")
def change_connection(
    source: str, lake: str, change: ConnectionChange, changes: Admin, workspace: TheWorkspace
) -> ConnectionOut:
    """Change settings, copy them from another connection, or switch it on or off.

    A setting that would break existing tables is refused; what is wrong with which setting is in `fields`.
    """
    name = f"{source}/{lake}"
    workspace.connections.get(name)
    if change.like and change.settings:
        raise InvalidSettingsError("settings are either copied or given", fix="send `like` or `settings`, not both")
    if change.like:
        changes.copy_settings(change.like, name)
    if change.settings:
        changes.set_settings(name, settings_given(change.settings))
    if change.enabled is not None:
        changes.enable_connection(name, change.enabled)
    return _shown(workspace, workspace.connections.get(name))


@router.delete("/connections/{source}/{lake}", status_code=204)
def disconnect(source: str, lake: str, changes: Admin) -> None:
    """Load nothing of the source into the lake any more. Its tables stay."""
    changes.disconnect(f"{source}/{lake}")


@router.post("/connections/{source}/{lake}/syncs", status_code=202)
def order_sync(source: str, lake: str, changes: Operator, workspace: TheWorkspace) -> OrderOut:
    """Sync now: a scheduler carries it out."""
    return _ordered(workspace, changes.order_sync(f"{source}/{lake}").id)


@router.post("/connections/{source}/{lake}/replays", status_code=202)
def order_replay(source: str, lake: str, wanted: NewReplay, changes: Operator, workspace: TheWorkspace) -> OrderOut:
    """Load a period again from the raw archive."""
    start, stop = _micros(wanted.start), _micros(wanted.stop)
    order = changes.order_replay(f"{source}/{lake}", start, stop, wanted.events, resume=wanted.resume)
    return _ordered(workspace, order.id)


@router.post("/connections/{source}/{lake}/checks", status_code=202)
def begin_check(source: str, lake: str, _: Operator, workspace: TheWorkspace, request: Request) -> CheckOut:
    """Try everything that a sync of it needs, one step after the other; what is written to try it is deleted."""
    return CheckOut.of(checks_of(request).begin(workspace.connections.get(f"{source}/{lake}")))


@router.get("/connections/{source}/{lake}/checks", dependencies=looking)
def get_check(source: str, lake: str, workspace: TheWorkspace, request: Request) -> CheckOut:
    """The last test of it, also while it goes on."""
    found = checks_of(request).of(workspace.connections.get(f"{source}/{lake}"))
    if found is None:
        raise NotFoundError(f"{source}/{lake} was not tested since the console was started", fix="POST here first")
    return CheckOut.of(found)


@router.get("/connections/{source}/{lake}/replay-size", dependencies=looking)
def size_of_replay(
    source: str, lake: str, workspace: TheWorkspace, start: Moment = None, stop: Moment = None
) -> ReplaySize:
    """How much a replay of a period would read, before anybody orders it."""
    connection = workspace.connections.get(f"{source}/{lake}")
    return ReplaySize(**replay_size.size(workspace, connection, _micros(start), _micros(stop))._asdict())


def _shown(workspace: Workspace, connection: Connection) -> ConnectionOut:
    return ConnectionOut.of(status_of(workspace, connection))


def _ordered(workspace: Workspace, order_id: str) -> OrderOut:
    order = workspace.orders.get(order_id)
    return OrderOut.of(order, workspace.sources.slugs())


def _micros(text: str | None) -> int | None:
    if text is None:
        return None
    instant = instants.parse(text)
    if instant is None:
        raise InvalidSettingsError(f"{text[:100]!r} is not a time", fix="write it as 2026-11-17T12:00:00Z")
    return instant.micros
