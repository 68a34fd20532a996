"""What a source does with events that are not as its plan says: the settings of Segment's Protocols."""

from typing import Literal, NamedTuple

from msgspec import Struct

OnCommonViolation = Literal["ALLOW", "BLOCK", "OMIT_PROPERTIES"]


class Controls(NamedTuple):
    """What is allowed of one call."""

    unplanned: bool  # the call itself
    unplanned_members: bool  # of its properties or traits
    violations: bool
    values_that_violate: bool
    on_common_violation: OnCommonViolation


class _Controls(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Controls with Segment's names."""


class TrackControls(_Controls, frozen=True):
    """Of track calls; pages and screens, which are validated as events, follow them."""

    allow_unplanned_events: bool = True
    allow_unplanned_event_properties: bool = True
    allow_event_on_violations: bool = True
    allow_properties_on_violations: bool = True
    common_event_on_violations: OnCommonViolation = "ALLOW"


class TraitControls(_Controls, frozen=True):
    """Of identify calls, or of group calls."""

    allow_unplanned_traits: bool = True
    allow_traits_on_violations: bool = True
    common_event_on_violations: OnCommonViolation = "ALLOW"


class Enforcement(_Controls, frozen=True):
    """By default everything gets in, and what is wrong with it is told."""

    track: TrackControls = TrackControls()
    identify: TraitControls = TraitControls()
    group: TraitControls = TraitControls()
    forwarding_violations_to: str = ""  # the id of a source
    forwarding_blocked_events_to: str = ""

    def of(self, call: str) -> Controls:
        if call in ("identify", "group"):
            told = self.identify if call == "identify" else self.group
            values = told.allow_traits_on_violations
            return Controls(True, told.allow_unplanned_traits, True, values, told.common_event_on_violations)
        track = self.track
        return Controls(
            track.allow_unplanned_events or call != "track",
            track.allow_unplanned_event_properties,
            track.allow_event_on_violations,
            track.allow_properties_on_violations,
            track.common_event_on_violations,
        )
