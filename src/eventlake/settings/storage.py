"""Where something lies, and who acts there."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from eventlake.aws.session import AwsOptions
from eventlake.azure.identity import AzureOptions
from eventlake.settings.section import Secret, Section
from eventlake.settings.words import matching
from eventlake.storage.base import TIMEOUT

RoleArn = Annotated[
    str,
    matching(
        r"arn:aws(-cn|-us-gov)?:iam::\d{12}:role/[a-zA-Z0-9_+=,.@/-]+",
        "the ARN of a role: arn:aws:iam::123456789012:role/name",
    ),
]
Guid = Annotated[
    str,
    matching(
        r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
        "an id of Azure, such as 00000000-0000-0000-0000-000000000000",
    ),
]
WebAddress = Annotated[
    str, matching(r"https?://[^\s/?#]+(/[^\s?#]*)?", "an address that begins with https:// or http://")
]
Region = Annotated[
    str,
    matching(
        r"(us(-gov)?|af|ap|ca|cn|eu|il|me|mx|sa)-(central|(north|south)?(east|west)?)-\d",
        "a region of AWS, such as eu-west-1",
    ),
]

ExternalId = Annotated[
    str, matching(r"[a-zA-Z0-9_+=,.@:/-]{2,1224}", "an external id: 2 to 1,224 of letters, digits and _+=,.@:/-")
]


def _key_of_aws(value: SecretStr) -> SecretStr:
    if not re.fullmatch(r"(?!keyvault://)[!-~]{1,200}", value.get_secret_value()):
        raise ValueError("not a key of AWS, as it is: up to 200 letters, digits and signs, without blanks")
    return value


KeyOfAws = Annotated[SecretStr, AfterValidator(_key_of_aws)]

S3_ROOT = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(/.*)?")

GCS_ROOT = re.compile(r"gs://(?P<bucket>[a-z0-9][a-z0-9._-]{1,61}[a-z0-9])(/.*)?")

_CONTAINER = r"(?P<container>(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9])"
_ACCOUNT = r"[a-z0-9]{3,24}"
_CLOUDS = r"core\.windows\.net|core\.chinacloudapi\.cn|core\.usgovcloudapi\.net"
ABFSS_ROOT = re.compile(rf"abfss://{_CONTAINER}@(?P<account>{_ACCOUNT})\.dfs\.(?P<cloud>{_CLOUDS})(/.*)?")
AZ_ROOT = re.compile(rf"az://{_CONTAINER}(/.*)?")

StorageAccount = Annotated[str, matching(_ACCOUNT, "a storage account: 3 to 24 of a-z and 0-9")]
Authority = Annotated[str, matching(r"https://[^\s?#]+", "an address that begins with https://")]
EncryptionScope = Annotated[
    str, matching(r"[A-Za-z0-9-]{3,63}", "an encryption scope: 3 to 63 of letters, digits and -")
]

_PLACES = (
    "Folder, in the workspace or absolute, s3://bucket/prefix, gs://bucket/prefix, or "
    "abfss://container@account.dfs.core.windows.net/prefix."
)


def is_on_azure(root: str) -> bool:
    return bool(ABFSS_ROOT.fullmatch(root) or AZ_ROOT.fullmatch(root))


def is_in_a_cloud(root: str) -> bool:
    return is_on_azure(root) or bool(S3_ROOT.fullmatch(root) or GCS_ROOT.fullmatch(root))


def container_of(address: str) -> str:
    """The bucket or container that an address is in; empty for a folder."""
    return "/".join(address.split("/", 3)[:3]) if "://" in address else ""


class AwsSettings(Section):
    region: Region | None = Field(
        None,
        description="Region of bucket, catalog and cluster; by default as AWS tools find it.",
    )
    profile: str | None = Field(
        None,
        min_length=1,
        max_length=200,
        description="Profile of the files in which AWS tools keep access keys; by default as they find them.",
    )
    role_arn: RoleArn | None = Field(None, description="Role that is assumed for everything on AWS.")
    external_id: ExternalId | None = Field(None, description="What the role's trust policy asks for as sts:ExternalId.")
    access_key_id: KeyOfAws | None = Field(None, description="Id of an access key, instead of a profile.")
    secret_access_key: KeyOfAws | None = Field(None, description="Secret of that access key.")

    @model_validator(mode="after")
    def _one_way_in(self) -> "AwsSettings":
        if (self.access_key_id is None) != (self.secret_access_key is None):
            raise ValueError("access_key_id and secret_access_key go together: one is nothing without the other")
        if self.access_key_id and self.profile:
            raise ValueError("profile and access_key_id are different ways in: keep one of them")
        return self

    @property
    def keys_of(self) -> str | None:
        """Whose access keys it are, as far as it is told here."""
        return self.access_key_id.get_secret_value() if self.access_key_id else self.profile

    @property
    def options(self) -> AwsOptions:
        return AwsOptions(**self.model_dump())


class S3Settings(Section):
    endpoint: str | None = Field(None, description="URL of the server, if it is not Amazon's own.")
    path_style: bool = Field(False, description="Address buckets by path; most servers other than Amazon's need it.")
    encryption: Literal["AES256", "aws:kms", "aws:kms:dsse"] | None = Field(
        None, description="Server-side encryption of new objects; by default as the bucket does it."
    )
    kms_key_id: str | None = Field(None, description="Key for aws:kms; by default the account's own for S3.")

    @model_validator(mode="after")
    def _key_needs_kms(self) -> "S3Settings":
        if self.kms_key_id and self.encryption not in ("aws:kms", "aws:kms:dsse"):
            raise ValueError("kms_key_id needs encryption = aws:kms")
        return self


class AzureSettings(Section):
    """Who acts on Azure. Without any of it, whoever Azure's own tools find: a managed identity, or who signed in."""

    account: StorageAccount | None = Field(
        None, description="Storage account of a lake in az://; one in abfss:// names it."
    )
    endpoint: WebAddress | None = Field(
        None, description="URL of the account's blob service, if it is not Azure's own."
    )
    tenant_id: Guid | None = Field(None, description="Directory of the service principal.")
    client_id: Guid | None = Field(
        None, description="Service principal; without a secret, a managed identity of the machine."
    )
    client_secret: Secret | None = Field(None, description="Secret of the service principal.")
    account_key: Secret | None = Field(None, description="Key of the storage account, instead of an identity.")
    sas_token: Secret | None = Field(None, description="Shared access signature, instead of an identity.")
    authority: Authority | None = Field(None, description="Where tokens come from, if not from Azure's public cloud.")
    encryption_scope: EncryptionScope | None = Field(
        None, description="Encryption scope of new files; by default as the container has it."
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> "AzureSettings":
        if (self.client_secret is None) != (self.tenant_id is None):
            raise ValueError("tenant_id and client_secret go together, with client_id: the service principal that acts")
        if self.client_secret and not self.client_id:
            raise ValueError("client_secret needs client_id: the service principal that acts")
        ways = {"account_key": self.account_key, "sas_token": self.sas_token, "client_id": self.client_id}
        given = [name for name, value in ways.items() if value]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are different ways in: keep one of them")
        if self.encryption_scope and self.account_key:
            raise ValueError("encryption_scope needs an identity or a sas_token: a key signs requests without it")
        return self

    @property
    def options(self) -> AzureOptions:
        return AzureOptions(
            **self.model_dump(include={"endpoint", "tenant_id", "client_id", "authority", "encryption_scope"}),
            client_secret=self.client_secret,
            account_key=self.account_key,
            sas_token=self.sas_token,
        )


class GcsSettings(Section):
    """Who acts on Google Cloud. Without any of it, whoever Google's own tools find."""

    endpoint: WebAddress | None = Field(None, description="URL of the server, if it is not Google's own.")
    service_account_path: Annotated[str, matching(r"/.+", "the whole path of a file, from /")] | None = Field(
        None, description="File with the key of a service account, as Google makes it."
    )
    service_account_key: Secret | None = Field(None, description="What is in such a file.")

    @model_validator(mode="after")
    def _one_way_in(self) -> "GcsSettings":
        if self.service_account_path and self.service_account_key:
            raise ValueError("service_account_path and service_account_key are different ways in: keep one of them")
        return self


class RootSettings(Section):
    """Where something lies."""

    root: str = Field("lake", description=_PLACES)
    timeout: float = Field(TIMEOUT, gt=0, description="Seconds after which a call to the storage is given up.")

    @field_validator("root")
    @classmethod
    def _known_place(cls, root: str) -> str:
        if not root.strip():
            raise ValueError("empty: give a folder, for example lake")
        if root.startswith(("abfss:", "abfs:", "az:", "wasbs:")) and not is_on_azure(root):
            raise ValueError(
                "not abfss://container@account.dfs.core.windows.net/prefix, with a container of 3 to 63 of a-z, 0-9 "
                "and single -, and an account of 3 to 24 of a-z and 0-9; nor az://container/prefix"
            )
        if "://" in root and not is_in_a_cloud(root):
            raise ValueError(
                "neither a folder nor s3://bucket/prefix or gs://bucket/prefix, with a bucket name that is allowed "
                "there, nor abfss://container@account.dfs.core.windows.net/prefix"
            )
        return root


class StorageSettings(RootSettings):
    """Where something lies, and who acts there."""

    root: str = Field(description=_PLACES)
    aws: AwsSettings = AwsSettings()
    s3: S3Settings = S3Settings()
    azure: AzureSettings = AzureSettings()
    gcs: GcsSettings = GcsSettings()

    @model_validator(mode="after")
    def _in_an_account(self) -> "StorageSettings":
        if AZ_ROOT.fullmatch(self.root) and not self.azure.account:
            raise ValueError(
                "root = az://… needs azure.account; or write abfss://container@account.dfs.core.windows.net/…"
            )
        return self

    def at(self, root: str) -> "StorageSettings":
        """Another place, with who acts in this one."""
        chosen = {name: getattr(self, name) for name in StorageSettings.model_fields}
        return StorageSettings.model_validate({**chosen, "root": root})

    @property
    def address(self) -> str:
        """The root in the one way in which it is written everywhere else."""
        if place := AZ_ROOT.fullmatch(self.root):
            return f"abfss://{place['container']}@{self.azure.account}.dfs.core.windows.net{place[2] or ''}"
        return self.root
