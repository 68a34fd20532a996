"""The services of Azure that have no emulator: where tokens come from, and Key Vault."""

import base64
import contextlib
import json
import ssl
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

from certificates import Certificate

TENANT = "11111111-2222-3333-4444-555555555555"
CLIENT = "66666666-7777-8888-9999-aaaaaaaaaaaa"
SECRET = "the-secret-of-the-principal"


def token(audience: str) -> str:
    """As Azure's, but nobody signed it: the emulator looks at everything else."""

    def part(value: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    now = int(time.time())
    claims = {
        "aud": audience,
        "iss": f"https://sts.windows.net/{TENANT}/",
        "nbf": now - 60,
        "iat": now,
        "exp": now + 3600,
    }
    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}.{part('nobody')}"


class Directory(ThreadingHTTPServer):
    """Tokens for one service principal, and one vault."""

    secrets: dict[str, str]
    may_read = True
    asked: list[str]

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Directory

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def _answer(self, status: int, content: Any, **headers: str) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        url = self.server.url
        if self.path.endswith("/.well-known/openid-configuration"):
            ends = {f"{name}_endpoint": f"{url}/{TENANT}/oauth2/v2.0/{name}" for name in ("token", "authorization")}
            self._answer(200, ends | {"issuer": f"{url}/{TENANT}/v2.0"})
        elif "Authorization" not in self.headers:
            # A client believes a vault only if its name ends with what it asks tokens for.
            vault = f"https://0.0.1:{self.server.server_port}"
            challenge = f'Bearer authorization="{url}/{TENANT}", resource="{vault}"'
            self._answer(401, {}, **{"WWW-Authenticate": challenge})
        elif not self.server.may_read:
            self._answer(403, {"error": {"code": "Forbidden", "message": "may not read secrets"}})
        else:
            name = self.path.split("?")[0].strip("/").split("/")[1]
            if name in self.server.secrets:
                self._answer(200, {"value": self.server.secrets[name], "id": f"{url}/secrets/{name}/1"})
            else:
                self._answer(404, {"error": {"code": "SecretNotFound", "message": "no such secret"}})

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if asked.get("client_secret") != [SECRET] or asked.get("client_id") != [CLIENT]:
            told = "AADSTS7000215: Invalid client secret provided."
            self._answer(401, {"error": "invalid_client", "error_description": told})
            return
        audience = asked["scope"][0].split()[0].removesuffix("/.default")
        self._answer(200, {"token_type": "Bearer", "expires_in": 3600, "access_token": token(audience)})


@contextlib.contextmanager
def directory(certificate: Certificate) -> Iterator[Directory]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.shown, certificate.key)
    with Directory(("127.0.0.1", 0), _Handler) as server:
        server.secrets, server.asked = {}, []
        server.socket = context.wrap_socket(server.socket, server_side=True)
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
