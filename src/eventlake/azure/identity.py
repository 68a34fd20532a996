"""Who acts on Azure: a service principal, a managed identity, or whoever Azure's own tools find."""

import logging
import os
from datetime import UTC, datetime
from typing import Any, NamedTuple

from pydantic import SecretStr

from eventlake.errors import SetupError

STORAGE = "https://storage.azure.com/.default"
NOT_INSTALLED = "the Azure library is not installed"
INSTALL = "pip install 'eventlake[azure]'"


class AzureOptions(NamedTuple):
    """Who acts, and where. What is secret among them is shown to nobody."""

    endpoint: str | None = None  # of the account's blob service, if it is not Azure's own
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: SecretStr | None = None
    account_key: SecretStr | None = None
    sas_token: SecretStr | None = None
    authority: str | None = None  # where tokens come from
    encryption_scope: str | None = None  # of new files

    @property
    def without_secrets(self) -> "AzureOptions":
        """As nodes of a cluster are told, which act in an identity of their own."""
        return AzureOptions(endpoint=self.endpoint, authority=self.authority, encryption_scope=self.encryption_scope)


def credential(options: AzureOptions, secret: str | None = None) -> Any:
    """A credential of Azure's library: of the principal with this secret, a managed identity, or whoever it finds."""
    try:
        from azure import identity  # noqa: PLC0415 - only what runs on Azure needs it
    except ImportError as error:
        raise SetupError(NOT_INSTALLED, fix=INSTALL) from error

    logging.getLogger("azure").addHandler(logging.NullHandler())  # else it would write to standard error
    authority: dict[str, Any] = {}
    if found := options.authority or os.environ.get("AZURE_AUTHORITY_HOST"):
        # It is the one that was asked for: nobody else is asked whether it may give tokens.
        authority = {"authority": found, "disable_instance_discovery": True}
    if secret and options.tenant_id and options.client_id:
        return identity.ClientSecretCredential(options.tenant_id, options.client_id, secret, **authority)
    if options.client_id:
        return identity.ManagedIdentityCredential(client_id=options.client_id)
    return identity.DefaultAzureCredential(**authority)


class Tokens:
    """Tokens for storage, as obstore asks for them; it asks again before one expires."""

    def __init__(self, options: AzureOptions, secret: str | None) -> None:
        self._credential = credential(options, secret)
        self.refusal: Exception | None = None  # why there are none any more

    def __call__(self) -> Any:
        try:
            token = self._credential.get_token(STORAGE)
        except Exception as error:
            self.refusal = error
            raise
        self.refusal = None
        return {"token": token.token, "expires_at": datetime.fromtimestamp(token.expires_on, UTC)}
