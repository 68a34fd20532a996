"""Who may use the console and the HTTP API: users with passwords, and tokens for programs.

Of every secret only a hash is stored, so that it cannot be shown again. Passwords are hashed by Argon2; links, sessions
and tokens are long and random, so a plain hash does for them.
"""

import hashlib
import re
import secrets
import threading
from collections.abc import Callable
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerifyMismatchError

from eventlake.control import service_tables as tables
from eventlake.errors import InvalidSettingsError, NotFoundError, SetupError
from eventlake.timetable import DAY, MINUTE

LINK_LIVES = DAY
SESSION_LIVES = 7 * DAY
SHORTEST_PASSWORD, LONGEST_PASSWORD = 12, 1000
FREE_FAILURES = 5  # to sign in, before a name is locked for a while
LONGEST_LOCK = 60 * MINUTE
_FEW_AT_ONCE = threading.BoundedSemaphore(2)  # a password takes 64 MiB to hash
_NAME = re.compile(r"[\w.@+-]{1,100}")


class Scope(StrEnum):
    """What a user or a token may do; each may do what those before it may."""

    READ = "read"  # look at everything but secrets
    OPERATE = "operate"  # start and stop runs
    ADMIN = "admin"  # change sources, connections, alerts and people

    def allows(self, wanted: "Scope") -> bool:
        order = list(Scope)
        return order.index(self) >= order.index(wanted)


class SignInRefusedError(SetupError):
    code = "sign_in_refused"


class User(NamedTuple):
    name: str
    role: Scope
    created_at: int


class Session(NamedTuple):
    """A user who is signed in; a form that changes something must bring the same `csrf` back."""

    user: User
    csrf: str


class Token(NamedTuple):
    id: str
    name: str
    scope: Scope
    made_by: str  # the user whose it is, also if another token of theirs made it
    created_at: int
    used_at: int | None


def _used_up() -> SignInRefusedError:
    return SignInRefusedError(
        "this link was used already, was taken back, or is older than a day", fix="ask an administrator for another"
    )


