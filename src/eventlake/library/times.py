"""Times as people write them."""

from eventlake.errors import InvalidSettingsError
from eventlake.events import instants


def micros_of(text: str | None) -> int | None:
    """A time in microseconds since 1970: a day, or an instant in UTC."""
    if text is None:
        return None
    instant = instants.parse(text if "T" in text else f"{text}T00:00:00Z")
    if instant is None:
        raise InvalidSettingsError(f"{text!r} is not a time", fix="use 2026-11-01 or 2026-11-01T08:00:00Z")
    return instant.micros
