"""What transformations would make of events, before anybody relies on them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from eventlake.errors import InvalidSettingsError
from eventlake.policies.transformations import Transformation, TransformationError, Transformations

_SAMPLES = 20


class Previewed(NamedTuple):
    events: int
    changed: int
    dropped: int
    samples: list[dict[str, str | None]]  # places that differ, of the first events that do


def previewed(told: Sequence[Transformation], events: Iterable[dict[str, Any]]) -> Previewed:
    try:
        ready = Transformations(told)
    except TransformationError as error:
        raise InvalidSettingsError(
            str(error), fix="correct it; docs/plans.md has the language of conditions"
        ) from error
    found = Previewed(0, 0, 0, [])
    for event in events:
        made = ready.changed(event)
        found = found._replace(
            events=found.events + 1,
            changed=found.changed + (made is not None and made is not event),
            dropped=found.dropped + (made is None),
        )
        if made is not None and made is not event and len(found.samples) < _SAMPLES:
            found.samples.extend(_differences(event, made, ""))
    return found


def _differences(before: Any, after: Any, where: str) -> Iterator[dict[str, str | None]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            if before.get(key) is not after.get(key):
                yield from _differences(before.get(key), after.get(key), f"{where}.{key}" if where else key)
    elif before != after:
        yield {"where": where, "before": _text(before), "after": _text(after)}


def _text(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()
