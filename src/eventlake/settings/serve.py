"""The part of the settings file that `eventlake serve` needs: where alerts go, and where people reach the console."""

import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from eventlake.azure.vault import SCHEME
from eventlake.settings.section import Secret, Section
from eventlake.settings.storage import WebAddress


class EmailChannelSettings(Section):
    kind: Literal["email"] = "email"
    host: str = Field(description="Mail server.")
    port: int = Field(587, ge=1, le=65535, description="Its port: 587 with starttls, 465 with tls.")
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="How the connection is encrypted; none only for a server on this machine."
    )
    ca_file: str | None = Field(None, description="Certificates to trust instead of the system's.")
    user: str | None = Field(None, description="Name to sign in with.")
    password: Secret | None = Field(None, description="Password to sign in with.")
    sender: str = Field(description="Address that mails come from.")
    to: list[str] = Field(min_length=1, description="Addresses that mails go to.")

    @model_validator(mode="after")
    def _no_password_in_the_clear(self) -> "EmailChannelSettings":
        if self.security == "none" and self.host not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("security = none is only for a mail server on this machine")
        return self


def _has_good_port(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


class _Posted(Section):
    @field_validator("url", check_fields=False)
    @classmethod
    def _web_address(cls, url: SecretStr) -> SecretStr:
        text = url.get_secret_value()
        if text.startswith(SCHEME):  # as a secret it was looked at already
            return url
        if not re.fullmatch(r"https?://[^\s/?#]+[!-~]*", text) or not _has_good_port(text):
            raise ValueError("not an address that begins with https:// or http://, of ASCII characters")
        return url


class WebhookChannelSettings(_Posted):
    kind: Literal["webhook"] = "webhook"
    url: Secret = Field(description="Where alerts are posted as JSON.")
    secret: Secret | None = Field(None, description="Key of the signature that each request bears.")


class SlackChannelSettings(_Posted):
    kind: Literal["slack"] = "slack"
    url: Secret = Field(description="Incoming webhook of Slack, or of anything that understands the same.")


ChannelSettings = Annotated[
    EmailChannelSettings | WebhookChannelSettings | SlackChannelSettings, Field(discriminator="kind")
]


class ConsoleSettings(Section):
    url: WebAddress = Field(
        "http://127.0.0.1:8021",
        description="Where people reach the console; for links in alerts.",
    )
