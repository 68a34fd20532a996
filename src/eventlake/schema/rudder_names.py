"""Names of columns, tables and namespaces, as RudderStack makes them for its S3 data lake.

They differ from Segment's in nearly half of the cases: leading underscores stay, digits end a word, reserved words and
leading digits get an underscore. Where theirs leave nothing of a name, and lose what it names, there is one made from
its hash here.
"""

import functools
import re
from typing import NamedTuple

from eventlake.schema.names import short_hash, shortened

# Of Hive and Athena.
RESERVED = frozenset(
    """
    all alter and array as authorization between bigint binary boolean both by case cashe cast char column commit
    conf constraint create cross cube current current_date current_timestamp cursor database date dayofweek
    decimal delete describe distinct double drop else end exchange exists extended external extract false fetch
    float floor following for foreign from full function grant group grouping having if import in inner insert int
    integer intersect interval into is join lateral left less like local macro map more none not null numeric of
    on only or order out outer over partialscan partition percent preceding precision preserve primary procedure
    range reads reduce references regexp revoke right rlike rollback rollup row rows select set smallint start
    table tablesample then time timestamp to transform trigger true truncate unbounded union uniquejoin update
    user using utc_timestamp values varchar views when where window with
    """.split()  # noqa: SIM905 - a list would take 137 lines
)

MAX_LENGTH = 1000  # theirs know no limit, but databases do
MAX_NAMESPACE_LENGTH = 127

_RUN = re.compile(r"[A-Za-z0-9]+")
_ORDINAL = r"[0-9]*(?:1st|2nd|3rd|[0-9]th)(?![a-z0-9])|[0-9]*(?:1ST|2ND|3RD|[0-9]TH)(?![A-Z0-9])"
# Digits belong to the letters before them, or to those after them if there are none.
_WORD = re.compile(rf"{_ORDINAL}|[0-9]*(?:[A-Z]+(?![a-z])|[A-Z]?[a-z]+)[0-9]*|[0-9]+")
# Digits are words of their own.
_WORD_WITHOUT_DIGITS = re.compile(rf"{_ORDINAL}|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


_NOT_BLENDO = re.compile(r"[^A-Za-z0-9\\$]")


class NameRules(NamedTuple):
    """What a connection, or an event, may ask of names."""

    divide_numbers: bool = False  # underscore_divide_numbers
    keep_reserved: bool = False  # skipReservedKeywordsEscaping
    blendo: bool = False  # useBlendoCasing: words stay as they are, and what is no letter or digit is an underscore


DEFAULT = NameRules()


@functools.lru_cache(maxsize=50_000)
def plain(name: str, rules: NameRules = DEFAULT) -> str:
    """A name before reserved words are looked at; empty when no ASCII letter or digit is left.

    >>> plain("Product Added v2"), plain("Product Added v2", NameRules(divide_numbers=True))
    ('product_added_v2', 'product_added_v_2')
    >>> plain("__x"), plain("9mega"), plain("user's"), plain("XMLHttp")
    ('__x', '_9mega', 'user_s', 'xml_http')
    >>> plain("Price in $ (v2)", NameRules(blendo=True)), plain("2ndTry", NameRules(blendo=True))
    ('price_in_$__v2_', '_2ndtry')
    """
    if rules.blendo:
        made = _NOT_BLENDO.sub("_", name).lower()
        return f"_{made}" if made[:1].isdigit() else made
    pattern = _WORD_WITHOUT_DIGITS if rules.divide_numbers else _WORD
    words = [word for run in _RUN.findall(name) for word in pattern.findall(run)]
    if not words:
        return ""
    made = name[: len(name) - len(name.lstrip("_"))] + "_".join(words).lower()
    return f"_{made}" if made[0].isdigit() else made


def escaped(name: str, rules: NameRules = DEFAULT) -> str:
    """A name that is no word of the query languages."""
    return f"_{name}" if name in RESERVED and not rules.keep_reserved else name


@functools.lru_cache(maxsize=50_000)  # the same ones come again and again
def column_name(*path: str, rules: NameRules = DEFAULT) -> str:
    """The column of a value: keys are joined first, so only the first keeps its leading underscores.

    >>> column_name("device", "adTrackingEnabled"), column_name("timestamp"), column_name("_id")
    ('device_ad_tracking_enabled', '_timestamp', '_id')
    """
    joined = "_".join(path)
    return shortened(escaped(plain(joined, rules), rules) or f"key_{short_hash(joined)}", MAX_LENGTH)


# A name that is made from one that was made is the same, so there are no digits in it.
_LETTERS = str.maketrans("0123456789", "ghijklmnop")

# An event must not land among the rows of another kind.
_OTHERS = frozenset({"users", "identifies", "tracks", "pages", "screens", "aliases", "groups", "rudder_discards"})


def event_name(event: str, rules: NameRules = DEFAULT) -> str:
    """What the column `event` holds for an event with this name."""
    return plain(event, rules) or f"event_{short_hash(event).translate(_LETTERS)}"


@functools.lru_cache(maxsize=50_000)
def table_name(event: str, rules: NameRules = DEFAULT) -> str:
    """The table of an event with this name.

    >>> table_name("Order Completed"), table_name("Users"), table_name("order")
    ('order_completed', '_users', '_order')
    """
    name = shortened(escaped(event_name(event.strip() if rules.blendo else event, rules), rules), MAX_LENGTH)
    is_taken = name in _OTHERS or (name == "accounts" and not rules.keep_reserved)
    return f"_{name}" if is_taken else name


def namespace(name: str) -> str:
    """The database, and the folder, of a source: digits are always words of their own.

    >>> namespace("k3_ns"), namespace("omega v2 "), namespace("2024 web"), namespace("user"), namespace("…")
    ('k_3_ns', 'omega_v_2', '_2024_web', '_user', 'stringempty')
    """
    runs = "_".join(_RUN.findall(name))
    made = escaped(plain(runs, NameRules(divide_numbers=True))) or "stringempty"
    return made[:MAX_NAMESPACE_LENGTH]
