"""How an alert reaches people: by mail, by a request that bears a signature, or through Slack."""

import hashlib
import hmac
import http.client
import json
import smtplib
import ssl
import time
import urllib.parse
from contextlib import closing
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from eventlake.azure.vault import forget, revealed
from eventlake.control.alerts import Message
from eventlake.events import instants
from eventlake.settings.serve import (
    ChannelSettings,
    EmailChannelSettings,
    SlackChannelSettings,
    WebhookChannelSettings,
)

SIGNATURE = "X-Eventlake-Signature"
_SECONDS = 20.0
_MOST_SHOWN = 200  # characters of what a server says


class NotDeliveredError(Exception):
    """What a channel answered; never with a secret."""


def send(channel: ChannelSettings, alert: Message, console: str) -> None:
    """Deliver an alert. Raises NotDeliveredError."""
    link = f"{console.rstrip('/')}{alert.link}"
    try:
        match channel:
            case EmailChannelSettings():
                _mail(channel, alert, link)
            case WebhookChannelSettings():
                _post_signed(channel, alert, link)
            case SlackChannelSettings():
                text = f"*{_escaped(alert.subject)}*\n{_escaped(alert.body)}\n<{link}>"
                _post(revealed(channel.url), json.dumps({"text": text}).encode(), {})
    except smtplib.SMTPAuthenticationError as error:
        forget()
        raise NotDeliveredError(f"the mail server refuses the name or the password ({error.smtp_code})") from None
    except smtplib.SMTPResponseException as error:
        raise NotDeliveredError(f"the mail server says {error.smtp_code} {_text(error.smtp_error)}") from None
    except smtplib.SMTPRecipientsRefused as error:
        raise NotDeliveredError(f"the mail server takes nothing for {', '.join(error.recipients)}") from None
    except (OSError, smtplib.SMTPException) as error:
        raise NotDeliveredError(f"{type(error).__name__}: {str(error)[:_MOST_SHOWN]}") from None
    except (http.client.HTTPException, ValueError) as error:  # whose words may hold the address, which is a secret
        raise NotDeliveredError(f"the address cannot be used: {type(error).__name__}") from None


def _mail(channel: EmailChannelSettings, alert: Message, link: str) -> None:
    message = EmailMessage()
    message["Subject"] = f"[eventlake] {_one_line(alert.subject)}"
    message["From"] = channel.sender
    message["To"] = ", ".join(channel.to)
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(alert.id, "eventlake.invalid")
    message.set_content(f"{alert.body}\n\n{link}\n")
    # Without a context of its own, smtplib would check no certificate.
    context = ssl.create_default_context(cafile=channel.ca_file)
    if channel.security == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(channel.host, channel.port, timeout=_SECONDS, context=context)
    else:
        server = smtplib.SMTP(channel.host, channel.port, timeout=_SECONDS)
    with server:
        if channel.security == "starttls":
            server.starttls(context=context)
        if channel.user:
            server.login(channel.user, revealed(channel.password) if channel.password else "")
        server.send_message(message)


def _post_signed(channel: WebhookChannelSettings, alert: Message, link: str) -> None:
    body = json.dumps(alert._asdict() | {"at": instants.to_text(alert.at), "link": link}).encode()
    secret = revealed(channel.secret) if channel.secret else None
    _post(revealed(channel.url), body, {SIGNATURE: signature(secret, body, int(time.time()))} if secret else {})


def signature(secret: str, body: bytes, at: int) -> str:
    """What a receiver compares with the header: the request came from somebody who knows the secret, and just now."""
    signed = hmac.new(secret.encode(), b"%d." % at + body, hashlib.sha256)
    return f"t={at},v1={signed.hexdigest()}"


def _post(url: str, body: bytes, headers: dict[str, str]) -> None:
    """Where the answer leads elsewhere, it is not followed: what is sent is meant for this address only."""
    parts = urllib.parse.urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    with closing(kind(parts.hostname or "", parts.port, timeout=_SECONDS)) as connection:
        target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        connection.request("POST", target, body, {"Content-Type": "application/json", **headers})
        with connection.getresponse() as answer:
            said = answer.read(_MOST_SHOWN)
    if not 200 <= answer.status < 300:
        forget()  # the address and the key of the signature may be others by now
        raise NotDeliveredError(f"{parts.hostname} answers {answer.status} {_text(said)}".strip())


def _text(said: bytes | str) -> str:
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return _one_line(text)[:_MOST_SHOWN]


def _one_line(text: str) -> str:
    """A line that cannot begin another: names of sources and columns come from outside."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _escaped(text: str) -> str:
    """As Slack wants it: else a name could ping everybody, or look like a link."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
