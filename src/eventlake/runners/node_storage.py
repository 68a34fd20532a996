"""Storages as nodes are told of them: without credentials, for nodes act in an identity of their own.

Nor are they told of a role, but for annexes: one in somebody else's account is reached in no other way.
"""

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


class Bucket(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag="s3"):
    root: str
    region: str | None
    endpoint: str | None
    path_style: bool
    encryption: str | None
    kms_key_id: str | None
    timeout: float
    role_arn: str | None = None
    external_id: str | None = None

    def storage(self) -> Storage:
        aws = AwsOptions(self.region, self.role_arn, self.external_id)
        options = S3Options(self.endpoint, self.path_style, self.encryption, self.kms_key_id, aws)
        return S3Storage(self.root, options, timeout=self.timeout)


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


class OnGoogle(Struct, frozen=True, forbid_unknown_fields=True, tag="gcs"):
    root: str
    endpoint: str | None
    timeout: float

    def storage(self) -> Storage:
        from eventlake.storage.gcs import GcsOptions, GcsStorage  # noqa: PLC0415 - most lakes are elsewhere

        return GcsStorage(self.root, GcsOptions(self.endpoint), timeout=self.timeout)


NodeStorage = Folder | Bucket | Container | OnGoogle

LIBRARIES = {
    Folder: (),
    Bucket: ("boto3", "obstore"),
    Container: ("azure.identity", "obstore", "pydantic"),
    OnGoogle: ("obstore", "pydantic"),
}
"""What must be installed to get at a place of each kind, beside what every step needs."""


def node_storage(storage: Storage, *, with_role: bool = False) -> NodeStorage:
    if isinstance(storage, S3Storage):
        endpoint, path_style, encryption, kms_key_id, aws = storage.options
        role = (aws.role_arn, aws.external_id) if with_role else (None, None)
        return Bucket(storage.root, aws.region, endpoint, path_style, encryption, kms_key_id, storage.timeout, *role)
    if isinstance(storage, LocalStorage):
        return Folder(storage.root, storage.timeout)
    from eventlake.storage.adls import AzureStorage  # noqa: PLC0415

    if isinstance(storage, AzureStorage):
        shown = storage.options.without_secrets
        return Container(storage.root, shown.endpoint, shown.authority, shown.encryption_scope, storage.timeout)
    from eventlake.storage.gcs import GcsStorage  # noqa: PLC0415

    if isinstance(storage, GcsStorage):
        return OnGoogle(storage.root, storage.options.endpoint, storage.timeout)
    raise TypeError(f"nobody can be told of a {type(storage).__name__}")
