"""What an answer of Azure that refuses means, and who must act."""

from eventlake import errors
from eventlake.errors import EventLakeError, InvalidSettingsError, PermissionMissingError

# The action on blobs that a request needs, and the error that says it may not be done. The role that has them all is
# Storage Blob Data Contributor.
_RIGHTS: dict[str, tuple[str, type[PermissionMissingError]]] = {
    "list": ("blobs/read", errors.ListDeniedError),
    "stat": ("blobs/read", errors.DownloadDeniedError),
    "read": ("blobs/read", errors.DownloadDeniedError),
    "write": ("blobs/write", errors.UploadDeniedError),
    "create": ("blobs/write", errors.UploadDeniedError),
    "copy": ("blobs/read and blobs/write", errors.UploadDeniedError),
    "delete": ("blobs/delete", errors.DeleteDeniedError),
}
_ROLE = "the role Storage Blob Data Contributor on the container has all of them"


_NOT_BELIEVED = (
    "check azure.account_key or azure.sas_token, whether the signature has expired, the clock of this machine (Azure "
    "refuses requests that are 15 minutes off), and whether the account's firewall lets this machine in"
)


def is_refusal(code: str) -> bool:
    """Whether an answer with this code says that something may not be done; of one blob among many, it is a number."""
    return code.startswith("Auth") or code in ("403", "InsufficientAccountPermissions", "InvalidAuthenticationInfo")


def refused(request: str, code: str, answer: str, what: str) -> PermissionMissingError:
    """The error for a request that may not be made; it names the right that is missing, or who is not believed."""
    right, kind = _RIGHTS[request]
    if code in ("AuthenticationFailed", "AuthorizationFailure", "InvalidAuthenticationInfo"):
        return kind(f"may not {what}: {answer}", fix=_NOT_BELIEVED)
    return kind(f"may not {what}: {answer}", fix=f"grant {right} to whoever runs this: {_ROLE}; see docs/azure.md")


def no_token(error: Exception, what: str) -> EventLakeError:
    """The error for an identity that Azure does not take. Its words hold no secret, but a page of advice."""
    told = str(getattr(error, "message", error)).strip().splitlines()
    return PermissionMissingError(
        f"could not {what}: no token: {told[0][:300] if told else type(error).__name__}",
        fix="check azure.tenant_id, client_id and client_secret; without them, sign in with `az login`, or give this "
        "machine a managed identity",
    )


# What the service answers when a setting is wrong.
_WRONG = {
    "AccountIsDisabled": "enable the storage account",
    "ContainerNotFound": "make the container, or correct the root",
    "ContainerBeingDeleted": "wait until the container is deleted, make it anew, or correct the root",
    "InvalidResourceName": "correct the root: Azure does not take this name",
    "EncryptionScopeNotFound": "make the encryption scope, or correct azure.encryption_scope",
}


def wrong(code: str, answer: str, what: str) -> EventLakeError | None:
    """The error for an answer that only somebody who changes a setting can mend."""
    fix = _WRONG.get(code)
    return InvalidSettingsError(f"could not {what}: {answer}", fix=fix) if fix else None
