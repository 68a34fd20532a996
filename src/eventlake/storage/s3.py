"""A lake in a bucket of S3, or of any server that speaks its protocol."""

import functools
import ipaddress
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from eventlake.aws.refusals import code_of as aws_code
from eventlake.aws.refusals import explained, is_refusal, refused, too_many
from eventlake.aws.service import Service
from eventlake.aws.session import AwsOptions, client, session
from eventlake.errors import InvalidSettingsError, TransientError
from eventlake.storage.base import TIMEOUT
from eventlake.storage.objects import ObjectStorage, code_of, message_of

if TYPE_CHECKING:
    from obstore.store import ObjectStore

ASKED_AGAIN = timedelta(minutes=5)

_BUCKET = re.compile(r"[A-Za-z0-9._-]{3,255}")
_WRONG = {"InvalidBucketName", "IllegalLocationConstraintException", "PermanentRedirect"}
# What AWS calls the requests of an object store: rights are named after these.
_OPERATIONS = {
    "list": "ListObjectsV2",
    "stat": "HeadObject",
    "read": "GetObject",
    "write": "PutObject",
    "create": "PutObject",
    "copy": "CopyObject",
    "delete": "DeleteObjects",
}


class S3Options(NamedTuple):
    """How to reach the server, and as whom."""

    endpoint: str | None = None
    path_style: bool = False
    encryption: str | None = None  # with which new objects are stored; by default as the bucket does
    kms_key_id: str | None = None
    aws: AwsOptions = AwsOptions()


