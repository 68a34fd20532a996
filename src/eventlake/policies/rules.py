"""All that a source has in the way of its events, as one document that travels to where events are read.

Suppression is not among it: who must not be in the lake is known by hashes alone.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from eventlake.policies.enforcement import Enforcement
from eventlake.policies.plan import Plan
from eventlake.policies.transformations import HIDDEN, HashProperties, Transformation, Transformations
from eventlake.policies.trees import Path
from eventlake.policies.verdict import COMMON_VIOLATION, UNPLANNED, VIOLATION, Enforced, Verdict, never

DROPPED = "transformation"  # the reason for which an event is blocked that one drops
REASONS = frozenset({UNPLANNED, VIOLATION, COMMON_VIOLATION, DROPPED})


class RulesDocument(Struct, frozen=True):
    """What a source goes by: its plan, how it is enforced, and its transformations."""

    source_id: str
    plan: Plan | None = None
    enforcement: Enforcement = Enforcement()
    transformations: tuple[Transformation, ...] = ()
    source_name: str = ""
    source_slug: str = ""

    @property
    def is_empty(self) -> bool:
        return self.plan is None and not any(one.enabled for one in self.transformations)

    def packed(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def unpacked(cls, content: bytes) -> "RulesDocument":
        return msgspec.json.decode(content, type=cls)


class Decision(NamedTuple):
    """What becomes of an event."""

    event: dict[str, Any]
    blocked: str | None
    verdict: Verdict


class Rules:
    """The document, ready to look at events. First the plan has its say, then what it lets in is transformed."""

    def __init__(self, document: RulesDocument) -> None:
        self._enforced = (
            Enforced(document.plan, document.enforcement, document.source_id) if document.plan is not None else None
        )
        self._transformations = Transformations(document.transformations)

    def decided(self, event: dict[str, Any], *, was_blocked: bool = False) -> Decision:
        """What becomes of an event. One that was blocked before, and came here because of it, is not blocked again."""
        verdict = self._enforced.judged(event) if self._enforced and not was_blocked else Verdict(event)
        if verdict.blocked:
            return Decision(verdict.event, verdict.blocked, verdict)
        changed = self._transformations.changed(verdict.event)
        if changed is None:
            return Decision(verdict.event, DROPPED, verdict)
        return Decision(changed, None, verdict)

    def hidden(self, decision: Decision) -> list[Path]:
        """The places of an event of which nothing may get in as it was sent, neither as a second value of a key."""
        return [*decision.verdict.lost, *self._transformations.hidden(decision.verdict.event)]

    def looking(self, call: str, event: str) -> Callable[[bytes], bool] | None:
        """A function that tells whether a line of such events is left alone; None if all of them are."""
        if self._transformations.may_change(call, event):
            return never
        return self._enforced.looking(call, event) if self._enforced else None


def without_keys(document: RulesDocument) -> RulesDocument:
    """The document as it may lie in a lake: the keys of hashes are secrets, in whose place there is a sign."""

    def bare(one: Transformation) -> Transformation:
        hashes = one.hash_properties_configuration
        if hashes is None or hashes.key is None:
            return one
        kept: HashProperties = msgspec.structs.replace(hashes, key=HIDDEN)
        return msgspec.structs.replace(one, hash_properties_configuration=kept)

    return msgspec.structs.replace(document, transformations=tuple(map(bare, document.transformations)))


def without_its_key(document: RulesDocument) -> str | None:
    """The name of a transformation that hashes by a key which is lost; None if there is none."""
    for one in document.transformations:
        hashes = one.hash_properties_configuration
        if one.enabled and hashes and hashes.key == HIDDEN:
            return one.name
    return None
