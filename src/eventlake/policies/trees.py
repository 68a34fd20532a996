"""Changing what is at places of an event, without changing the event that was given."""

from collections.abc import Iterable
from typing import Any

Path = tuple[str, ...]


def meet(one: Path, other: Path) -> bool:
    """Whether two places are the same, or one is in the other."""
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]


def get(tree: Any, path: Path) -> Any:
    """What is at a place; None if nothing is."""
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def has(tree: Any, path: Path) -> bool:
    """Whether there is something at a place, be it null."""
    above = get(tree, path[:-1])
    return isinstance(above, dict) and path[-1] in above


def put(tree: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """With a value at a place; as it was, if something else than an object is in the way."""
    key, *rest = path
    if not rest:
        return {**tree, key: value}
    below = tree.get(key)
    if below is not None and not isinstance(below, dict):
        return tree
    changed = put(below or {}, tuple(rest), value)
    return tree if changed is below else {**tree, key: changed}


def is_free(tree: Any, path: Path) -> bool:
    """Whether a value can be put at a place: nothing but objects are on the way."""
    for key in path[:-1]:
        tree = tree.get(key)
        if tree is None:
            return True
        if not isinstance(tree, dict):
            return False
    return True


def without(tree: dict[str, Any], path: Path) -> dict[str, Any]:
    """Without what is at a place."""
    key, *rest = path
    if key not in tree:
        return tree
    if not rest:
        return {name: value for name, value in tree.items() if name != key}
    below = tree[key]
    changed = without(below, tuple(rest)) if isinstance(below, dict) else below
    return tree if changed is below else {**tree, key: changed}


def only(tree: dict[str, Any], paths: Iterable[Path]) -> dict[str, Any]:
    """Nothing but what is at some places."""
    kept: dict[str, Any] = {}
    for path in paths:
        if has(tree, path):
            kept = put(kept, path, get(tree, path))
    return kept
