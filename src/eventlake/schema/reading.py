"""How a dialect takes events apart."""

from typing import NamedTuple

MAX_DEPTH = 32  # an object below this depth is kept as JSON text


class Reading(NamedTuple):
    max_depth: int = MAX_DEPTH
    leaves_out_empty: bool = False  # texts, arrays and objects that are empty say nothing
    last_key_wins: bool = False  # of two keys with one column, the last in order; else the first that comes


SEGMENT = Reading()
