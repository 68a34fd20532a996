"""A lake in a bucket of S3, or of any server that speaks its protocol.

A bucket knows neither folders nor renaming. An object appears whole when its upload ends, so a file is moved by
copying it on the server and deleting the old name: after a crash between the two, moving it again does the rest.
"""

import functools
import io
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from eventlake.aws.refusals import code_of, explained
from eventlake.aws.session import AwsOptions, client
from eventlake.errors import InvalidSettingsError, TransientError
from eventlake.storage.base import TIMEOUT, Storage, StoredFile, answered, transferred
from eventlake.storage.s3_files import READ_AT_ONCE, Ranges, Upload

R = TypeVar("R")

_NOT_THERE = {"NoSuchKey", "404"}
_TAKEN = {"PreconditionFailed", "412"}
_WRONG = {"InvalidBucketName", "IllegalLocationConstraintException", "PermanentRedirect", "301"}


class S3Options(NamedTuple):
    """How to reach the server, and as whom."""

    endpoint: str | None = None
    path_style: bool = False
    encryption: str | None = None  # with which new objects are stored; by default as the bucket does
    kms_key_id: str | None = None
    aws: AwsOptions = AwsOptions()

    @property
    def of_new_objects(self) -> dict[str, str]:
        wanted = {"ServerSideEncryption": self.encryption, "SSEKMSKeyId": self.kms_key_id}
        return {name: value for name, value in wanted.items() if value}


