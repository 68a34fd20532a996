"""Sources, their write keys, and the last events of each."""

from fastapi import APIRouter, Depends

from eventlake.control.sources import Source
from eventlake.events import instants
from eventlake.status import quality
from eventlake.web.access import Admin, Seen, TheWorkspace, reader
from eventlake.web.api.event_models import EventOut, RejectOut
from eventlake.web.api.models import (
    KeyOut,
    NewSource,
    SourceOut,
    SourceWithKey,
    Switch,
    WriteKeyOut,
)

router = APIRouter(tags=["sources"])
looking = [Depends(reader)]


@router.get("/sources", dependencies=looking)
def list_sources(workspace: TheWorkspace) -> list[SourceOut]:
    """All sources."""
    return [_shown(source) for source in workspace.sources.all()]


@router.post("/sources", status_code=201)
def add_source(new: NewSource, changes: Admin) -> SourceWithKey:
    """Add a source, and connect it to a lake."""
    made, key = changes.add_source(new.slug, name=new.name, lake=new.lake)
    return SourceWithKey(**_shown(made.source).model_dump(), write_key=key)


@router.get("/sources/{source}", dependencies=looking)
def get_source(source: str, workspace: TheWorkspace) -> SourceOut:
    """One source."""
    return _shown(workspace.sources.get(source))


@router.patch("/sources/{source}")
def switch_source(source: str, switch: Switch, changes: Admin) -> SourceOut:
    """Let the collector take its events, or refuse them."""
    return _shown(changes.enable_source(source, switch.enabled))


@router.get("/sources/{source}/keys", dependencies=looking)
def list_keys(source: str, workspace: TheWorkspace) -> list[KeyOut]:
    """Its write keys, by their hashes."""
    return [
        KeyOut(hash=key.hash, created_at=instants.to_text(key.created_at)) for key in workspace.sources.keys(source)
    ]


@router.post("/sources/{source}/keys", status_code=201)
def add_key(source: str, changes: Admin) -> WriteKeyOut:
    """Another write key; the others stay valid."""
    return WriteKeyOut(write_key=changes.add_key(source))


@router.delete("/sources/{source}/keys/{key_hash}", status_code=204)
def revoke_key(source: str, key_hash: str, changes: Admin) -> None:
    """Take a write key back, by the beginning of its hash."""
    changes.revoke_key(source, key_hash)


@router.get("/sources/{source}/events", dependencies=looking)
def last_events(source: str, workspace: TheWorkspace, seen: Seen) -> list[EventOut]:
    """The last events, and what became of each; newest first."""
    found = workspace.sources.get(source)
    connections = [one for one in workspace.connections.all() if one.source.id == found.id]
    return [EventOut.of(one) for one in seen.of(found, connections)]


@router.get("/sources/{source}/rejects", dependencies=looking)
def list_rejects(source: str, workspace: TheWorkspace) -> list[RejectOut]:
    """What the collector of this machine refused last."""
    found = workspace.sources.get(source)
    return [RejectOut(**{**one._asdict(), "source": found.slug}) for one in quality.refused(workspace, found.id)]


def _shown(source: Source) -> SourceOut:
    return SourceOut(**source._asdict())
