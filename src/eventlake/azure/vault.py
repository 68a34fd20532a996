"""Secrets that are kept in Azure Key Vault: a setting may say `keyvault://vault/name` instead of its secret."""

import functools
import os
import re

from pydantic import SecretStr

from eventlake.azure.identity import INSTALL, NOT_INSTALLED, AzureOptions, credential
from eventlake.azure.refusals import no_token
from eventlake.errors import InvalidSettingsError, PermissionMissingError, SetupError, TransientError

# Where vaults are; other clouds than the public one have them elsewhere.
URL_VARIABLE = "EVENTLAKE_KEY_VAULT_URL"
_URL = "https://{vault}.vault.azure.net"

SCHEME = "keyvault://"
_PLACE = re.compile(
    r"keyvault://(?P<vault>[A-Za-z](?!.*--)[A-Za-z0-9-]{1,22}[A-Za-z0-9])/(?P<name>[A-Za-z0-9-]{1,127})"
)


def is_good(text: str) -> bool:
    """Whether it is a secret, or a place where one can be."""
    return not text.startswith(SCHEME) or bool(_PLACE.fullmatch(text))


def revealed(secret: SecretStr) -> str:
    """The secret itself. One in a vault is asked for once, until somebody refuses what was found there."""
    text = secret.get_secret_value()
    place = _PLACE.fullmatch(text)
    return _fetched(place["vault"], place["name"]) if place else text


def forget() -> None:
    """Ask for secrets anew when they are needed: one was refused, so it may have been changed in its vault."""
    _fetched.cache_clear()


@functools.cache
def _fetched(vault: str, name: str) -> str:
    try:
        from azure.core import exceptions  # noqa: PLC0415 - only settings that name a vault need it
        from azure.keyvault.secrets import SecretClient  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(NOT_INSTALLED, fix=INSTALL) from error

    what = f"{SCHEME}{vault}/{name}"
    url = os.environ.get(URL_VARIABLE, _URL).format(vault=vault)
    try:
        with SecretClient(url, credential(AzureOptions())) as client:
            found = client.get_secret(name).value
    except exceptions.ResourceNotFoundError as error:
        raise InvalidSettingsError(f"{what}: there is no such secret", fix="make it, or correct the setting") from error
    except exceptions.ClientAuthenticationError as error:
        raise no_token(error, f"read {what}") from error
    except exceptions.AzureError as error:
        if getattr(error, "status_code", None) in (401, 403):
            raise PermissionMissingError(
                f"may not read {what}: {error.message.splitlines()[0]}",
                fix="give whoever runs this the role Key Vault Secrets User on the vault, and let this machine through "
                "the vault's firewall",
            ) from error
        raise TransientError(
            f"could not read {what}: {error.message}", fix="check the network, then run it again"
        ) from error
    if not found:
        raise InvalidSettingsError(f"{what} is empty", fix="give the secret a value, or correct the setting")
    return found
