"""Values of one event that are for the same column: which of them the column gets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eventlake.schema.cast import value_text
from eventlake.schema.cells import Cells, present, values_by_row, without
from eventlake.schema.claims import Claim, Claims, ColumnRules
from eventlake.schema.kinds import Place
from eventlake.schema.rescue import Rescued, keys_of

Beaten = list[tuple[int, Rescued]]


class Candidate(NamedTuple):
    """Values of one kind, from one place, for a column."""

    place: Place
    cells: Cells


def highest_ranked(
    found: Sequence[Candidate], rules: ColumnRules, column: str, rows: int
) -> tuple[list[Candidate], Beaten]:
    """The values that a column of so many rows gets, no row more than one; and those that lost, with their rows.

    A value that has another column of its own, or is the same as the one that won, is not lost.
    """
    if len({candidate.place.pointer for candidate in found}) < 2:
        return list(found), []
    ranks: dict[int, list[Candidate]] = {}
    for candidate in found:
        ranks.setdefault(_rank(candidate, rules, column), []).append(candidate)
    if len(ranks) == 1:
        return list(found), []
    chosen: list[Candidate] = []
    beaten: Beaten = []
    taken = np.zeros(rows, bool)
    for rank in sorted(ranks):
        for candidate in ranks[rank]:
            if _has_another(candidate, rules, column):
                continue
            texts = {row: text for better in chosen for row, text in _texts(better, taken).items()}
            for row, text in _texts(candidate, taken).items():
                if texts.get(row) != text:
                    pointer = candidate.place.pointer
                    beaten.append((row, Rescued(pointer, text, f"another value has the column {column}")))
        chosen += (candidate._replace(cells=without(candidate.cells, taken)) for candidate in ranks[rank])
        for candidate in ranks[rank]:
            taken |= present(candidate.cells, rows)
    return chosen, beaten


def _texts(candidate: Candidate, rows: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> dict[int, str]:
    """The values of some rows, as JSON."""
    found = values_by_row(candidate.cells, rows)
    return {row: value_text(candidate.place.kind, value) for row, value in found.items()}


def _rank(candidate: Candidate, rules: ColumnRules, column: str) -> int:
    claims = _claims(candidate, rules)
    return next((claim.rank for claim in claims if _is(claim, column)), 0) if not isinstance(claims, str) else 0


def _is(claim: Claim, column: str) -> bool:
    """Whether a claim is for a column; an event may have asked for reserved words as they are."""
    return claim.column in (column, f"_{column}")


def _claims(candidate: Candidate, rules: ColumnRules) -> Claims | str:
    path = tuple(keys_of(candidate.place.pointer))
    return rules.claims(path) if path else ()  # of a table that was taken over nobody knows where its values are from


def _has_another(candidate: Candidate, rules: ColumnRules, column: str) -> bool:
    claims = _claims(candidate, rules)
    return not isinstance(claims, str) and not all(_is(claim, column) for claim in claims)
