"""A lake in a bucket of S3, or of any server that speaks its protocol.

A bucket knows neither folders nor renaming. An object appears whole when its upload ends, so a file is moved by
copying it on the server and deleting the old name: after a crash between the two, moving it again does the rest.
"""

import functools
import io
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from eventlake.errors import (
    EventLakeError,
    InvalidSettingsError,
    PermissionMissingError,
    SetupError,
    TransientError,
)
from eventlake.storage.base import TIMEOUT, Storage, StoredFile, answered, transferred

R = TypeVar("R")

_IN_MEMORY = 32 << 20  # an upload larger than this waits on the local disk
_READ_AT_ONCE = 8 << 20
_NOT_ALLOWED = {"AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "403"}
_NOT_THERE = {"NoSuchKey", "404"}
_TAKEN = {"PreconditionFailed", "412"}
_WRONG = {"InvalidBucketName", "IllegalLocationConstraintException", "PermanentRedirect", "301"}


class S3Options(NamedTuple):
    """How to reach the server; credentials are found where all AWS tools look for them."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False


class S3Storage(Storage):
    at_once = 16

    def __init__(self, root: str, options: S3Options | None = None, *, timeout: float = TIMEOUT) -> None:
        super().__init__(root.rstrip("/"), timeout=timeout)
        self._options = options or S3Options()
        self._bucket, _, prefix = self.root.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), timeout=self.timeout), (self.root, self._options)

    @functools.cached_property
    def _client(self) -> Any:
        try:
            import boto3  # noqa: PLC0415 - only lakes in a bucket need it
            from botocore.config import Config  # noqa: PLC0415
        except ImportError as error:
            raise SetupError(
                f"{self.root}: the AWS library is not installed", fix="pip install 'eventlake[aws]'"
            ) from error
        config = Config(
            connect_timeout=10,
            read_timeout=60,
            retries={"mode": "standard", "max_attempts": 5},
            max_pool_connections=2 * self.at_once,
            s3={"addressing_style": "path" if self._options.path_style else "auto"},
        )
        try:
            session = boto3.session.Session(region_name=self._options.region)
            return session.client("s3", endpoint_url=self._options.endpoint, config=config)
        except ValueError as error:
            raise InvalidSettingsError(f"s3.endpoint: {error}", fix="give a whole URL: http://host:port") from error

    def attempt(self, method: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        try:
            return super().attempt(method, *args, **kwargs)
        except Exception as error:
            told = self._told(error, self.described(method, args))
            if told is None:
                raise
            raise told from error

    def _told(self, error: Exception, what: str) -> Exception | None:
        """What an answer of the server, or of its library, means; None if it is neither."""
        code = _code(error)
        if code in _NOT_THERE:
            return FileNotFoundError(what)
        if code in _NOT_ALLOWED or type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
            return PermissionMissingError(
                f"may not {what}: {error}",
                fix="give the user or role that runs this the right to list, read, write and delete in the bucket",
            )
        if code == "NoSuchBucket":
            return InvalidSettingsError(f"there is no bucket {self._bucket}", fix="make it, or correct lake.root")
        if code in _WRONG or type(error).__name__ in ("ParamValidationError", "ProfileNotFound"):
            return InvalidSettingsError(f"could not {what}: {error}", fix="correct lake.root and the settings of s3")
        if type(error).__module__.startswith(("botocore", "boto3", "s3transfer", "urllib3")):
            return TransientError(f"could not {what}: {error}", fix="check the network, then run it again")
        return None

    def _key(self, path: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + path}

    def files(self, folder: str) -> Iterator[StoredFile]:
        start = len(self._prefix)
        for page in self._pages(folder):
            for item in page.get("Contents", ()):
                if not item["Key"].endswith("/"):  # some tools make empty objects to stand for folders
                    yield StoredFile(item["Key"][start:], item["Size"], item["ETag"].strip('"'))

    def folders(self, folder: str) -> list[str]:
        found = [item["Prefix"] for page in self._pages(folder, "/") for item in page.get("CommonPrefixes", ())]
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in found)

    def _pages(self, folder: str, delimiter: str = "") -> Iterator[dict[str, Any]]:
        page = self._list(folder, delimiter)
        yield page
        while page.get("IsTruncated"):
            page = self._list(folder, delimiter, page["NextContinuationToken"])
            yield page

    @answered
    def _list(self, folder: str, delimiter: str, token: str | None = None) -> dict[str, Any]:
        options = {"ContinuationToken": token} if token else {}
        page: dict[str, Any] = self._client.list_objects_v2(
            Bucket=self._bucket, Prefix=f"{self._prefix}{folder}/", Delimiter=delimiter, **options
        )
        return page

    def stat(self, path: str) -> StoredFile | None:
        try:
            return self._head(path)
        except FileNotFoundError:
            return None

    @answered
    def _head(self, path: str) -> StoredFile:
        head = self._client.head_object(**self._key(path))
        return StoredFile(path, head["ContentLength"], head["ETag"].strip('"'))

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_Ranges(self, self._head(path)), mode="r")

    def open_stream(self, path: str) -> Any:
        return io.BufferedReader(_Ranges(self, self._head(path)), _READ_AT_ONCE)

    @answered
    def read_range(self, path: str, etag: str, start: int, stop: int) -> bytes:
        """Some bytes of a file that has not changed since it had this etag."""
        found = self._client.get_object(**self._key(path), Range=f"bytes={start}-{stop - 1}", IfMatch=etag)
        content: bytes = found["Body"].read()
        return content

    def open_output(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_Upload(self, path), mode="w")

    @transferred
    def upload(self, path: str, content: Any) -> None:
        """Write a file of any size from a file object."""
        self._client.upload_fileobj(content, **self._key(path))

    @answered
    def read(self, path: str) -> bytes:
        content: bytes = self._client.get_object(**self._key(path))["Body"].read()
        return content

    @answered
    def write(self, path: str, content: bytes) -> None:
        self._client.put_object(**self._key(path), Body=content)

    @answered
    def create(self, path: str, content: bytes) -> bool:
        try:
            self._client.put_object(**self._key(path), Body=content, IfNoneMatch="*")
        except Exception as error:
            if _code(error) not in _TAKEN:
                raise
            # Perhaps by this call: an answer that is lost makes the library ask once more.
            there: bytes = self._client.get_object(**self._key(path))["Body"].read()
            return there == content
        return True

    @transferred
    def move(self, source: str, target: str) -> None:
        try:
            self._client.copy(self._key(source), **self._key(target))
        except Exception as error:
            if _code(error) not in _NOT_THERE:
                raise
            self._client.head_object(**self._key(target))  # it was moved before, or it is lost
        self._client.delete_object(**self._key(source))

    def settle(self) -> None:
        """What a bucket has taken is safe."""

    @answered
    def delete(self, path: str) -> None:
        self._client.delete_object(**self._key(path))

    def delete_folder(self, folder: str) -> None:
        for page in self._pages(folder):
            self._delete(folder, [{"Key": item["Key"]} for item in page.get("Contents", ())])

    @answered
    def _delete(self, folder: str, keys: list[dict[str, str]]) -> None:
        if keys:
            failed = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
            if failed.get("Errors"):
                raise TransientError(f"could not delete {folder}: {failed['Errors'][0]}", fix="run it again")


def _code(error: Exception) -> str:
    """The code of an answer that refuses; empty if it is something else."""
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


class _Ranges(io.RawIOBase):
    """A file of a bucket, read by ranges: a broken connection costs one of them, not the whole file."""

    def __init__(self, storage: S3Storage, file: StoredFile) -> None:
        self._storage = storage
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = start + offset
        return self._at

    def size(self) -> int:
        return self._file.size

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        stop = min(self._at + len(view), self._file.size)
        if stop <= self._at:
            return 0
        try:
            content = self._storage.read_range(self._file.path, self._file.etag, self._at, stop)
        except EventLakeError as error:
            raise OSError(error.problem) from error  # what a reader of files expects
        view[: len(content)] = content
        self._at += len(content)
        return len(content)

    def readall(self) -> bytes:
        return b"".join(iter(lambda: self.read(_READ_AT_ONCE) or b"", b""))


class _Upload(io.RawIOBase):
    """A file on its way to a bucket: it is there when it is closed."""

    def __init__(self, storage: S3Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._content = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed with this file

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        return self._content.write(content)

    def tell(self) -> int:
        return self._content.tell()

    def close(self) -> None:
        if not self.closed:
            try:
                self._content.seek(0)
                self._storage.upload(self._path, self._content)
            finally:
                self._content.close()
                super().close()
