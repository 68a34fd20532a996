"""A lake on Azure: who is let in, what is refused, what lies there, and what it needs beside blobs."""

import json
import pickle
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jsonschema  # type: ignore[import-untyped]
import pyarrow.parquet as pq
import pytest
from azure.storage.blob import AccessPolicy, ContainerSasPermissions, generate_container_sas
from pydantic import SecretStr
from typer.testing import CliRunner

from azures import CLIENT, MACHINE, MANAGED, SECRET, TENANT, Directory
from azures import account as account  # noqa: PLC0414 - a fixture, as are the next
from azures import entra as entra  # noqa: PLC0414
from azures import signed_in as signed_in  # noqa: PLC0414
from azures import trusted as trusted  # noqa: PLC0414
from conftest import InProcess, Lake, SetClock, new_bucket, settings_for, track
from eventlake.audit.repair import repair
from eventlake.audit.verify import verify
from eventlake.azure import vault
from eventlake.azure.identity import AzureOptions
from eventlake.cli.main import app
from eventlake.commit.schema_files import SCHEMA
from eventlake.errors import (
    ConfigurationError,
    DeleteDeniedError,
    EventLakeError,
    InvalidSettingsError,
    ListDeniedError,
    PermissionMissingError,
    TransientError,
    UploadDeniedError,
)
from eventlake.runners.base import no_progress
from eventlake.storage.adls import AzureStorage
from eventlake.sync import jobs, requests
from eventlake.sync.run import run
from eventlake.workspace import CONFIG, Workspace
from eventlake.workspace import Lake as Place
from servers import AzureServer, S3Server, free_ports
from test_beside import replayed, synced
from test_restore import died_at


@pytest.fixture
def container(azure: AzureServer) -> str:
    return new_bucket(azure)


def with_key(azure: AzureServer, container: str) -> AzureStorage:
    options = AzureOptions(azure.endpoint, account_key=SecretStr(azure.key))
    return AzureStorage(azure.root(container), options)


def signature(azure: AzureServer, container: str, rights: str, *, minutes: int = 60) -> str:
    return generate_container_sas(
        azure.account,
        container,
        account_key=azure.key,
        permission=ContainerSasPermissions.from_string(rights),
        expiry=datetime.now(UTC) + timedelta(minutes=minutes),
    )


def with_signature(azure: AzureServer, container: str, text: str) -> AzureStorage:
    return AzureStorage(azure.root(container), AzureOptions(azure.endpoint, sas_token=SecretStr(text)))


# Who is let in


def test_a_signature_lets_in_and_may_begin_with_a_question_mark(azure: AzureServer, container: str) -> None:
    text = signature(azure, container, "racwdl")
    for written in (text, f"?{text}"):
        storage = with_signature(azure, container, written)
        storage.write("a/b", b"1")
        storage.move("a/b", "a/c")
        assert [file.path for file in storage.files("a")] == ["a/c"]


@pytest.mark.parametrize(
    ("rights", "call", "error", "right"),
    [
        ("rwdl", lambda s: s.write("new", b"1"), None, ""),
        ("rdl", lambda s: s.write("new", b"1"), UploadDeniedError, "blobs/write"),
        ("rdl", lambda s: s.create("new", b"1"), UploadDeniedError, "blobs/write"),
        ("rdl", lambda s: s.move("there", "new"), UploadDeniedError, "blobs/read and blobs/write"),
        ("rwl", lambda s: s.delete("there"), DeleteDeniedError, "blobs/delete"),
        ("rwd", lambda s: list(s.files("")), ListDeniedError, "blobs/read"),
    ],
)
def test_a_right_that_is_missing_is_named(
    azure: AzureServer, container: str, rights: str, call: Any, error: type[EventLakeError] | None, right: str
) -> None:
    with_key(azure, container).write("there", b"1")
    text = signature(azure, container, rights)
    storage = with_signature(azure, container, text)
    if error is None:
        call(storage)
        return
    with pytest.raises(error, match="not authorized to perform this operation") as caught:
        call(storage)
    assert f"grant {right}" in caught.value.fix
    assert "Storage Blob Data Contributor" in caught.value.fix
    assert "sig=" not in str(caught.value)
    assert with_key(azure, container).read("there") == b"1"


def test_a_signature_that_has_expired_is_told(azure: AzureServer, container: str) -> None:
    storage = with_signature(azure, container, signature(azure, container, "racwdl", minutes=-5))
    with pytest.raises(PermissionMissingError, match="AuthorizationFailure") as caught:
        storage.write("a", b"1")
    assert "expired" in caught.value.fix
    assert "clock" in caught.value.fix


