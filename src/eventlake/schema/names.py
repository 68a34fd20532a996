"""Names of columns, tables and databases, as Segment makes them.

The snake case is the one of Segment's warehouses and lakes, with its odd corners (`CStringRef` is
`cstring_ref`, `iOS` is `i_os`). It knows ASCII only, so a name in another script has nothing left: such
a name gets a stable one made from its hash, because an empty name would merge fields that differ.
"""

import functools
import hashlib
import re

MAX_COLUMN_LENGTH = 250  # Glue refuses longer column names
MAX_TABLE_LENGTH = 200  # `segment_type=<table>` must stay within the 255 bytes of a directory name

RESCUED_COLUMN = "_rescued_data"
# These columns drive partitions and deduplication: no other place of an event may fill them.
OWNED_COLUMNS = {"message_id": "/messageId", "received_at": "/receivedAt"}
OWNED_PLACES = {name: (place[1:],) for name, place in OWNED_COLUMNS.items()}
PARTITION_KEYS = frozenset({"year", "month", "day", "hr", "segment_type"})
# Names that DuckDB gives a meaning of its own wherever they stand before a table.
RESERVED_DATABASES = frozenset({"information_schema", "memory", "pg_catalog", "system", "temp"})

_WORD = re.compile(r"[A-Z0-9]+[a-z0-9]*|[a-z]+[a-z0-9]*")


def snake(text: str) -> str:
    """Segment's snake case; empty when no ASCII letter or digit is left.

    >>> snake("Order Completed"), snake("productID"), snake("iOS App Opened")
    ('order_completed', 'product_id', 'i_os_app_opened')
    """
    return "_".join(_WORD.findall(text)).lower()


def short_hash(text: str) -> str:
    """Eight hex digits that depend on the whole text; lone surrogates included."""
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()


def shortened(name: str, limit: int) -> str:
    return name if len(name) <= limit else f"{name[: limit - 9]}_{short_hash(name)}"


def key_name(key: str) -> str:
    """The part of a column's name that one key of the event gives."""
    return snake(key) or f"key_{short_hash(key)}"


@functools.lru_cache(maxsize=50_000)  # the same ones come again and again
def column_name(*path: str) -> str:
    """Name the column that holds the value found at `path` in an event.

    >>> column_name("context", "device", "advertisingId")
    'context_device_advertising_id'
    >>> column_name("properties", "Order Total ($)")
    'properties_order_total'
    """
    return shortened("_".join(map(key_name, path)), MAX_COLUMN_LENGTH)


def event_name(event: str) -> str:
    """The part of a table's name that a track event gives."""
    return snake(event) or f"event_{short_hash(event)}"


def database_name(slug: str) -> str:
    """A legal database name (`^[a-z][a-z0-9_]*$`) for a source's slug.

    >>> database_name("ios-prod"), database_name("2024-web")
    ('ios_prod', 's_2024_web')
    """
    name = re.sub(r"[^a-z0-9_]+", "_", slug.lower()).strip("_") or f"source_{short_hash(slug)}"
    return shortened(name if name[0].isalpha() else f"s_{name}", MAX_TABLE_LENGTH)
