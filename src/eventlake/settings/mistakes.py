"""What is wrong with a settings file, in a sentence."""

from collections.abc import Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from eventlake.settings import DEFAULT_LAKE, OF_A_LAKE, Settings
from eventlake.settings.section import BY_NAME
from eventlake.settings.words import in_words

SECTIONS_OF_DEFAULT_LAKE = {"lake", "runner", "aws", "s3", "azure", "gcs", "catalog", "spark", "emr"}

_KINDS_OF = {
    "catalog": ("embedded", "glue", "hive"),
    "runner": ("spark", "emr", "emr-serverless", "connect", "databricks"),
    "channels": ("email", "webhook", "slack"),
}
_KINDS = {BY_NAME, *(kind for kinds in _KINDS_OF.values() for kind in kinds)}


def mistakes(error: ValidationError, lake: str | None = None) -> str:
    """What is wrong with settings, or with those of a lake; a key that there is not with the nearest that is."""
    return "; ".join(
        _problem(one["loc"], one["type"], in_words(one["type"], one.get("ctx", {}), one["msg"]))
        for one in error.errors()
        if lake is None or _lake_of(one) == lake
    )


def wrong_lakes(error: ValidationError) -> set[str]:
    """The lakes in whose sections everything is that is wrong; none if something else is wrong as well."""
    found = {_lake_of(one) for one in error.errors()}
    return {lake for lake in found if lake is not None} if None not in found else set()


def _lake_of(one: ErrorDetails) -> str | None:
    """The lake that a mistake is about; None if the whole workspace is."""
    match one["loc"]:
        case ("lakes", name, *rest) if "[key]" not in rest:
            return str(name)
        case (section, *_) if section in SECTIONS_OF_DEFAULT_LAKE:
            return DEFAULT_LAKE
        case _:
            return str(one["ctx"]["lake"]) if one["type"] == OF_A_LAKE else None


def _problem(place: tuple[int | str, ...], kind: str, words: str) -> str:
    # Of one of several kinds, Pydantic names the kind as well.
    parts = [
        part
        for number, part in enumerate(place)
        if part not in _KINDS or not _is_of_kinds(place[number - 1] if number else "", place[0], number)
    ]
    if parts and parts[-1] == "[key]":
        what = {"channels": "channel", "annexes": "annex"}.get(str(place[0]), "lake")
        parts, words = (
            parts[:-1],
            f"not the name of a {what}: use up to 50 of a-z, 0-9, - and _, a letter or digit first",
        )
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        kinds = _KINDS_OF["channels" if place[0] == "channels" else str(place[-1])]
        words = f"there is no such kind; use one of {', '.join(kinds)}"
    if kind == "model_type":
        words = f"must be a table{', such as { kind = …, … }' if parts[-1] in _KINDS_OF else ''}"
    if kind == "extra_forbidden":
        near = get_close_matches(str(place[-1]), _keys_beside([str(part) for part in place]), 1)
        words = f"there is no such setting{f'; perhaps {near[0]}' if near else ''}"
    # What is wrong between several settings has no place of its own.
    return f"{'.'.join(map(str, parts))}: {words}" if parts else words


def _is_of_kinds(before: int | str, section: int | str, number: int) -> bool:
    """Whether what stands here in a place is a kind: of a channel, which has a name before it, or of anything else."""
    return before in _KINDS_OF or (section == "channels" and number == 2)


def _keys_beside(place: Sequence[str]) -> list[str]:
    """The settings that there are where one is written that there is not."""
    models: list[type[BaseModel]] = [Settings]
    for before, part in pairwise(("", *place[:-1])):
        if before not in ("lakes", "channels", "annexes"):  # what comes next is a name
            fields = [model.model_fields[part] for model in models if part in model.model_fields]
            models = [one for field in fields for one in _models(field.annotation)] or models
    return sorted({name for model in models for name in model.model_fields})


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The sections that a type is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _models(part)]
