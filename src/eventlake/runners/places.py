"""Storages as nodes are told of them: neither credentials nor a role, for nodes act in an identity of their own."""

from msgspec import Struct

from eventlake.aws.session import AwsOptions
from eventlake.storage.base import Storage
from eventlake.storage.local import LocalStorage
from eventlake.storage.s3 import S3Options, S3Storage


class Folder(Struct, frozen=True, forbid_unknown_fields=True, tag="folder"):
    root: str
    timeout: float

    def storage(self) -> Storage:
        return LocalStorage(self.root, timeout=self.timeout)


class Bucket(Struct, frozen=True, forbid_unknown_fields=True, tag="s3"):
    root: str
    options: S3Options
    timeout: float

    def storage(self) -> Storage:
        return S3Storage(self.root, self.options, timeout=self.timeout)


class Container(Struct, frozen=True, forbid_unknown_fields=True, tag="azure"):
    root: str
    endpoint: str | None
    authority: str | None
    encryption_scope: str | None
    timeout: float

    def storage(self) -> Storage:
        from eventlake.azure.identity import AzureOptions  # noqa: PLC0415 - most lakes are elsewhere
        from eventlake.storage.adls import AzureStorage  # noqa: PLC0415

        options = AzureOptions(self.endpoint, authority=self.authority, encryption_scope=self.encryption_scope)
        return AzureStorage(self.root, options, timeout=self.timeout)


Place = Folder | Bucket | Container

LIBRARIES = {Folder: (), Bucket: ("boto3", "obstore"), Container: ("azure.identity", "obstore", "pydantic")}
"""What must be installed to get at a place of each kind, beside what every step needs."""


def place_of(storage: Storage) -> Place:
    if isinstance(storage, S3Storage):
        options = storage.options._replace(aws=AwsOptions(storage.options.aws.region))
        return Bucket(storage.root, options, storage.timeout)
    if isinstance(storage, LocalStorage):
        return Folder(storage.root, storage.timeout)
    from eventlake.storage.adls import AzureStorage  # noqa: PLC0415

    if isinstance(storage, AzureStorage):
        shown = storage.options.without_secrets
        return Container(storage.root, shown.endpoint, shown.authority, shown.encryption_scope, storage.timeout)
    raise TypeError(f"nobody can be told of a {type(storage).__name__}")
