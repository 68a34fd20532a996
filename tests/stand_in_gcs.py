"""A stand-in for Google Cloud Storage: as much of its XML API as a lake asks for, with objects in memory.

It believes who shows a token that is signed with the key of its service account, as Google does.
"""

import base64
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from pydantic import SecretStr

from eventlake.storage.gcs import GcsOptions, GcsStorage

BUCKET = "acme-events"
_PAGE = 1000
_CHANGED = "2026-11-15T12:00:00.000Z"
_CHANGED_IN_A_HEADER = "Sun, 15 Nov 2026 12:00:00 GMT"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@dataclass
class Objects:
    """What is in the bucket, and who may do what."""

    key: rsa.RSAPrivateKey = field(default_factory=new_key)
    objects: dict[str, tuple[int, bytes]] = field(default_factory=dict)  # by name: generation and content
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    denied: set[str] = field(default_factory=set)  # methods
    lock: threading.Lock = field(default_factory=threading.Lock)
    generation: int = 0

    def put(self, name: str, content: bytes, condition: str | None) -> bool:
        with self.lock:
            if condition is not None and int(condition) != self.objects.get(name, (0, b""))[0]:
                return False
            self.generation += 1
            self.objects[name] = self.generation, content
            return True

    @property
    def service_account(self) -> str:
        """The file that Google makes of a key."""
        form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        account = {
            "type": "service_account",
            "client_email": "lake@acme.iam.gserviceaccount.com",
            "private_key_id": "1",
        }
        return json.dumps(account | {"private_key": self.key.private_bytes(*form).decode()})


class Google(ThreadingHTTPServer):
    daemon_threads = True
    place: Objects

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def settings(self) -> str:
        """Of a lake in the bucket, as the settings file has them."""
        return (
            f'[lake]\nroot = "gs://{BUCKET}/lake"\n[gcs]\nendpoint = "{self.endpoint}"\n'
            f"service_account_key = {json.dumps(self.place.service_account)}\n"
        )

    def storage(self, prefix: str) -> GcsStorage:
        key = SecretStr(self.place.service_account)
        return GcsStorage(f"gs://{BUCKET}{prefix}", GcsOptions(self.endpoint, service_account_key=key))


class _Handler(BaseHTTPRequestHandler):
    server: Google
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code><Message>{code} it is.</Message></Error>".encode())

    def _handle(self) -> None:
        place, url = self.server.place, urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        bucket, _, name = unquote(url.path).removeprefix("/").partition("/")
        asked = {key: values[0] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        if url.path.startswith("/computeMetadata/"):  # where machines of Google's get their tokens
            self._answer(503)
        elif not self._is_believed():
            self._refuse(401, "AuthenticationRequired")
        elif self.command in place.denied:
            self._refuse(403, "AccessDenied")
        elif bucket != BUCKET:
            self._refuse(404, "NoSuchBucket")
        elif not name:
            self._list(asked)
        elif "uploads" in asked or "uploadId" in asked:
            self._upload(name, body, asked)
        elif self.command == "PUT":
            self._put(name, body)
        elif name not in place.objects:
            self._refuse(404, "NoSuchKey")
        elif self.command == "DELETE":
            place.objects.pop(name, None)
            self._answer(204)
        else:
            self._get(*place.objects[name])

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815

    def _is_believed(self) -> bool:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        told, _, signature = token.rpartition(".")
        try:
            signed = base64.urlsafe_b64decode(signature + "==")
            self.server.place.key.public_key().verify(signed, told.encode(), padding.PKCS1v15(), hashes.SHA256())
        except (InvalidSignature, ValueError):
            return False
        return True

    def _put(self, name: str, body: bytes) -> None:
        place = self.server.place
        if source := self.headers.get("x-goog-copy-source"):
            found = place.objects.get(unquote(source).removeprefix(f"{BUCKET}/"))
            if found is None:
                self._refuse(404, "NoSuchKey")
                return
            body = found[1]
        if place.put(name, body, self.headers.get("x-goog-if-generation-match")):
            self._stored(name)
        else:
            self._refuse(412, "PreconditionFailed")

    def _stored(self, name: str, body: bytes = b"") -> None:
        generation, _ = self.server.place.objects[name]
        self._answer(200, body, ETag=f'"{generation}"', x_goog_generation=str(generation))

    def _upload(self, name: str, body: bytes, asked: dict[str, str]) -> None:
        """A large object, in parts."""
        uploads = self.server.place.uploads
        if "uploads" in asked:
            number = str(len(uploads) + 1)
            uploads[number] = {}
            told = f"<InitiateMultipartUploadResult><UploadId>{number}</UploadId></InitiateMultipartUploadResult>"
            self._answer(200, told.encode())
        elif self.command == "PUT":
            uploads[asked["uploadId"]][int(asked["partNumber"])] = body
            self._answer(200, ETag=f'"{asked["partNumber"]}"')
        elif self.command == "DELETE":
            uploads[asked["uploadId"]] = {}
            self._answer(204)
        else:
            parts = uploads[asked["uploadId"]]
            numbers = [int(one) for one in re.findall(rb"<PartNumber>(\d+)</PartNumber>", body)]
            self.server.place.put(name, b"".join(parts[number] for number in numbers), None)
            self._stored(name, b'<CompleteMultipartUploadResult><ETag>"1"</ETag></CompleteMultipartUploadResult>')

    def _get(self, generation: int, content: bytes) -> None:
        etag = f'"{generation}"'
        told = {"ETag": etag, "Last_Modified": _CHANGED_IN_A_HEADER, "x_goog_generation": str(generation)}
        if self.headers.get("If-Match", etag).strip('"') != etag.strip('"'):
            self._refuse(412, "PreconditionFailed")
        elif wanted := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
            start, last = int(wanted[1]), min(int(wanted[2]), len(content) - 1)
            shown = f"bytes {start}-{last}/{len(content)}"
            self._answer(206, content[start : last + 1], Content_Range=shown, **told)
        else:
            self._answer(200, content, **told)

    def _list(self, asked: dict[str, str]) -> None:
        """A page of what begins with a prefix; what lies deeper, with a delimiter, as the folder that it is in."""
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        with self.server.place.lock:
            known = sorted((name, *found) for name, found in self.server.place.objects.items())
        after = asked.get("continuation-token", "")
        shown: dict[str, str] = {}
        for name, generation, content in known:
            if not name.startswith(prefix):
                continue
            folder, deeper, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            one = f"{prefix}{folder}{deeper}" if deeper else name
            about = f'<LastModified>{_CHANGED}</LastModified><ETag>"{generation}"</ETag><Size>{len(content)}</Size>'
            if one > after:
                text = f"<Prefix>{escape(one)}</Prefix>" if deeper else f"<Key>{escape(one)}</Key>{about}"
                shown[one] = f"<CommonPrefixes>{text}</CommonPrefixes>" if deeper else f"<Contents>{text}</Contents>"
        page = list(shown)[:_PAGE]
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if len(shown) > len(page) else ""
        found = "".join(shown[one] for one in page)
        self._answer(200, f"<ListBucketResult>{more}{found}</ListBucketResult>".encode())


@pytest.fixture
def gcs() -> Iterator[Google]:
    with Google(("127.0.0.1", 0), _Handler) as server:
        server.place = Objects()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
