"""What all parts of the settings file have in common."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, SecretStr

from eventlake.azure.vault import is_good


class Section(BaseModel):
    """A table of the file: a key that it does not know is a mistake."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _known_place(value: SecretStr) -> SecretStr:
    if not is_good(value.get_secret_value()):
        raise ValueError("not keyvault://vault/name, with names that Key Vault allows")
    return value


Secret = Annotated[SecretStr, AfterValidator(_known_place)]
"""A secret, or where it is kept: keyvault://vault/name. It is shown nowhere; `vault.revealed` gives it."""


BY_NAME = "by name"  # the tag of what stands for a table of which other sections tell more


def by_kind(default: str, *, or_name: bool = False) -> Discriminator:
    """Tells of which kind a table is: by its key `kind`, which may be left out for one of them."""

    def kind_of(value: Any) -> str:
        if or_name and isinstance(value, str):
            return BY_NAME
        return str(value.get("kind", default) if isinstance(value, Mapping) else getattr(value, "kind", default))

    return Discriminator(kind_of)
