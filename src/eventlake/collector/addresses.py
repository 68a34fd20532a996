"""Where a request came from, and under which address clients reach the collector.

Neither is taken from what a client can write. Each proxy adds the address that it saw to the right end of
X-Forwarded-For, so of as many as there are trusted proxies, and no more, the entries are true. The header Host is only
believed if it names the very address at which the request arrived.
"""

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from eventlake.errors import InvalidSettingsError

_PORT_OF_HTTP = 80


class Public(NamedTuple):
    """Under which address clients reach the collector."""

    scheme: str
    host: str  # with its port, and a path if there is one


@dataclass(frozen=True)
class Addresses:
    trusted_proxies: int = 0
    public_url: str = ""

    def client(self, scope: Mapping[str, Any]) -> str | None:
        """The address of the client; None if it is not known."""
        peer = scope.get("client")
        if self.trusted_proxies:
            seen = _forwarded(scope["headers"])[-self.trusted_proxies :]
            if seen:
                return _plain_address(seen[0])
        return peer[0] if peer else None

    def public(self, scope: Mapping[str, Any], host: str) -> Public | None:
        """As it is set, else as the client says, if that is where the request arrived; None if it is not known."""
        if self.public_url:
            parts = urlsplit(self.public_url)
            return Public(parts.scheme, f"{parts.netloc}{parts.path.rstrip('/')}")
        return Public("http", host) if host.lower() in _names_of(scope.get("server")) else None


def checked_url(text: str) -> str:
    """An address that may be set as the public one. Raises InvalidSettingsError."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.username is not None or parts.query or parts.fragment or any(c.isspace() for c in text):
        raise InvalidSettingsError(f"{text!r} is not an address of a server", fix="use https://collect.example")
    return text


def _names_of(server: tuple[str, int | None] | None) -> set[str]:
    """What a client may call the address at which its request arrived."""
    if not server or server[1] is None:
        return set()
    address, port = server
    names = {f"[{address}]" if ":" in address else address}
    if ipaddress.ip_address(address).is_loopback:
        names.add("localhost")
    return {f"{name}:{port}" for name in names} | (names if port == _PORT_OF_HTTP else set())


def _forwarded(headers: Iterable[tuple[bytes, bytes]]) -> list[str]:
    """The entries of all headers X-Forwarded-For, as if they were one."""
    values = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
    return [entry.strip() for entry in ",".join(values).split(",")] if values else []


def _plain_address(entry: str) -> str | None:
    """An address without the port that some proxies add; None if it is none."""
    if entry.startswith("["):
        entry = entry[1:].partition("]")[0]
    elif entry.count(":") == 1:
        entry = entry.partition(":")[0]
    try:
        return str(ipaddress.ip_address(entry))
    except ValueError:
        return None
