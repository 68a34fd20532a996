"""A lake in a bucket of Google Cloud Storage."""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import SecretStr

from eventlake import errors
from eventlake.azure.vault import forget, revealed
from eventlake.errors import InvalidSettingsError, PermissionMissingError, TransientError
from eventlake.storage.base import TIMEOUT
from eventlake.storage.objects import ObjectStorage, code_of, message_of

if TYPE_CHECKING:
    from obstore.store import ObjectStore

# The permission that a request needs, and the error that says it may not be made.
_RIGHTS: dict[str, tuple[str, type[PermissionMissingError]]] = {
    "list": ("storage.objects.list", errors.ListDeniedError),
    "stat": ("storage.objects.get", errors.DownloadDeniedError),
    "read": ("storage.objects.get", errors.DownloadDeniedError),
    "write": ("storage.objects.create and storage.objects.delete", errors.UploadDeniedError),
    "create": ("storage.objects.create", errors.UploadDeniedError),
    "copy": ("storage.objects.get, .create and .delete", errors.UploadDeniedError),
    "delete": ("storage.objects.delete", errors.DeleteDeniedError),
}
_IN_TROUBLE = re.compile(r"status code: (429|5\d\d)")
_ROLE = "the role Storage Object User on the bucket has all of them"
_WHO = (
    "check gcs.service_account_path or gcs.service_account_key, and the clock of this machine; without them, sign in "
    "with `gcloud auth application-default login`, or give this machine a service account"
)


class GcsOptions(NamedTuple):
    """How to reach the server, and as whom: by default, as whoever Google's own tools find."""

    endpoint: str | None = None
    service_account_path: str | None = None
    service_account_key: SecretStr | None = None


class GcsStorage(ObjectStorage):
    """Its root is gs://bucket/prefix."""

    extra = "gcs"
    options: GcsOptions

    def __init__(self, root: str, options: GcsOptions | None = None, *, timeout: float = TIMEOUT) -> None:
        super().__init__(root, options or GcsOptions(), timeout=timeout)
        self._bucket, _, self._prefix = self.root.removeprefix("gs://").partition("/")

    def _connected(self) -> "ObjectStore":
        from obstore.store import GCSStore  # noqa: PLC0415

        endpoint, path, key = self.options
        config: Any = {}
        if endpoint:
            config["base_url"] = endpoint.rstrip("/")
        if path:
            config["service_account"] = path
        if key:
            config["service_account_key"] = revealed(key)
        return GCSStore(
            self._bucket,
            prefix=self._prefix or None,
            config=config,
            client_options={
                "connect_timeout": timedelta(seconds=10),
                "timeout": timedelta(seconds=60),
                "allow_http": (endpoint or "").startswith("http://"),
            },
            retry_config={"max_retries": 4, "retry_timeout": timedelta(seconds=self.timeout)},
        )

    def _explained(self, error: Exception, request: str, what: str, signed_in: Any) -> Exception | None:
        del signed_in  # obstore has them
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError  # noqa: PLC0415

        code, answer = code_of(error), message_of(error)
        if code == "NoSuchBucket":
            return InvalidSettingsError(f"there is no bucket {self._bucket}", fix="make it, or correct lake.root")
        if "service account" in answer or "private key" in answer:  # as it is read, before anything is asked
            return InvalidSettingsError(
                f"could not {what}: the key of the service account cannot be read",
                fix="give the JSON file that Google made as gcs.service_account_path, or what is in it as "
                "gcs.service_account_key",
            )
        if isinstance(error, UnauthenticatedError) or ("token request" in answer and not _IN_TROUBLE.search(answer)):
            self._sign_in_anew()
            return PermissionMissingError(f"could not {what}: Google does not believe who this is", fix=_WHO)
        if isinstance(error, PermissionDeniedError) or code in ("403", "AccessDenied"):
            self._sign_in_anew()
            right, kind = _RIGHTS[request]
            return kind(f"may not {what}: {answer}", fix=f"grant {right} to whoever runs this: {_ROLE}")
        if isinstance(error, BaseError | FileNotFoundError):
            return TransientError(f"could not {what}: {answer}", fix="check the network, then run it again")
        return None

    def _sign_in_anew(self) -> None:
        """Let the next request be made with what the settings and their vault say by then."""
        forget()
        self.__dict__.pop("_store", None)