def secret_hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class People:
    def __init__(self, engine: sa.Engine, now: Callable[[], int]) -> None:
        self._engine = engine
        self._now = now

    # Users

    def users(self) -> list[User]:
        with self._engine.connect() as connection:
            return [_user(row) for row in connection.execute(sa.select(tables.users).order_by(tables.users.c.name))]

    def invite(self, role: Scope) -> str:
        """What a link must hold by which somebody becomes a user, once, within a day."""
        secret = secrets.token_urlsafe(32)
        row = {"hash": secret_hash(secret), "role": role.value, "expires_at": self._now() + LINK_LIVES}
        with self._engine.begin() as connection:
            connection.execute(tables.invitations.delete().where(tables.invitations.c.expires_at <= self._now()))
            connection.execute(tables.invitations.insert().values(row))
        return secret

    def invited_as(self, secret: str) -> Scope | None:
        """The role that a link gives; None if there is no such link, or if it was used or is too old."""
        query = sa.select(tables.invitations.c.role).where(self._is_valid_link(secret))
        with self._engine.connect() as connection:
            role = connection.execute(query).scalar()
        return Scope(role) if role else None

    def join(self, secret: str, name: str, password: str) -> User:
        """Become a user by a link."""
        if not _NAME.fullmatch(name):
            raise InvalidSettingsError(
                f"{name[:100]!r} is not a name for a user", fix="use up to 100 letters, digits and any of . @ + - _"
            )
        if self.invited_as(secret) is None:
            raise _used_up()
        hashed = self._hashed(password)
        with self._engine.begin() as connection:
            role = connection.execute(sa.select(tables.invitations.c.role).where(self._is_valid_link(secret))).scalar()
            used = connection.execute(tables.invitations.delete().where(self._is_valid_link(secret)))
            if role is None or used.rowcount != 1:
                raise _used_up()
            if connection.execute(sa.select(tables.users.c.name).where(tables.users.c.name == name)).first():
                raise InvalidSettingsError(f"there is a user {name!r} already", fix="choose another name")
            row = {"password_hash": hashed, "role": role, "created_at": self._now(), "failures": 0, "locked_until": 0}
            connection.execute(tables.users.insert().values(name=name, **row))
        return User(name, Scope(role), self._now())

    def change_password(self, name: str, old: str, new: str) -> None:
        """Everybody who is signed in under this name has to sign in again."""
        self._check_password(name, old)
        with self._engine.begin() as connection:
            values = {"password_hash": self._hashed(new)}
            connection.execute(tables.users.update().where(tables.users.c.name == name).values(values))
            connection.execute(tables.sessions.delete().where(tables.sessions.c.user_name == name))

    def set_role(self, name: str, role: Scope) -> User:
        self._refuse_if_unknown(name)
        if role is not Scope.ADMIN:
            self._refuse_without_admin(name)
        with self._engine.begin() as connection:
            connection.execute(tables.users.update().where(tables.users.c.name == name).values(role=role.value))
            beyond = [scope.value for scope in Scope if not role.allows(scope)]
            theirs = sa.and_(tables.tokens.c.made_by == name, tables.tokens.c.scope.in_(beyond))
            connection.execute(tables.tokens.delete().where(theirs))
            connection.execute(tables.invitations.delete().where(tables.invitations.c.role.in_(beyond)))
        return next(user for user in self.users() if user.name == name)

    def remove(self, name: str) -> None:
        """Let somebody sign in no more, nor any program with a token of theirs, nor anybody by a link from before.

        Whose a link is, is not known: it may be one that they kept to come back.
        """
        self._refuse_if_unknown(name)
        self._refuse_without_admin(name)
        with self._engine.begin() as connection:
            connection.execute(tables.sessions.delete().where(tables.sessions.c.user_name == name))
            connection.execute(tables.tokens.delete().where(tables.tokens.c.made_by == name))
            connection.execute(tables.invitations.delete())
            connection.execute(tables.users.delete().where(tables.users.c.name == name))

    def _refuse_if_unknown(self, name: str) -> None:
        if name not in {user.name for user in self.users()}:
            raise NotFoundError(f"there is no user {name!r}", fix="see the list of users")

    def _refuse_without_admin(self, leaving: str) -> None:
        admins = {user.name for user in self.users() if user.role is Scope.ADMIN}
        if admins == {leaving}:
            raise InvalidSettingsError(f"{leaving!r} is the only administrator", fix="make another one first")

    # Sessions

    def sign_in(self, name: str, password: str) -> str:
        """The secret of a new session. Raises SignInRefusedError."""
        self._check_password(name, password)
        secret = secrets.token_urlsafe(32)
        row = {"hash": secret_hash(secret), "user_name": name, "csrf": secrets.token_urlsafe(32)}
        with self._engine.begin() as connection:
            connection.execute(tables.sessions.delete().where(tables.sessions.c.expires_at <= self._now()))
            connection.execute(tables.sessions.insert().values(**row, expires_at=self._now() + SESSION_LIVES))
        return secret

    def session(self, secret: str) -> Session | None:
        here = sa.and_(tables.sessions.c.hash == secret_hash(secret), tables.sessions.c.expires_at > self._now())
        join = sa.join(tables.sessions, tables.users, tables.sessions.c.user_name == tables.users.c.name)
        with self._engine.connect() as connection:
            row = connection.execute(
                sa.select(tables.sessions.c.csrf, tables.users).select_from(join).where(here)
            ).first()
        return Session(_user(row), row.csrf) if row else None

    def sign_out(self, secret: str) -> None:
        with self._engine.begin() as connection:
            connection.execute(tables.sessions.delete().where(tables.sessions.c.hash == secret_hash(secret)))

    def _check_password(self, name: str, password: str) -> None:
        # The same words whether there is such a name, whether it is locked, and whether the password was right.
        wrong = SignInRefusedError(
            "the name or the password is wrong, or the name is locked after too many attempts",
            fix="try again; a name that is locked is free again after some minutes",
        )
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(tables.users).where(tables.users.c.name == name)).first()
        is_locked = row is not None and not self._may_try(name)
        # Also for a name that is not known: how long it takes must not tell.
        hashed = row.password_hash if row is not None else self._nobodys
        is_right = self._verified(hashed, password)
        if row is None or is_locked or not is_right:
            raise wrong
        with self._engine.begin() as connection:
            values = {"failures": 0, "locked_until": 0}
            connection.execute(tables.users.update().where(tables.users.c.name == name).values(values))

    def _may_try(self, name: str) -> bool:
        """Count an attempt before it is looked at, so that many at once are not one; False if the name is locked."""
        here = tables.users.c.name == name
        with self._engine.begin() as connection:
            counted = tables.users.update().where(here, tables.users.c.locked_until <= self._now())
            if connection.execute(counted.values(failures=tables.users.c.failures + 1)).rowcount == 0:
                return False
            failures = int(connection.execute(sa.select(tables.users.c.failures).where(here)).scalar_one())
            beyond = failures - FREE_FAILURES
            if beyond >= 0:  # this one may still be right; those after it have to wait
                until = self._now() + min(MINUTE << min(beyond, 10), LONGEST_LOCK)
                connection.execute(tables.users.update().where(here).values(locked_until=until))
        return True

    def _verified(self, hashed: str, password: str) -> bool:
        with _FEW_AT_ONCE:
            try:
                return self._hasher.verify(hashed, password[:LONGEST_PASSWORD])
            except (VerifyMismatchError, InvalidHashError):
                return False

    def _hashed(self, password: str) -> str:
        if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
            raise InvalidSettingsError(
                f"a password has at least {SHORTEST_PASSWORD} characters",
                fix="choose a longer one: three words that nobody would put together are good",
            )
        with _FEW_AT_ONCE:
            return self._hasher.hash(password)

    @cached_property
    def _hasher(self) -> PasswordHasher:
        return PasswordHasher()

    @cached_property
    def _nobodys(self) -> str:
        return self._hasher.hash(secrets.token_urlsafe(32))

    def _is_valid_link(self, secret: str) -> sa.ColumnElement[bool]:
        return sa.and_(tables.invitations.c.hash == secret_hash(secret), tables.invitations.c.expires_at > self._now())

    # Tokens

    def tokens(self) -> list[Token]:
        columns = [tables.tokens.c[name] for name in Token._fields]
        with self._engine.connect() as connection:
            rows = connection.execute(sa.select(*columns).order_by(tables.tokens.c.created_at)).all()
        return [Token(*row)._replace(scope=Scope(row.scope)) for row in rows]

    def add_token(self, name: str, scope: Scope, made_by: str) -> tuple[Token, str]:
        """A new token, and what a program must send: it is not stored."""
        if not 0 < len(name.strip()) <= 100:
            raise InvalidSettingsError("a token needs a name", fix="say what it is for, in up to 100 characters")
        secret = f"el_{secrets.token_urlsafe(32)}"
        token = Token(secrets.token_hex(6), name.strip(), scope, made_by, self._now(), None)
        with self._engine.begin() as connection:
            connection.execute(tables.tokens.insert().values(**token._asdict(), hash=secret_hash(secret)))
        return token, secret

    def revoke_token(self, token_id: str) -> Token:
        found = next((token for token in self.tokens() if token.id == token_id), None)
        if found is None:
            raise NotFoundError(f"there is no token {token_id!r}", fix="see the list of tokens")
        with self._engine.begin() as connection:
            connection.execute(tables.tokens.delete().where(tables.tokens.c.id == token_id))
        return found

    def token(self, secret: str) -> Token | None:
        """Whose secret this is. That it was used is noted, once a minute."""
        hashed = secret_hash(secret)
        columns = [tables.tokens.c[name] for name in Token._fields]
        with self._engine.connect() as connection:
            row = connection.execute(sa.select(*columns).where(tables.tokens.c.hash == hashed)).first()
        if row is None:
            return None
        if row.used_at is None or row.used_at < self._now() - MINUTE:
            with self._engine.begin() as connection:
                connection.execute(
                    tables.tokens.update().where(tables.tokens.c.hash == hashed).values(used_at=self._now())
                )
        return Token(*row)._replace(scope=Scope(row.scope))


def _user(row: sa.Row[tuple[object, ...]]) -> User:
    found = row._mapping
    return User(found["name"], Scope(found["role"]), found["created_at"])