def test_a_wrong_key_is_told_and_not_shown(azure: AzureServer, container: str) -> None:
    wrong = azure.key.replace("E", "F", 1)
    storage = AzureStorage(azure.root(container), AzureOptions(azure.endpoint, account_key=SecretStr(wrong)))
    with pytest.raises(PermissionMissingError) as caught:
        storage.write("a", b"1")
    assert "azure.account_key" in caught.value.fix
    assert wrong not in str(caught.value) + repr(storage.options) + repr(storage)


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        (
            "Request date header too old: 'Thu, 19 Nov 2026 03:00:00 GMT'",
            "Request date header too old: 'Thu, 19 Nov 2026",
        ),
        ("Signature not valid in the specified time frame: Start [a] - Expiry [b]", "Start [a] - Expiry [b]"),
        (
            f"The MAC signature found in the HTTP request '{'a' * 43}=' is not the same\nas",
            "HTTP request '…' is not the",
        ),
        ("", "failed to authenticate"),
    ],
    ids=["clock", "expired", "key", "nothing"],
)
def test_why_azure_believes_nobody_is_told(more: str, shown: str) -> None:
    with Refusing(("127.0.0.1", 0), _Refusing) as server:
        server.more = f"<AuthenticationErrorDetail>{more}</AuthenticationErrorDetail>" if more else ""
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = AzureOptions(f"http://127.0.0.1:{server.server_port}/acme", account_key=SecretStr("a2V5"))
        with pytest.raises(PermissionMissingError, match=r"AuthenticationFailed: ") as caught:
            AzureStorage("abfss://lake@acme.dfs.core.windows.net", options).read("a")
        server.shutdown()
    assert shown in caught.value.problem
    assert "clock of this machine" in caught.value.fix
    assert caught.value.code == "insufficient_permissions.download_object"


def test_a_container_that_is_not_there_is_a_wrong_setting(azure: AzureServer) -> None:
    for call in (lambda s: s.write("a", b""), lambda s: list(s.files("a")), lambda s: s.read("a")):
        with pytest.raises(InvalidSettingsError, match="ContainerNotFound") as caught:
            call(with_key(azure, "no-such-container"))
        assert caught.value.fix == "make the container, or correct the root"


def test_a_service_principal_is_let_in_with_its_secret(account: AzureServer, entra: Directory) -> None:
    account.client.create_container("lake")
    principal = AzureOptions(account.endpoint, TENANT, CLIENT, SecretStr(SECRET), authority=entra.url)
    storage = AzureStorage(account.root("lake"), principal)
    storage.write("a", b"1")
    there = pickle.loads(pickle.dumps(storage))  # as workers get it
    assert there.read("a") == b"1"
    assert SECRET not in repr(principal)

    wrong = AzureStorage(account.root("lake"), principal._replace(client_secret=SecretStr("wrong-secret")))
    with pytest.raises(PermissionMissingError, match="AADSTS7000215") as caught:
        wrong.read("a")
    assert "azure.tenant_id, client_id and client_secret" in caught.value.fix
    assert "wrong-secret" not in str(caught.value)


def test_without_any_setting_whoever_azures_tools_find_acts(account: AzureServer, signed_in: None) -> None:
    account.client.create_container("lake")
    storage = AzureStorage(account.root("lake"), AzureOptions(account.endpoint))
    storage.write("a", b"1")
    assert storage.read("a") == b"1"


