"""Alerts and who is told; tokens, users and who changed what."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from eventlake.control.people import Token, User
from eventlake.events import instants
from eventlake.web.access import Admin, TheWorkspace, admin_looks, reader
from eventlake.web.api.models import moment
from eventlake.web.api.people_models import (
    AlertOut,
    AuditOut,
    ChannelOut,
    Invitation,
    InvitationOut,
    NewSubscription,
    NewToken,
    SubscriptionOut,
    TokenOut,
    TokenWithSecret,
    UserOut,
)

router = APIRouter()
looking, managing = [Depends(reader)], [Depends(admin_looks)]


@router.get("/alerts", dependencies=looking, tags=["alerts"])
def list_alerts(workspace: TheWorkspace, limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> list[AlertOut]:
    """What people were told of, newest first."""
    slugs = workspace.sources.slugs()
    found = workspace.alerts.latest(limit)
    deliveries = workspace.alerts.deliveries(alert.id for alert in found)
    return [AlertOut.of(alert, slugs, deliveries) for alert in found]


@router.get("/channels", dependencies=looking, tags=["alerts"])
def list_channels(workspace: TheWorkspace) -> list[ChannelOut]:
    """Where alerts can go, as the settings file names them."""
    return [ChannelOut(name=name, kind=one.kind) for name, one in workspace.settings.channels.items()]


@router.post("/channels/{channel}/test", status_code=204, tags=["alerts"])
def test_channel(channel: str, changes: Admin) -> None:
    """Send a sample, now."""
    changes.send_sample(channel)


@router.get("/subscriptions", dependencies=looking, tags=["alerts"])
def list_subscriptions(workspace: TheWorkspace) -> list[SubscriptionOut]:
    """Who is told of what."""
    slugs = workspace.sources.slugs()
    return [SubscriptionOut.of(one, slugs) for one in workspace.alerts.subscriptions()]


@router.post("/subscriptions", status_code=201, tags=["alerts"])
def subscribe(new: NewSubscription, changes: Admin, workspace: TheWorkspace) -> SubscriptionOut:
    """Let a channel be told of something."""
    made = changes.subscribe(new.kind, new.channel, source=new.source, threshold=new.threshold)
    return SubscriptionOut.of(made, workspace.sources.slugs())


@router.delete("/subscriptions/{subscription}", status_code=204, tags=["alerts"])
def unsubscribe(subscription: str, changes: Admin) -> None:
    """Tell it no more."""
    changes.unsubscribe(subscription)


@router.get("/tokens", dependencies=managing, tags=["people"])
def list_tokens(workspace: TheWorkspace) -> list[TokenOut]:
    """The tokens of programs; the secrets themselves are not stored."""
    return [_token(token) for token in workspace.people.tokens()]


@router.post("/tokens", status_code=201, tags=["people"])
def add_token(new: NewToken, changes: Admin) -> TokenWithSecret:
    """A new token."""
    token, secret = changes.add_token(new.name, new.scope)
    return TokenWithSecret(**_token(token).model_dump(), token=secret)


@router.delete("/tokens/{token}", status_code=204, tags=["people"])
def revoke_token(token: str, changes: Admin) -> None:
    """Take a token back."""
    changes.revoke_token(token)


@router.get("/users", dependencies=managing, tags=["people"])
def list_users(workspace: TheWorkspace) -> list[UserOut]:
    """Who may sign in."""
    return [_user(user) for user in workspace.people.users()]


@router.post("/users/invitations", status_code=201, tags=["people"])
def invite(wanted: Invitation, changes: Admin, workspace: TheWorkspace) -> InvitationOut:
    """A link by which somebody becomes a user."""
    return InvitationOut(link=f"{workspace.settings.console.url.rstrip('/')}/welcome/{changes.invite(wanted.role)}")


@router.patch("/users/{name}", tags=["people"])
def set_role(name: str, wanted: Invitation, changes: Admin) -> UserOut:
    """Give a user another role."""
    return _user(changes.set_role(name, wanted.role))


@router.delete("/users/{name}", status_code=204, tags=["people"])
def remove_user(name: str, changes: Admin) -> None:
    """Let somebody sign in no more."""
    changes.remove_user(name)


@router.get("/audit", dependencies=managing, tags=["people"])
def list_audit(
    workspace: TheWorkspace,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="Only those before this entry.")] = None,
) -> list[AuditOut]:
    """Who changed what, newest first."""
    return [AuditOut.of(entry) for entry in workspace.audit_log.latest(limit, before=before)]


def _token(token: Token) -> TokenOut:
    at = {"created_at": instants.to_text(token.created_at), "used_at": moment(token.used_at)}
    return TokenOut(**{**token._asdict(), **at})


def _user(user: User) -> UserOut:
    return UserOut(name=user.name, role=user.role, created_at=instants.to_text(user.created_at))