class S3Storage(Storage):
    at_once = 16

    def __init__(self, root: str, options: S3Options | None = None, *, timeout: float = TIMEOUT) -> None:
        super().__init__(root.rstrip("/"), timeout=timeout)
        self.options = options or S3Options()
        self._bucket, _, prefix = self.root.removeprefix("s3://").partition("/")
        self._prefix = f"{prefix}/" if prefix else ""

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), timeout=self.timeout), (self.root, self.options)

    @functools.cached_property
    def _client(self) -> Any:
        style = "path" if self.options.path_style else "auto"
        return client(
            "s3",
            self.options.aws,
            endpoint=self.options.endpoint,
            max_pool_connections=2 * self.at_once,
            s3={"addressing_style": style},
        )

    def attempt(self, method: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        try:
            return super().attempt(method, *args, **kwargs)
        except Exception as error:
            problem = self._explained(error, self.described(method, args))
            if problem is None:
                raise
            raise problem from error

    def _explained(self, error: Exception, what: str) -> Exception | None:
        """What an answer of the server, or of its library, means; None if it is neither."""
        code = code_of(error)
        if code in _NOT_THERE:
            return FileNotFoundError(what)
        if code == "NoSuchBucket":
            return InvalidSettingsError(f"there is no bucket {self._bucket}", fix="make it, or correct lake.root")
        if code in _WRONG:
            return InvalidSettingsError(f"could not {what}: {error}", fix="correct lake.root and the settings of s3")
        return explained(error, what, self.options.aws)

    def _key(self, path: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + path}

    def files(self, folder: str) -> Iterator[StoredFile]:
        first = self._list(f"{folder}/", "")
        if not first.get("IsTruncated"):
            yield from self._in_page(first)
            return
        with ThreadPoolExecutor(self.at_once) as pool:
            parts: list[str | StoredFile] = [f"{folder}/"]
            while 0 < sum(isinstance(part, str) for part in parts) < self.at_once:  # prefixes to list at the same time
                parts = list(itertools.chain.from_iterable(pool.map(self._members, parts)))
            yield from itertools.chain.from_iterable(pool.map(self._all_below, parts))

    def _in_page(self, page: dict[str, Any]) -> list[StoredFile]:
        return [
            StoredFile(item["Key"][len(self._prefix) :], item["Size"], item["ETag"].strip('"'))
            for item in page.get("Contents", ())
            if not item["Key"].endswith("/")  # some tools make empty objects to stand for folders
        ]

    def _all_below(self, part: str | StoredFile) -> list[StoredFile]:
        if isinstance(part, StoredFile):
            return [part]
        return [file for page in self._pages(part) for file in self._in_page(page)]

    def _members(self, part: str | StoredFile) -> list[str | StoredFile]:
        """The files of a prefix, and the prefixes below it, in order."""
        if isinstance(part, StoredFile):
            return [part]
        members: list[str | StoredFile] = []
        for page in self._pages(part, "/"):
            members += self._in_page(page)
            members += [item["Prefix"][len(self._prefix) :] for item in page.get("CommonPrefixes", ())]
        return sorted(members, key=lambda member: member if isinstance(member, str) else member.path)

    def folders(self, folder: str) -> list[str]:
        found = [item["Prefix"] for page in self._pages(f"{folder}/", "/") for item in page.get("CommonPrefixes", ())]
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in found)

    def _pages(self, prefix: str, delimiter: str = "") -> Iterator[dict[str, Any]]:
        page = self._list(prefix, delimiter)
        yield page
        while page.get("IsTruncated"):
            page = self._list(prefix, delimiter, page["NextContinuationToken"])
            yield page

    @answered
    def _list(self, prefix: str, delimiter: str, token: str | None = None) -> dict[str, Any]:
        options = {"ContinuationToken": token} if token else {}
        page: dict[str, Any] = self._client.list_objects_v2(
            Bucket=self._bucket, Prefix=self._prefix + prefix, Delimiter=delimiter, **options
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
        return pa.PythonFile(Ranges(self, self._head(path)), mode="r")

    def open_stream(self, path: str) -> Any:
        return io.BufferedReader(Ranges(self, self._head(path)), READ_AT_ONCE)

    @answered
    def read_range(self, path: str, etag: str, start: int, stop: int) -> bytes:
        """Some bytes of a file that has not changed since it had this etag."""
        found = self._client.get_object(**self._key(path), Range=f"bytes={start}-{stop - 1}", IfMatch=etag)
        content: bytes = found["Body"].read()
        return content

    def open_output(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(Upload(self, path), mode="w")

    @transferred
    def upload(self, path: str, content: Any) -> None:
        """Write a file of any size from a file object."""
        self._client.upload_fileobj(content, **self._key(path), ExtraArgs=self.options.of_new_objects)

    @answered
    def read(self, path: str, limit: int = -1) -> bytes:
        with self._client.get_object(**self._key(path))["Body"] as body:  # what is left of it is not fetched
            content: bytes = body.read(limit if limit >= 0 else None)
        return content

    @answered
    def write(self, path: str, content: bytes) -> None:
        self._client.put_object(**self._key(path), Body=content, **self.options.of_new_objects)

    @answered
    def create(self, path: str, content: bytes) -> bool:
        try:
            self._client.put_object(**self._key(path), Body=content, IfNoneMatch="*", **self.options.of_new_objects)
        except Exception as error:
            if code_of(error) not in _TAKEN:
                raise
            # Perhaps by this call: an answer that is lost makes the library ask once more.
            there: bytes = self._client.get_object(**self._key(path))["Body"].read()
            return there == content
        return True

    @transferred
    def move(self, source: str, target: str) -> None:
        try:
            self._client.copy(self._key(source), **self._key(target), ExtraArgs=self.options.of_new_objects)
        except Exception as error:
            if code_of(error) not in _NOT_THERE:
                raise
            self._client.head_object(**self._key(target))  # it was moved before, or it is lost
        self._client.delete_object(**self._key(source))

    def settle(self) -> None:
        """What a bucket has taken is safe."""

    @answered
    def delete(self, path: str) -> None:
        self._client.delete_object(**self._key(path))

    def delete_folder(self, folder: str) -> None:
        for page in self._pages(f"{folder}/"):
            self._delete(folder, [{"Key": item["Key"]} for item in page.get("Contents", ())])

    @answered
    def expires(self, folder: str, days: int) -> bool:
        """Whether a rule of the bucket removes the files of a folder after so many days."""
        prefix = f"{self._prefix}{folder}/"
        return any(
            rule["Status"] == "Enabled"
            and prefix.startswith(rule.get("Filter", {}).get("Prefix", rule.get("Prefix", prefix + " ")))
            and rule.get("Expiration", {}).get("Days", days + 1) <= days
            for rule in self._lifecycle()
        )

    @answered
    def expire(self, folder: str, days: int) -> None:
        """Let the bucket remove the files of a folder, and uploads that were given up; its other rules stay."""
        name = f"eventlake: {self._prefix}{folder}"
        rule = {
            "ID": name,
            "Status": "Enabled",
            "Filter": {"Prefix": f"{self._prefix}{folder}/"},
            "Expiration": {"Days": days},
            "NoncurrentVersionExpiration": {"NoncurrentDays": days},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": days},
        }
        others = [other for other in self._lifecycle() if other.get("ID") != name]
        self._client.put_bucket_lifecycle_configuration(
            Bucket=self._bucket, LifecycleConfiguration={"Rules": [*others, rule]}
        )

    def _lifecycle(self) -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = self._client.get_bucket_lifecycle_configuration(Bucket=self._bucket)["Rules"]
        except Exception as error:
            if code_of(error) != "NoSuchLifecycleConfiguration":
                raise
            return []
        return found

    @answered
    def _delete(self, folder: str, keys: list[dict[str, str]]) -> None:
        if keys:
            failed = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})
            if failed.get("Errors"):
                raise TransientError(f"could not delete {folder}: {failed['Errors'][0]}", fix="run it again")
