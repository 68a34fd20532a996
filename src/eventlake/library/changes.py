"""What people change in the console, by the HTTP API and on the command line.

Each change is noted in the audit log, with what was before and after.

Secrets are given to whoever asked for them, once, and are never noted.
"""

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

from eventlake.control.alerts import Kind, Subscription
from eventlake.control.connections import Connection
from eventlake.control.orders import Order
from eventlake.control.people import Scope, Token, User
from eventlake.control.regulations import Regulation, Regulations, RegulationType, SubjectType
from eventlake.control.run_lines import RunLine
from eventlake.control.sources import Source, WriteKey
from eventlake.control.suppressions import ALL_SOURCES
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.library.annexes import Found, add_annex, forget_annex
from eventlake.library.plans import blocked_period
from eventlake.library.rule_changes import RuleChanges
from eventlake.library.workspace import Workspace
from eventlake.settings import DEFAULT_LAKE
from eventlake.sync import requests


class Changes:
    """Changes that somebody makes; `who` is a user, or a token of the one who is `owner`."""

    def __init__(self, workspace: Workspace, who: str, *, owner: str | None = None) -> None:
        self._workspace = workspace
        self._who = who
        self._owner = owner or who
        self.rules = RuleChanges(workspace, who, self._note)

    def _note(self, action: str, target: str, *, before: Any = None, after: Any = None) -> None:
        self._workspace.audit_log.note(self._who, action, target, before=before, after=after)

    # Sources

    def add_source(
        self, slug: str, *, source_id: str | None = None, name: str | None = None, lake: str = DEFAULT_LAKE
    ) -> tuple[Connection, str]:
        """A new source, connected to a lake, and its write key."""
        made, key = self._workspace.connections.add_source(slug, source_id=source_id, name=name, lake=lake)
        self._note("add source", slug, after={"id": made.source.id, "name": made.source.name, "lake": lake})
        return made, key

    def read_in_place(self, slug: str, address: str, *, follow: bool) -> Found:
        """Let syncs load raw files from where they are."""
        found = add_annex(self._workspace, slug, address, follow=follow)
        self._note("read raw files in place", slug, after={"address": found.address, "follow": follow})
        return found

    def forget_place(self, slug: str, address: str) -> str:
        """Let syncs load no more raw files from a place; its address."""
        gone = forget_annex(self._workspace, slug, address)
        self._note("forget raw files in place", slug, before={"address": gone.address})
        return gone.address

    def enable_source(self, slug: str, enabled: bool) -> Source:
        before = self._workspace.sources.get(slug)
        found = self._workspace.sources.enable(slug, enabled)
        self._note("enable source" if enabled else "disable source", found.slug, before=before.enabled, after=enabled)
        return found

    def add_key(self, slug: str) -> str:
        key = self._workspace.sources.add_key(slug)
        self._note("add write key", slug)
        return key

    def revoke_key(self, slug: str, key_hash: str) -> WriteKey:
        gone = self._workspace.sources.revoke_key(slug, key_hash)
        self._note("revoke write key", slug, before=gone.hash[:12])
        return gone

    # Connections

    def connect(self, slug: str, lake: str, settings: dict[str, str], *, like: str | None = None) -> Connection:
        made = self._workspace.connections.connect(slug, lake, settings, like=like)
        self._note("connect", made.full_name, after=_settings(made))
        return made

    def disconnect(self, name: str) -> Connection:
        gone = self._workspace.connections.disconnect(name)
        self._note("disconnect", gone.full_name, before=_settings(gone))
        return gone

    def set_settings(self, name: str, settings: dict[str, str]) -> Connection:
        before = self._workspace.connections.get(name)
        after = self._workspace.connections.change(name, settings)
        self._note_settings("change settings", before, after)
        return after

    def copy_settings(self, origin: str, name: str) -> Connection:
        before = self._workspace.connections.get(name)
        after = self._workspace.connections.copy(origin, name)
        self._note_settings(f"copy settings of {origin}", before, after)
        return after

    def enable_connection(self, name: str, enabled: bool) -> Connection:
        before = self._workspace.connections.get(name)
        found = self._workspace.connections.enable(name, enabled)
        action = "enable connection" if enabled else "disable connection"
        self._note(action, found.full_name, before=before.enabled, after=enabled)
        return found

    def _note_settings(self, action: str, before: Connection, after: Connection) -> None:
        old, new = _settings(before), _settings(after)
        changed = [key for key in new if new[key] != old.get(key)]
        self._note(
            action,
            after.full_name,
            before={key: old.get(key) for key in changed},
            after={key: new[key] for key in changed},
        )

    # Runs

    def order_sync(self, name: str) -> Order:
        connection = self._workspace.connections.get(name)
        requests.syncs(self._workspace.connections, [connection.full_name])  # refuses what is disabled
        return self._order(connection, "sync", {})

    def order_replay(
        self, name: str, start: int | None, stop: int | None, events: Sequence[str] = (), *, resume: bool = False
    ) -> Order:
        """Load a period again; or go on with a replay that was interrupted."""
        connection = self._workspace.connections.get(name)
        lake = self._workspace.lake(connection.lake)
        if resume:
            requests.rest_of_replay(lake, connection)
            return self._order(connection, "resume", {})
        requests.replay(lake, connection, start, stop, events)  # refuses what cannot be
        return self._order(connection, "replay", {"from": start, "to": stop, "events": list(events)})

    def order_release(self, name: str) -> Order:
        """Let in what rules blocked in the last 30 days and would not block today."""
        connection = self._workspace.connections.get(name)
        start, stop = blocked_period(self._workspace, connection)
        return self.order_replay(name, start, stop)

    def order_releases(self, slug: str) -> list[Order]:
        """The same in every lake of a source in which something was blocked."""
        source = self._workspace.sources.get(slug)
        ordered = []
        for connection in self._workspace.connections.all():
            if connection.source.id == source.id:
                with contextlib.suppress(NotFoundError):
                    ordered.append(self.order_release(connection.full_name))
        if not ordered:
            raise NotFoundError(f"nothing of {slug} was blocked in the last 30 days", fix="nothing is to be done")
        return ordered

    def order_retype(self, lake: str, table: str, column: str, new_type: str) -> Order:
        job = requests.retype(self._workspace.lake(lake), table, column, new_type)
        if job is None:
            raise InvalidSettingsError(f"{column} is {new_type} already", fix="choose another type")
        return self._order(job.connection, "retype", {"table": table, "column": column, "type": new_type})

    def order_rebuild(self, name: str, settings: dict[str, str]) -> Order:
        before, wanted = self._workspace.connections.get(name), self._workspace.connections.preview(name, settings)
        if wanted.settings == before.settings:
            raise InvalidSettingsError("that is how it is: nothing would change", fix="give other values")
        was, will_be = _settings(before), _settings(wanted)
        changed = {key: value for key, value in was.items() if value != will_be[key]}  # by our names, also of Segment's
        return self._order(wanted, "rebuild", {"settings": settings}, before=changed)

    def _order(
        self, connection: Connection, kind: str, arguments: dict[str, Any], *, before: dict[str, Any] | None = None
    ) -> Order:
        order = self._workspace.orders.place(connection.lake, connection.source.id, kind, arguments, self._who)
        self._note(f"order {kind}", connection.full_name, before=before, after=arguments or None)
        return order

    def stop_order(self, order_id: str) -> Order:
        order = self._workspace.orders.ask_to_stop(order_id)
        self._note("stop order", order_id, before={"kind": order.kind, "status": order.status})
        return order

    def stop_run(self, run_id: str) -> RunLine:
        run = self._workspace.runs.line(run_id)
        if not self._workspace.runs.ask_to_stop(run_id):
            raise InvalidSettingsError(f"run {run_id} has ended", fix="there is nothing to stop; see `eventlake runs`")
        self._note("stop run", run_id)
        return run

    # Privacy

    def regulate(
        self, kind: RegulationType, subject_type: SubjectType, subjects: Sequence[str], *, source: str | None = None
    ) -> Regulation:
        """Suppress people, or let them in again. The log tells how many they are, not who."""
        made = Regulations(self._workspace.engine, self._workspace.clock.now).ask(
            kind, subject_type, subjects, self._source_id(source), self._who
        )
        self._note(kind.value.lower(), source or "all sources", after={"subjects": made.subjects, "id": made.id})
        return made

    def suppress(self, subjects: Iterable[str], path: str, *, source: str | None = None) -> int:
        """Let nothing of some people in; how many were not on the list."""
        added = self._workspace.suppressions.add(subjects, path, self._source_id(source), self._who)
        self._note("suppress", source or "all sources", after={"subjects": added, "path": path})
        return added

    def unsuppress(self, subjects: Iterable[str], path: str, *, source: str | None = None) -> int:
        """Let some people in again; how many were on the list."""
        removed = self._workspace.suppressions.remove(subjects, path, self._source_id(source))
        self._note("let in again", source or "all sources", after={"subjects": removed, "path": path})
        return removed

    def _source_id(self, slug: str | None) -> str:
        return self._workspace.sources.get(slug).id if slug else ALL_SOURCES

    # Alerts

    def subscribe(
        self, kind: Kind, channel: str, *, source: str | None = None, threshold: float | None = None
    ) -> Subscription:
        source_id = self._workspace.sources.get(source).id if source else None
        made = self._workspace.alerts.subscribe(kind, channel, source_id=source_id, threshold=threshold)
        after = {"kind": kind.value, "channel": channel, "source": source, "threshold": made.threshold}
        self._note("subscribe", channel, after=after)
        return made

    def unsubscribe(self, subscription_id: str) -> Subscription:
        gone = self._workspace.alerts.unsubscribe(subscription_id)
        self._note("unsubscribe", gone.channel, before={"kind": gone.kind.value, "threshold": gone.threshold})
        return gone

    def send_sample(self, channel: str) -> None:
        """Let a channel deliver something that is no alert. Raises an error that says why it could not."""
        if channel not in self._workspace.settings.channels:
            raise NotFoundError(
                f"there is no channel {channel!r}", fix="a new one gets a section [channels.NAME] in eventlake.toml"
            )
        self._workspace.send_sample(channel)
        self._note("send sample alert", channel)

    # People

    def invite(self, role: Scope) -> str:
        secret = self._workspace.people.invite(role)
        self._note("invite", role.value)
        return secret

    def set_role(self, name: str, role: Scope) -> User:
        before = next((user.role.value for user in self._workspace.people.users() if user.name == name), None)
        user = self._workspace.people.set_role(name, role)
        self._note("change role", name, before=before, after=role.value)
        return user

    def remove_user(self, name: str) -> None:
        self._workspace.people.remove(name)
        self._note("remove user", name)

    def add_token(self, name: str, scope: Scope) -> tuple[Token, str]:
        token, secret = self._workspace.people.add_token(name, scope, self._owner)
        self._note("add token", token.name, after={"id": token.id, "scope": scope.value})
        return token, secret

    def revoke_token(self, token_id: str) -> Token:
        token = self._workspace.people.revoke_token(token_id)
        self._note("revoke token", token.name, before={"id": token.id, "scope": token.scope.value})
        return token


def _settings(connection: Connection) -> dict[str, Any]:
    return connection.settings.model_dump(mode="json")