class S3Storage(ObjectStorage):
    extra = "aws"
    options: S3Options

    def __init__(self, root: str, options: S3Options | None = None, *, timeout: float = TIMEOUT) -> None:
        super().__init__(root, options or S3Options(), timeout=timeout)
        self._bucket, _, self._prefix = self.root.removeprefix("s3://").partition("/")

    def _connected(self) -> "ObjectStore":
        from obstore.store import S3Store  # noqa: PLC0415

        if not _BUCKET.fullmatch(self._bucket):
            raise InvalidSettingsError(
                f"{self._bucket!r} cannot be a bucket", fix="correct lake.root: s3://bucket/prefix"
            )
        config: Any = {"region": self.region(), **self._address()}
        if not self.options.endpoint:  # which is reached by TLS: a second check of every byte takes its time
            config["unsigned_payload"] = True
        if self.options.encryption:
            config["server_side_encryption"] = self.options.encryption
        if self.options.kms_key_id:
            config["sse_kms_key_id"] = self.options.kms_key_id
        return S3Store(
            self._bucket,
            prefix=self._prefix or None,
            config=config,
            client_options={
                "connect_timeout": timedelta(seconds=10),
                "timeout": timedelta(seconds=60),
                "allow_http": (self.options.endpoint or "").startswith("http://"),
            },
            retry_config={"max_retries": 4, "retry_timeout": timedelta(seconds=self.timeout)},
            credential_provider=self._credentials,
        )

    def _address(self) -> dict[str, Any]:
        """Where the bucket is: a name of its own if it can be one, else a path."""
        endpoint = self.options.endpoint
        in_the_name = not self.options.path_style and "." not in self._bucket and "_" not in self._bucket
        if endpoint is None:
            return {"virtual_hosted_style_request": in_the_name}
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidSettingsError(
                f"{endpoint!r} is not an endpoint", fix="give a whole URL as s3.endpoint: http://host:port"
            )
        if not in_the_name or parts.hostname == "localhost" or _is_number(parts.hostname):
            return {"endpoint": endpoint}
        with_bucket = parts._replace(netloc=f"{self._bucket}.{parts.netloc}").geturl()
        return {"endpoint": with_bucket, "virtual_hosted_style_request": True}

    def region(self) -> str:
        """Where the bucket is; only AWS itself has more than one place for buckets."""
        region = self.options.aws.region or session(self.options.aws).region_name or "us-east-1"
        if self.options.endpoint:
            return region
        asking = client("s3", self.options.aws)
        try:
            head = asking.head_bucket(Bucket=self._bucket)
        except asking.exceptions.ClientError as error:  # also an answer that refuses tells the region
            head = error.response
        headers = head.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        return str(headers.get("x-amz-bucket-region", region))

    def _explained(self, error: Exception, request: str, what: str, signed_in: Any) -> Exception | None:
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError  # noqa: PLC0415

        code = code_of(error)
        if code == "NoSuchBucket":
            return InvalidSettingsError(f"there is no bucket {self._bucket}", fix="make it, or correct lake.root")
        if code in _WRONG:
            return InvalidSettingsError(
                f"could not {what}: {message_of(error)}", fix="correct lake.root and the settings of s3"
            )
        if isinstance(error, UnauthenticatedError) and signed_in.refusal:
            return explained(signed_in.refusal, what, self.options.aws)
        if isinstance(error, PermissionDeniedError | UnauthenticatedError) or is_refusal(code):
            return refused(_OPERATIONS[request], code, message_of(error), what)
        if isinstance(error, BaseError):
            if (busy := too_many(code, what, message_of(error))) is not None:
                return busy
            return TransientError(f"could not {what}: {message_of(error)}", fix="check the network, then run it again")
        return explained(error, what, self.options.aws)

    @functools.cached_property
    def _credentials(self) -> "_Credentials":
        return _Credentials(self.options.aws)

    @functools.cached_property
    def _service(self) -> Service:
        """What is asked for more than objects: rules of the bucket, and where it is."""
        style = {"addressing_style": "path" if self.options.path_style else "auto"}
        quiet = ("NoSuchLifecycleConfiguration",)
        return Service("s3", self.options.aws, for_the_caller=quiet, endpoint=self.options.endpoint, s3=style)

    def _key(self, path: str) -> str:
        return f"{self._prefix}/{path}" if self._prefix else path

    def expires(self, folder: str, days: int) -> bool:
        """Whether a rule of the bucket removes the files of a folder after so many days."""
        prefix = self._key(folder) + "/"
        return any(
            rule["Status"] == "Enabled"
            and prefix.startswith(rule.get("Filter", {}).get("Prefix", rule.get("Prefix", prefix + " ")))
            and rule.get("Expiration", {}).get("Days", days + 1) <= days
            for rule in self._lifecycle()
        )

    def expire(self, folder: str, days: int) -> None:
        """Let the bucket remove the files of a folder, and uploads that were given up; its other rules stay."""
        name = f"eventlake: {self._key(folder)}"
        rule = {
            "ID": name,
            "Status": "Enabled",
            "Filter": {"Prefix": self._key(folder) + "/"},
            "Expiration": {"Days": days},
            "NoncurrentVersionExpiration": {"NoncurrentDays": days},
            "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": days},
        }
        others = [other for other in self._lifecycle() if other.get("ID") != name]
        self._service.ask(
            "put_bucket_lifecycle_configuration",
            f"set the rules of {self._bucket}",
            Bucket=self._bucket,
            LifecycleConfiguration={"Rules": [*others, rule]},
        )

    def _lifecycle(self) -> list[dict[str, Any]]:
        what = f"read the rules of {self._bucket}"
        try:
            found = self._service.ask("get_bucket_lifecycle_configuration", what, Bucket=self._bucket)
        except Exception as error:
            if aws_code(error) != "NoSuchLifecycleConfiguration":
                raise
            return []
        return list(found["Rules"])


class _Credentials:
    """Credentials as all AWS tools find them, or those of a role; asked for again before they expire."""

    def __init__(self, options: AwsOptions) -> None:
        self._found = session(options).get_credentials()
        self.refusal: Exception | None = None  # why there are none any more

    def __call__(self) -> Any:
        try:
            if self._found is None:
                from botocore.exceptions import NoCredentialsError  # noqa: PLC0415

                raise NoCredentialsError
            now = self._found.get_frozen_credentials()
        except Exception as error:
            self.refusal = error
            raise
        return {
            "access_key_id": now.access_key,
            "secret_access_key": now.secret_key,
            "token": now.token,
            "expires_at": datetime.now(UTC) + ASKED_AGAIN,  # the session knows when they expire
        }


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
