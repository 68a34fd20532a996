"""What `eventlake doctor` tries on Azure."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from pydantic import BaseModel, SecretStr

from eventlake.azure.identity import AzureOptions, Tokens
from eventlake.azure.refusals import no_token
from eventlake.azure.vault import SCHEME, revealed
from eventlake.errors import EventLakeError
from eventlake.reports.words import count
from eventlake.storage.adls import AzureStorage
from eventlake.workspace import Lake


def is_on_azure(lake: Lake) -> bool:
    return isinstance(lake.storage, AzureStorage)


def vault(lake: Lake) -> str:
    """Secrets that the settings leave in Key Vault: each is asked for."""
    places = kept_in_vaults(lake)
    for one in places:
        revealed(SecretStr(one))
    return f"{count(len(places), 'secret')} can be read"


def kept_in_vaults(lake: Lake) -> list[str]:
    """Where the secrets are that this lake needs, and those that the workspace needs for all."""
    whole = lake.workspace.settings
    needed = (lake.settings, whole.database, whole.archive, *whole.annexes.values(), *whole.channels.values())
    found = (one.get_secret_value() for part in needed for one in _secrets(part))
    return sorted({one for one in found if one.startswith(SCHEME)})


def _secrets(value: Any) -> Iterator[SecretStr]:
    if isinstance(value, SecretStr):
        yield value
    if isinstance(value, BaseModel):
        for _, one in value:
            yield from _secrets(one)


def identity(lake: Lake) -> str:
    """Who acts: shows that there is a way in; whether it is let in, the steps of the storage tell."""
    options = lake.settings.azure.options
    if options.account_key:
        return "the key of the account"
    if options.sas_token:
        ends = parse_qs(revealed(options.sas_token).removeprefix("?")).get("se")
        return f"a shared access signature{f', until {ends[0]}' if ends else ''}"
    try:
        token = Tokens(options, revealed(options.client_secret) if options.client_secret else None)()
    except EventLakeError:  # of the vault, or of what is not installed
        raise
    except Exception as error:  # all others come from the library, and mean the same
        raise no_token(error, "sign in to Azure") from error
    return f"{_who(options)}, with a token until {datetime.astimezone(token['expires_at'], UTC):%H:%M} UTC"


def _who(options: AzureOptions) -> str:
    if options.client_secret:
        return f"service principal {options.client_id}"
    return f"managed identity {options.client_id}" if options.client_id else "whoever Azure's tools find"


def namespace(lake: Lake) -> str:
    """Whether the account has real folders. Where it has, a folder can be looked at like a file."""
    if lake.storage.stat(lake.folders.stage):
        return "hierarchical, as the documents ask for"
    return "flat: everything works, but tools that rename folders are slow, and folders have no rights of their own"
