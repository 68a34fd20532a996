"""The services of Azure that have no emulator: where tokens come from, and Key Vault."""

import base64
import contextlib
import json
import ssl
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from certificates import Certificate, certificate
from eventlake.azure import vault
from servers import AzureServer, azure_server

TENANT = "11111111-2222-3333-4444-555555555555"
CLIENT = "66666666-7777-8888-9999-aaaaaaaaaaaa"
SECRET = "the-secret-of-the-principal"
MANAGED = "bbbbbbbb-cccc-dddd-eeee-ffffffffffff"
MACHINE = "what-only-the-machine-knows"


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
    """Tokens for one service principal and one managed identity, and one vault."""

    secrets: dict[str, str]
    token_trouble = 0  # the status with which it answers to whoever asks for a token
    vault_trouble = 0  # the same of the vault
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
        elif self.path.startswith("/machine?"):
            self._give_to_machine(parse_qs(urlsplit(self.path).query))
        elif "Authorization" not in self.headers:
            # A client believes a vault only if its name ends with what it asks tokens for.
            vault = f"https://0.0.1:{self.server.server_port}"
            challenge = f'Bearer authorization="{url}/{TENANT}", resource="{vault}"'
            self._answer(401, {}, **{"WWW-Authenticate": challenge})
        elif status := self.server.vault_trouble:
            told = {"error": {"code": "Forbidden", "message": "Caller is not authorized"}} if status == 403 else {}
            self._answer(status, told, **{"Retry-After": "0"})
        else:
            name = self.path.split("?")[0].strip("/").split("/")[1]
            if name in self.server.secrets:
                self._answer(200, {"value": self.server.secrets[name], "id": f"{url}/secrets/{name}/1"})
            else:
                self._answer(404, {"error": {"code": "SecretNotFound", "message": "no such secret"}})

    def _give_to_machine(self, asked: dict[str, list[str]]) -> None:
        """As App Service, Functions and containers of Azure do."""
        if self.headers.get("X-IDENTITY-HEADER") != MACHINE or asked.get("client_id") != [MANAGED]:
            self._answer(400, {"statusCode": 400, "message": "No User Assigned Managed Identity found"})
            return
        expires = {"expires_on": str(int(time.time()) + 3600), "token_type": "Bearer"}
        self._answer(200, expires | {"access_token": token(asked["resource"][0])})

    def do_POST(self) -> None:
        self.server.asked.append(self.path)
        asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if self.server.token_trouble:
            self._answer(self.server.token_trouble, {}, **{"Retry-After": "0"})
            return
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


@pytest.fixture
def trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Certificate:
    made = certificate(tmp_path)
    for variable in ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"):
        monkeypatch.setenv(variable, str(made.authority))
    return made


@pytest.fixture
def entra(trusted: Certificate) -> Iterator[Directory]:
    with directory(trusted) as server:
        yield server


@pytest.fixture
def account(trusted: Certificate, tmp_path: Path) -> Iterator[AzureServer]:
    """A storage account that lets in who has a token."""
    with azure_server(tmp_path, trusted) as server:
        yield server


@pytest.fixture
def signed_in(entra: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    """An identity that Azure's own tools find, and a vault that it may read."""
    vault.forget()
    for name, value in identity(entra).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(vault.URL_VARIABLE, entra.url)


def identity(entra: Directory) -> dict[str, str]:
    """As environment variables, by which nodes of a cluster know who they are."""
    principal = {"AZURE_TENANT_ID": TENANT, "AZURE_CLIENT_ID": CLIENT, "AZURE_CLIENT_SECRET": SECRET}
    return principal | {"AZURE_AUTHORITY_HOST": entra.url}


def settings_of_principal(account: AzureServer, container: str, entra: Directory) -> str:
    """A lake in which the service principal acts, as the settings file has it."""
    way_in = f'tenant_id = "{TENANT}"\nclient_id = "{CLIENT}"\nclient_secret = "{SECRET}"\nauthority = "{entra.url}"\n'
    return f'[lake]\nroot = "{account.root(container)}/lake"\n[azure]\nendpoint = "{account.endpoint}"\n{way_in}'
