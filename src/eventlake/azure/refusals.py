"""What an answer of Azure that refuses means, and who must act."""

import re

from eventlake import errors
from eventlake.errors import EventLakeError, InvalidSettingsError, PermissionMissingError, TransientError

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
    """The error for a token that was not given: nobody answered, or whoever acts is not believed."""
    told = f"could not {what}: no token: {_reason(error)[:300]}"
    if _is_away(error):
        return TransientError(told, fix="check the network and whether Azure has trouble, then run it again")
    return PermissionMissingError(
        told,
        fix="check azure.tenant_id, client_id and client_secret; without them, sign in with `az login`, or give this "
        "machine a managed identity",
    )


# In the words of the library for requests: a chain of credentials passes on no more of an error than these.
_NOBODY_ANSWERED = re.compile(
    r"Failed to (establish|resolve)|[Tt]imed out|Connection (aborted|broken|refused|reset)|"
    r"Unexpected response from|HTTP Error: (429|5\d\d)"
)


def _is_away(error: Exception) -> bool:
    """Whether nobody answered, or only to say that it does not work at the moment."""
    from azure.core.exceptions import ServiceRequestError, ServiceResponseError  # noqa: PLC0415 - it raised the error

    one: BaseException | None = error
    while one:
        status = getattr(one, "status_code", None) or 0
        if isinstance(one, ServiceRequestError | ServiceResponseError) or status == 429 or status >= 500:
            return True
        one = one.__cause__
    return bool(_NOBODY_ANSWERED.search(_reason(error)))


def _reason(error: Exception) -> str:
    """What an error says, in a line. It holds no secret, but a page of advice, and each way that was tried in vain."""
    lines = [line.strip() for line in str(getattr(error, "message", error)).splitlines() if line.strip()]
    tried = [line for line in lines if re.match(r"\w+Credential: ", line)]
    at_last = tried[-1:] if tried and "unavailable" not in tried[-1] else []  # the first that was more than not there
    return [*at_last, *lines, type(error).__name__][0]


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
