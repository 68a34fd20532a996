"""What `eventlake doctor` tries on Azure."""

from collections.abc import Iterator
from datetime import UTC, datetime
from urllib.parse import parse_qs

from pydantic import BaseModel, SecretStr

from eventlake.azure.identity import Tokens
from eventlake.azure.refusals import no_token
from eventlake.azure.vault import SCHEME, revealed
from eventlake.cli.checks import SkippedStep
from eventlake.reports.words import count
from eventlake.storage.adls import AzureStorage
from eventlake.workspace import Lake


def is_on_azure(place: Lake) -> bool:
    return isinstance(place.storage, AzureStorage)


def vault(place: Lake) -> str:
    """Secrets that the settings leave in Key Vault: each is asked for."""
    places = [one for one in _secrets(place.settings) if one.get_secret_value().startswith(SCHEME)]
    if not places:
        raise SkippedStep("no secret of this lake is kept in a vault")
    for one in places:
        revealed(one)
    return f"{count(len(places), 'secret')} can be read"


def _secrets(section: BaseModel) -> Iterator[SecretStr]:
    for _, value in section:
        if isinstance(value, BaseModel):
            yield from _secrets(value)
        elif isinstance(value, SecretStr):
            yield value


def identity(place: Lake) -> str:
    """Who acts: shows that there is a way in; whether it is let in, the steps of the storage tell."""
    options = place.settings.azure.options
    if options.account_key:
        return "the key of the account"
    if options.sas_token:
        ends = parse_qs(revealed(options.sas_token).removeprefix("?")).get("se")
        return f"a shared access signature{f', until {ends[0]}' if ends else ''}"
    try:
        token = Tokens(options, revealed(options.client_secret) if options.client_secret else None)()
    except Exception as error:  # all of them come from the library, and mean the same
        raise no_token(error, "sign in to Azure") from error
    who = f"service principal {options.client_id}" if options.client_secret else "whoever Azure's tools find"
    return f"{who}, with a token until {datetime.astimezone(token['expires_at'], UTC):%H:%M} UTC"


def namespace(place: Lake) -> str:
    """Whether the account has real folders. Where it has, a folder can be looked at like a file."""
    if place.storage.stat(place.folders.stage):
        return "hierarchical, as the documents ask for"
    return "flat: everything works, but tools that rename folders are slow, and folders have no rights of their own"