def test_a_managed_identity_acts_whatever_the_environment_says_of_others(
    account: AzureServer, entra: Directory, signed_in: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{entra.url}/machine")
    monkeypatch.setenv("IDENTITY_HEADER", MACHINE)
    account.client.create_container("lake")
    settings = settings_for(account, "lake").replace(f'account_key = "{account.key}"', f'client_id = "{MANAGED}"')
    lake = Lake(tmp_path / "workspace", InProcess(), settings=settings)
    lake.place.storage.write("a", b"1")
    assert lake.place.storage.read("a") == b"1"
    assert not [path for path in entra.asked if path.endswith("/token")], "nobody else was asked for"
    assert steps(lake.workspace.folder)["azure: identity"]["detail"].startswith(f"managed identity {MANAGED}, with a")

    another = AzureStorage(account.root("lake"), AzureOptions(account.endpoint, client_id=CLIENT))
    with pytest.raises(PermissionMissingError, match=r"no token: .*No User Assigned Managed Identity found"):
        another.read("a")


@pytest.mark.parametrize("how", ["nobody answers", "it answers that it does not work"])
@pytest.mark.parametrize("who", ["a principal", "whoever Azure's tools find"])
def test_an_entra_that_is_away_is_no_missing_right(
    entra: Directory, signed_in: None, monkeypatch: pytest.MonkeyPatch, how: str, who: str
) -> None:
    entra.token_trouble = 503
    url = entra.url
    if how == "nobody answers":
        url = f"https://127.0.0.1:{free_ports(1)[0]}"
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", url)
    principal = AzureOptions("https://127.0.0.1:9/acme", TENANT, CLIENT, SecretStr(SECRET), authority=url)
    options = principal if who == "a principal" else AzureOptions(principal.endpoint)
    with pytest.raises(TransientError, match="no token: ") as caught:
        AzureStorage("abfss://lake@acme.dfs.core.windows.net", options, timeout=60).read("a")
    assert caught.value.code == "service_unavailable"
    assert SECRET not in str(caught.value)


# Secrets in Key Vault


def test_a_secret_may_be_kept_in_a_vault(account: AzureServer, entra: Directory, signed_in: None) -> None:
    entra.secrets["lake-key"] = account.key
    account.client.create_container("lake")
    kept = AzureOptions(account.endpoint, account_key=SecretStr("keyvault://acme-vault/lake-key"))
    AzureStorage(account.root("lake"), kept).write("a", b"1")
    assert AzureStorage(account.root("lake"), kept).read("a") == b"1"
    assert len([path for path in entra.asked if path.startswith("/secrets/lake-key")]) == 2  # a challenge, then once


def test_a_vault_that_refuses_is_told(entra: Directory, signed_in: None) -> None:
    with pytest.raises(InvalidSettingsError, match="keyvault://acme/nothing: there is no such secret"):
        vault.revealed(SecretStr("keyvault://acme/nothing"))
    entra.secrets["empty"] = ""
    with pytest.raises(InvalidSettingsError, match="is empty"):
        vault.revealed(SecretStr("keyvault://acme/empty"))
    entra.vault_trouble = 403
    with pytest.raises(PermissionMissingError, match="may not read keyvault://acme/nothing") as caught:
        vault.revealed(SecretStr("keyvault://acme/nothing"))
    assert "Key Vault Secrets User" in caught.value.fix


@pytest.mark.parametrize("status", [429, 503])
def test_a_vault_that_does_not_work_at_the_moment_is_no_missing_right(
    entra: Directory, signed_in: None, status: int
) -> None:
    entra.vault_trouble = status
    with pytest.raises(TransientError, match="could not read keyvault://acme/any"):
        vault.revealed(SecretStr("keyvault://acme/any"))


def test_a_secret_that_was_changed_in_its_vault_is_taken_without_a_restart(
    account: AzureServer, entra: Directory, signed_in: None
) -> None:
    account.client.create_container("lake")
    entra.secrets["lake-key"] = account.key.replace("E", "F", 1)
    kept = AzureOptions(account.endpoint, account_key=SecretStr("keyvault://acme-vault/lake-key"))
    storage = AzureStorage(account.root("lake"), kept)
    with pytest.raises(PermissionMissingError):
        storage.write("a", b"1")
    entra.secrets["lake-key"] = account.key
    storage.write("a", b"1")
    assert storage.read("a") == b"1"


def test_a_vault_needs_somebody_who_is_signed_in(
    entra: Directory, signed_in: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "not-the-secret")
    with pytest.raises(PermissionMissingError, match="no token") as caught:
        vault.revealed(SecretStr("keyvault://acme/any"))
    assert "not-the-secret" not in str(caught.value)


def test_what_is_no_place_in_a_vault_is_a_secret_as_it_is() -> None:
    assert vault.revealed(SecretStr("key=vault://a/b")) == "key=vault://a/b"


# Settings


ROOT = "abfss://events@acme.dfs.core.windows.net/lake"
WRONG = {
    "an account with capitals": ('root = "abfss://events@Acme.dfs.core.windows.net"', "an account of 3 to 24 of a-z"),
    "a long account": (f'root = "abfss://events@{"a" * 25}.dfs.core.windows.net"', "an account of 3 to 24"),
    "two hyphens": ('root = "abfss://my--events@acme.dfs.core.windows.net"', "a container of 3 to 63"),
    "a short container": ('root = "abfss://ev@acme.dfs.core.windows.net"', "a container of 3 to 63"),
    "another host": ('root = "abfss://events@acme.example.com"', "not abfss://container@account"),
    "the old way": ('root = "wasbs://events@acme.blob.core.windows.net"', "not abfss://container@account"),
    "no account": ('root = "az://events/lake"', "root = az://… needs azure.account"),
    "half a principal": (f'root = "{ROOT}"\n[azure]\nclient_id = "{CLIENT}"\nclient_secret = "x"', "go together"),
    "no principal": (f'root = "{ROOT}"\n[azure]\ntenant_id = "{TENANT}"\nclient_secret = "x"', "needs client_id"),
    "two ways in": (f'root = "{ROOT}"\n[azure]\naccount_key = "x"\nsas_token = "y"', "are different ways in"),
    "no vault": (f'root = "{ROOT}"\n[azure]\naccount_key = "keyvault://a/b c"', "azure.account_key: not keyvault://"),
    "a scope with a key": (
        f'root = "{ROOT}"\n[azure]\naccount_key = "x"\nencryption_scope = "abc"',
        "needs an identity",
    ),
    "no guid": (f'root = "{ROOT}"\n[azure]\ntenant_id = "acme"', "azure.tenant_id"),
    "glue": (f'root = "{ROOT}"\n[catalog]\nkind = "glue"', "catalog.kind = glue needs a lake in a bucket"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_azure_would_refuse_is_refused_before(tmp_path: Path, what: str) -> None:
    text, told = WRONG[what]
    (tmp_path / CONFIG).write_text(f'workspace_id = "w"\n[lake]\n{text}\n')
    with pytest.raises(ConfigurationError) as caught:
        Workspace.open(tmp_path).lake()
    assert told in caught.value.problem
    assert '"x"' not in str(caught.value)


def test_both_ways_to_write_an_address_are_one(tmp_path: Path) -> None:
    other = 'root = "az://events/lake/"\nazure = {account = "acme"}\n'
    (tmp_path / CONFIG).write_text(f'workspace_id = "w"\n[lake]\nroot = "{ROOT}"\n[lakes.b]\n{other}')
    with pytest.raises(ConfigurationError, match=f"the lakes default and b are both in {ROOT}"):
        Workspace.open(tmp_path)
    (tmp_path / CONFIG).write_text('workspace_id = "w"\n[lake]\nroot = "az://events"\n[azure]\naccount = "acme"\n')
    assert Workspace.open(tmp_path).lake().storage.root == "abfss://events@acme.dfs.core.windows.net"


def test_no_lake_lies_among_the_schema_files_of_another(tmp_path: Path) -> None:
    within = f'workspace_id = "w"\n[lake]\nroot = "{ROOT}"\n[lakes.b]\nroot = "{ROOT}/staging/b"\n'
    (tmp_path / CONFIG).write_text(within)
    with pytest.raises(ConfigurationError, match="lie one in the other"):
        Workspace.open(tmp_path)
    (tmp_path / CONFIG).write_text(within.replace("[lakes.b]", 'dialect = "rudderstack"\n[lakes.b]'))  # has none
    assert set(Workspace.open(tmp_path).lakes) == {"default", "b"}


def test_secrets_of_settings_are_shown_nowhere(azure: AzureServer, container: str, tmp_path: Path) -> None:
    lake = Lake(tmp_path, InProcess(), settings=settings_for(azure, container))
    lake.sync_of(track("A", "m1"))
    settings, storage = lake.workspace.settings, lake.place.storage
    shown = [repr(settings), settings.model_dump_json(), repr(storage.__dict__)]
    files = [path.read_bytes().decode(errors="replace") for path in tmp_path.rglob("*") if path.is_file()]
    stored = [storage.read(file.path).decode(errors="replace") for file in storage.files("")]
    assert sum(azure.key in text for text in [*shown, *files, *stored]) == 1  # where it was written: the settings file


# What Azure does otherwise than others


class _Proxy(BaseHTTPRequestHandler):
    """Passes requests on, but copies a blob some time after it said that it would."""

    protocol_version = "HTTP/1.1"
    server: "SlowCopies"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if "x-ms-copy-source" in self.headers:
            self.server.begin_copy(self.headers["x-ms-copy-source"], self.path)
            self._answer(202, [("x-ms-copy-status", "pending"), ("x-ms-copy-id", "1")], b"")
            return
        with closing(HTTPConnection("127.0.0.1", self.server.behind, timeout=30)) as behind:
            behind.request(self.command, self.path, body, dict(self.headers))
            answer = behind.getresponse()
            content = answer.read()
            for folder in self.server.folders if b"<Blobs>" in content else ():
                shown = f"<Name>{folder}</Name><Properties><Last-Modified>Thu, 19 Nov 2026 03:00:00 GMT</Last-Modified>"
                shown += "<Etag>0x1</Etag><ResourceType>directory</ResourceType><Content-Length>0</Content-Length>"
                shown += "<Content-Type>application/octet-stream</Content-Type>"
                content = content.replace(b"<Blobs>", f"<Blobs><Blob>{shown}</Properties></Blob>".encode())
            self.server.passed.append((self.command, self.path, dict(self.headers)))
            self._answer(answer.status, answer.getheaders(), content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("transfer-encoding", "connection", "keep-alive", "content-length"):
                self.send_header(name, value)
        lengths = [value for name, value in headers if name.lower() == "content-length" and self.command == "HEAD"]
        self.send_header("Content-Length", *lengths or [str(len(body))])
        self.end_headers()
        self.wfile.write(body)


class _Refusing(_Proxy):
    """Believes nobody, for the reason that its server has."""

    server: "Refusing"  # type: ignore[assignment]

    def _refuse(self) -> None:
        told = (
            "<Code>AuthenticationFailed</Code><Message>Server failed to authenticate the request. Make sure the value"
        )
        told += f" is correct.\nRequestId:1\nTime:2026</Message>{self.server.more}"
        body = f'<?xml version="1.0" encoding="utf-8"?><Error>{told}</Error>'.encode()
        self._answer(403, [("Content-Type", "application/xml"), ("x-ms-error-code", "AuthenticationFailed")], body)

    do_GET = _refuse  # noqa: N815


class Refusing(ThreadingHTTPServer):
    more = ""


class SlowCopies(ThreadingHTTPServer):
    def __init__(self, azure: AzureServer) -> None:
        super().__init__(("127.0.0.1", 0), _Proxy)
        self.azure = azure
        self.behind = urlsplit(azure.endpoint).port or 0
        self.passed: list[tuple[str, str, dict[str, str]]] = []
        self.folders: list[str] = []  # that listings show beside what there is
        self.are_finished = True

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/{self.azure.account}"

    def _blob(self, address: str) -> Any:
        container, _, name = urlsplit(address).path.removeprefix(f"/{self.azure.account}/").partition("/")
        return self.azure.client.get_blob_client(container, name)

    def begin_copy(self, source: str, target: str) -> None:
        self._blob(target).upload_blob(b"", overwrite=True)
        if self.are_finished:
            threading.Timer(0.5, self._finish, (source, target)).start()

    def _finish(self, source: str, target: str) -> None:
        self._blob(target).upload_blob(self._blob(source).download_blob().readall(), overwrite=True)


@pytest.fixture
def slow(azure: AzureServer) -> Iterator[SlowCopies]:
    with SlowCopies(azure) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_file_is_not_deleted_before_its_copy_is_there(slow: SlowCopies, azure: AzureServer, container: str) -> None:
    """Azure may answer that it will copy. Whoever deletes the source then has lost the file."""
    options = AzureOptions(slow.endpoint, account_key=SecretStr(azure.key))
    storage = AzureStorage(azure.root(container), options)
    moves = [(f"from/{n}", f"to/{n}") for n in range(5)]
    for source, _ in moves:
        storage.write(source, source.encode() * 100)
    storage.move_all(moves)
    assert {file.path: storage.read(file.path) for file in storage.files("to")} == {
        target: source.encode() * 100 for source, target in moves
    }
    assert not list(storage.files("from"))


def test_a_copy_that_never_ends_is_given_up_and_nothing_is_lost(
    slow: SlowCopies, azure: AzureServer, container: str
) -> None:
    slow.are_finished = False
    options = AzureOptions(slow.endpoint, account_key=SecretStr(azure.key))
    storage = AzureStorage(azure.root(container), options, timeout=2)
    storage.write("from", b"content")
    with pytest.raises(TransientError, match="still not copied"):
        storage.move("from", "to")
    assert storage.read("from") == b"content"


def test_new_files_are_encrypted_in_their_scope(slow: SlowCopies, azure: AzureServer, container: str) -> None:
    text = signature(azure, container, "racwdl")
    options = AzureOptions(slow.endpoint, sas_token=SecretStr(text), encryption_scope="analytics")
    storage = AzureStorage(azure.root(container), options)
    storage.write("a", b"1")
    storage.read("a")
    storage.delete("a")
    scopes = {method: headers.get("x-ms-encryption-scope") for method, _, headers in slow.passed}
    assert scopes["PUT"] == "analytics"
    assert {scope for method, scope in scopes.items() if method != "PUT"} == {None}


def test_a_file_that_is_moved_stays_in_its_scope(slow: SlowCopies, azure: AzureServer, container: str) -> None:
    """Azure refuses to encrypt what it copies by itself."""
    text = signature(azure, container, "racwdl")
    options = AzureOptions(slow.endpoint, sas_token=SecretStr(text), encryption_scope="analytics")
    storage = AzureStorage(azure.root(container), options)
    contents = {"from/small": b"1", "from/empty": b"", "from/large": bytes(range(256)) * 50_000}
    for path, content in contents.items():
        storage.put(path, content)
    moves = [(path, path.replace("from", "to")) for path in contents]
    slow.passed.clear()
    for _ in range(2):  # the second time, everything is there already
        storage.move_all(moves)
    assert {path: storage.read(target) for path, target in moves} == contents
    assert not list(storage.files("from"))
    made = [(path, headers) for method, path, headers in slow.passed if method == "PUT"]
    assert len({path.partition("?")[0] for path, _ in made}) == 3
    assert {headers.get("x-ms-encryption-scope") for _, headers in made} == {"analytics"}
    with pytest.raises(FileNotFoundError):
        storage.move("nothing", "nowhere")


def test_folders_of_an_account_that_has_real_ones_are_no_files(
    slow: SlowCopies, azure: AzureServer, container: str
) -> None:
    """Such an account lists them beside the files, also when nothing is left in them."""
    storage = AzureStorage(azure.root(container), AzureOptions(slow.endpoint, account_key=SecretStr(azure.key)))
    storage.write("raw/day/one", b"1")
    slow.folders = ["raw", "raw/day", "raw/empty"]
    assert [file.path for file in storage.files("raw")] == ["raw/day/one"]
    storage.delete_folder("raw")
    assert list(storage.files("raw")) == []


def test_what_is_gone_already_does_not_keep_the_rest(azure: AzureServer, container: str) -> None:
    storage = with_key(azure, container)
    moves = [(f"from/{n:03}", f"to/{n:03}") for n in range(600)]  # more than go into one request
    for source, _ in moves[300:]:
        storage.write(source, b"x")
    for _, target in moves[:300]:
        storage.write(target, b"x")
    storage.move_all(moves)
    assert [file.path for file in storage.files("")] == [target for _, target in moves]


# A whole lake


@pytest.fixture
def lake(azure: AzureServer, container: str, tmp_path: Path) -> Lake:
    return Lake(tmp_path / "workspace", InProcess(), clock=SetClock(), settings=settings_for(azure, container))


def schema_files(lake: Lake) -> dict[str, Any]:
    storage = lake.place.storage
    return {file.path: json.loads(storage.read(file.path)) for file in storage.files("staging")}


def test_each_type_of_event_has_a_schema_file(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"price": 1}), track("B", "m2"))
    first = schema_files(lake)
    assert set(first) == {"staging/src1/track_a.json", "staging/src1/track_b.json"}
    lake.sync_of(track("A", "m3", properties={"name": "x"}), track("B", "m4"))
    files = schema_files(lake)
    assert files["staging/src1/track_b.json"] == first["staging/src1/track_b.json"]  # nothing new, nothing written
    described = files["staging/src1/track_a.json"]
    columns = {column["name"]: column for column in described["columns"]}
    types = lake.types("track_a")
    assert {name: column["type"] for name, column in columns.items()} == types
    (second, run) = (found.run_id for found in lake.place.runs.latest(2))
    assert (columns["properties_price"]["run_id"], columns["properties_name"]["run_id"]) == (run, second)
    assert columns["properties_price"]["since"] < columns["properties_name"]["since"]
    assert columns["properties_name"]["path"] == "/properties/name"
    assert described["location"] == lake.place.storage.full("segment-data/data/src1/segment_type=track_a")
    assert [key["name"] for key in described["partition_keys"]] == ["day", "hr"]
    for one in files.values():
        jsonschema.validate(one, json.loads(SCHEMA.read_text()), jsonschema.Draft202012Validator)


def test_schema_files_follow_retypes_rebuilds_losses_and_drops(lake: Lake) -> None:
    lake.sync_of(track("A", "m1", properties={"price": 1}), track("B", "m2"), track("C", "m3"))
    job = requests.retype(lake.place, "web.track_a", "properties_price", "string")
    assert job
    lake.run(job)
    described = schema_files(lake)["staging/src1/track_a.json"]
    assert next(one["type"] for one in described["columns"] if one["name"] == "properties_price") == "string"
    lake.run(jobs.rebuild(lake.workspace.connections.preview("web", {"date_partition": "day", "table_prefix": "x"})))
    described = schema_files(lake)["staging/src1/track_a.json"]
    assert (described["table"], [key["name"] for key in described["partition_keys"]]) == ("x_track_a", ["day"])
    before = schema_files(lake)
    lake.place.storage.delete("staging/src1/track_b.json")
    lake.place.storage.write("staging/src1/track_a.json", b"half of a fi")
    lake.place.storage.write("staging/src1/track_mine.json", b'{"whose": "somebody else"}')
    lake.run(jobs.drop(lake.connection, "track_c"))
    lake.sync_of(track("B", "m4"), track("A", "m5", properties={"price": 2}))
    files = schema_files(lake)
    assert files.pop("staging/src1/track_mine.json") == {"whose": "somebody else"}
    assert set(files) == {"staging/src1/track_a.json", "staging/src1/track_b.json"}
    assert {path: file["columns"] for path, file in files.items()} == {path: before[path]["columns"] for path in files}


def columns_described(lake: Lake) -> dict[str, list[str]]:
    return {file["table"]: [column["name"] for column in file["columns"]] for file in schema_files(lake).values()}


def columns_there(lake: Lake) -> dict[str, list[str]]:
    return {table.name: [column.name for column in table.schema.columns] for table in lake.place.catalog.tables()}


@pytest.mark.parametrize("step", ["stage", "dedupe", "publish"])
def test_a_replay_beside_a_sync_describes_what_both_brought(lake: Lake, step: str) -> None:
    lake.sync_of(track("A", "m1"), track("B", "m2"))
    of_sync = track("A", "m3", properties={"new": 1}), track("C", "m4")
    _, steps = replayed(lake, step, synced(lake, *of_sync))
    assert len(steps) == 3  # it was not made again
    assert columns_described(lake) == columns_there(lake)
    assert "properties_new" in columns_described(lake)["track_a"]
    assert set(columns_described(lake)) == {"track_a", "track_b", "track_c"}


def test_a_run_that_is_not_committed_describes_nothing(lake: Lake) -> None:
    lake.sync_of(track("A", "m1"))
    before = schema_files(lake)
    lake.put(track("A", "m2", properties={"new": 1}), track("B", "m3"))
    died_at(lake, jobs.sync(lake.connection), "create")  # of the manifest
    assert schema_files(lake) == before


@pytest.mark.parametrize("change", ["write staging", "copy", "write segment-data"])
def test_a_run_that_died_after_its_manifest_is_described_by_the_next(lake: Lake, change: str) -> None:
    lake.sync_of(track("A", "m1"))
    lake.put(track("A", "m2", properties={"new": 1}), track("B", "m3"))
    died_at(lake, jobs.sync(lake.connection), change)
    lake.sync()
    assert columns_described(lake) == columns_there(lake)
    assert "properties_new" in columns_described(lake)["track_a"]


def test_only_lakes_on_azure_have_schema_files(tmp_path: Path) -> None:
    here = Lake(tmp_path / "here", InProcess(), settings='[lake]\nroot = "lake"\n')
    here.sync_of(track("A", "m1"))
    assert not (here.root / "staging").exists()


def test_a_signature_that_ends_in_the_middle_of_a_run_fails_it_and_the_next_completes(
    azure: AzureServer, container: str, tmp_path: Path
) -> None:
    client = azure.client.get_container_client(container)
    policy = AccessPolicy(ContainerSasPermissions.from_string("racwdl"), datetime.now(UTC) + timedelta(hours=1))
    client.set_container_access_policy({"lake": policy})
    text = generate_container_sas(azure.account, container, account_key=azure.key, policy_id="lake")
    settings = settings_for(azure, container).replace(f'account_key = "{azure.key}"', f'sas_token = "{text}"')
    lake = Lake(tmp_path, InProcess(), clock=SetClock(), settings=settings)
    lake.put(track("A", "m1"), track("A", "m1"), track("B", "m2"))

    def end_it(step: str, done: int, tasks: int) -> None:
        if step == "publish":
            client.set_container_access_policy({})

    with pytest.raises(PermissionMissingError) as caught:
        run(lake.workspace, jobs.sync(lake.connection), lake.runner, end_it)
    assert text not in str(caught.value)
    failed = lake.place.runs.latest(1)[0]
    assert failed.report
    assert failed.report[0]["error_code"] == "insufficient_permissions.download_object"
    client.set_container_access_policy({"lake": policy})
    run(lake.workspace, jobs.sync(lake.connection), lake.runner, no_progress)
    assert [row["message_id"] for table in ("track_a", "track_b") for row in lake.rows(table)] == ["m1", "m2"]
    assert verify(lake.workspace, lake.connection, InProcess()) == []
    assert lake.staged() == []


def rows_of(place: Place, table_key: str) -> int:
    """As other engines count them."""
    files = [place.storage.open_input(file.path) for file in place.ledger.data_files("src1", table_key)]
    return sum(pq.read_metadata(file).num_rows for file in files)


def test_one_source_goes_to_two_clouds_in_two_dialects(
    azure: AzureServer, container: str, s3: S3Server, bucket: str, tmp_path: Path
) -> None:
    there = f'endpoint = "{azure.endpoint}", account_key = "{azure.key}"'
    settings = (
        settings_for(s3, bucket)
        + f'[lakes.azure]\nroot = "{azure.root(container)}/lake"\nazure = {{ {there} }}\n'
        + f'[lakes.rudder]\nroot = "{azure.root(container)}/other"\nazure = {{ {there} }}\ndialect = "rudderstack"\n'
    )
    lake = Lake(tmp_path, InProcess(), clock=SetClock(), settings=settings)
    daily = {"date_partition": "day", "table_prefix": "x"}
    for name, chosen in (("azure", daily), ("rudder", {"time_window_layout": "dt=2006-01-02"})):
        lake.workspace.connections.connect("web", name, chosen)
    lake.put(track("A", "m1", properties={"price": 1}), track("A", "m1"), b"broken")
    connections = [lake.workspace.connections.get(name) for name in ("web", "web/azure", "web/rudder")]
    books = [run(lake.workspace, jobs.sync(one), InProcess())[0]["books"] for one in connections]
    assert [(one["lines"], one["loaded"], one["duplicates"], one["quarantined"]) for one in books] == [(3, 1, 1, 1)] * 3
    found = {
        place.name: {table.name: rows_of(place, table.table_key) for table in place.catalog.tables()}
        for place in lake.workspace.lakes.values()
    }
    assert found == {"default": {"track_a": 1}, "azure": {"x_track_a": 1}, "rudder": {"a": 1, "tracks": 1}}
    keys = {place.name: place.catalog.tables()[0].partition_keys for place in lake.workspace.lakes.values()}
    assert keys == {"default": ("day", "hr"), "azure": ("day",), "rudder": ("dt",)}
    # The container is gone: the bucket's sync goes on, and afterwards what it had is made anew from the archive.
    azure.client.delete_container(container)
    lake.put(track("A", "m2"))
    assert lake.sync()[0]["books"]["loaded"] == 1
    for one in connections[1:]:
        with pytest.raises(InvalidSettingsError, match="ContainerNotFound"):
            run(lake.workspace, jobs.sync(one), InProcess())
    azure.client.create_container(container)
    for one in connections[1:]:
        assert run(lake.workspace, jobs.sync(one), InProcess())[0]["books"]["loaded"] == 1
        repair(lake.workspace, one, verify(lake.workspace, one, InProcess()), InProcess())
    assert [verify(lake.workspace, one, InProcess()) for one in connections] == [[], [], []]
    assert {
        place.name: {table.name: rows_of(place, table.table_key) for table in place.catalog.tables()}
        for place in lake.workspace.lakes.values()
    } == {"default": {"track_a": 2}, "azure": {"x_track_a": 2}, "rudder": {"a": 2, "tracks": 2}}


def steps(folder: Path) -> dict[str, dict[str, Any]]:
    told = CliRunner().invoke(app, ["-C", str(folder), "doctor", "--json"])
    return {one["step"]: one for one in json.loads(told.stdout)}


def test_the_doctor_looks_at_azure_step_by_step(lake: Lake, azure: AzureServer, container: str) -> None:
    found = steps(lake.workspace.folder)
    assert {one["status"] for name, one in found.items() if name.startswith("storage")} == {"passed"}
    assert found["azure: identity"]["detail"] == "the key of the account"
    assert "azure: key vault" not in found
    assert found["storage: namespace"]["detail"].startswith("flat")
    azure.client.get_blob_client(container, "lake/segment-stage").upload_blob(
        b""
    )  # as an account with folders shows one
    assert steps(lake.workspace.folder)["storage: namespace"]["detail"].startswith("hierarchical")


def test_the_doctor_tells_which_secret_cannot_be_read(
    entra: Directory, signed_in: None, account: AzureServer, tmp_path: Path
) -> None:
    account.client.create_container("lake")
    settings = settings_for(account, "lake").replace(account.key, "keyvault://acme/key")
    lake = Lake(tmp_path / "workspace", InProcess(), settings=settings)
    found = steps(lake.workspace.folder)
    assert found["azure: key vault"]["detail"] == "keyvault://acme/key: there is no such secret"
    assert found["storage: upload"]["status"] == "failed"
    entra.secrets["key"] = account.key
    found = steps(lake.workspace.folder)
    assert found["azure: key vault"]["detail"] == "1 secret can be read"
    assert found["storage: upload"]["status"] == "passed"
    assert account.key not in json.dumps(found)


def test_secrets_of_a_lake_elsewhere_are_tried_too_that_of_the_database_among_them(
    entra: Directory, signed_in: None, tmp_path: Path
) -> None:
    folder = Workspace.create(tmp_path / "workspace").folder
    channel = '[channels.ops]\nkind = "webhook"\nurl = "https://acme.example/hook"\nsecret = "keyvault://acme/signs"\n'
    config = (folder / CONFIG).read_text()
    (folder / CONFIG).write_text(f'database = "keyvault://acme/database"\n{config}{channel}')
    found = steps(folder)
    assert found["azure: key vault"]["detail"] == "keyvault://acme/database: there is no such secret"
    assert found["database"]["detail"] == "keyvault://acme/database: there is no such secret"
    entra.secrets |= {"database": "sqlite:///kept.db", "signs": "key"}
    found = steps(folder)
    assert found["azure: key vault"]["detail"] == "2 secrets can be read"
    assert found["database"]["status"] == "passed"
    assert (folder / "kept.db").is_file()


def test_the_password_of_the_database_is_shown_nowhere(tmp_path: Path) -> None:
    (tmp_path / CONFIG).write_text('workspace_id = "w"\ndatabase = "postgresql://lake:s3cr3t@127.0.0.1:1/lake"\n')
    place = Workspace.open(tmp_path)
    with pytest.raises(TransientError) as caught:
        place.sources.all()
    assert "s3cr3t" not in repr(place.settings) + place.settings.model_dump_json() + str(caught.value)
