"""The settings file itself: what a new one holds, and what is wrong with one."""

import json
import tomllib
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from eventlake.errors import ConfigurationError, InvalidSettingsError, NotFoundError
from eventlake.settings import DEFAULT_LAKE, Settings
from eventlake.settings.mistakes import SECTIONS_OF_DEFAULT_LAKE, mistakes, wrong_lakes
from eventlake.settings.segment_names import with_default_lake_in_our_words

CONFIG = "eventlake.toml"

TEMPLATE = """\
# Settings of this eventlake workspace. Every value can be overridden by an environment variable,
# for example EVENTLAKE_SPARK__MASTER=spark://host:7077.
workspace_id = "{workspace_id}"
# database = "sqlite:///eventlake.db"

[lake]
root = "lake"
{dialect}
[spark]
master = "local[*]"
# conf = {{ "spark.executor.memory" = "4g" }}
"""


def lake_section(name: str, values: Mapping[str, Any]) -> str:
    """The section of a further lake, as the file has it."""
    lines = [f"{key} = {_inline(value)}" for key, value in values.items()]
    return "\n".join(["", f"[lakes.{name}]", *lines, ""])


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_inline(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)  # texts are written alike


def read_file(folder: Path) -> dict[str, Any]:
    """What the settings file of a workspace says."""
    try:
        return tomllib.loads((folder / CONFIG).read_text())
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{folder} is not a workspace: it has no {CONFIG}",
            fix="go to a workspace, name one with `eventlake -C DIR …`, or make one with `eventlake init`",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSettingsError(f"{folder / CONFIG}: {error}", fix="correct the file") from error


def read_settings(values: Mapping[str, Any], where: str) -> Settings:
    """Settings from a file or from values; `where` they are is for the message."""
    try:
        return Settings(**values)
    except SettingsError as error:  # of a variable that stands for a table: it has to be JSON
        raise ConfigurationError(
            f"an EVENTLAKE_… variable cannot be read: {error}",
            fix='one for a whole section is JSON, as EVENTLAKE_SPARK=\'{"master": "local[2]"}\'; one value of it has a '
            "variable of its own, as EVENTLAKE_SPARK__MASTER",
        ) from error
    except ValidationError as error:
        if (settings := _without_wrong_lakes(values, where, error)) is not None:
            return settings
        what = "file" if where == CONFIG else "setting"
        raise ConfigurationError(
            f"{where}: {mistakes(error)}", fix=f"correct the {what} or the EVENTLAKE_… variable"
        ) from error


def _without_wrong_lakes(values: Mapping[str, Any], where: str, error: ValidationError) -> Settings | None:
    """The settings without the lakes of which something is wrong; None if that is not all that is wrong."""
    found: dict[str, str] = {}
    while wrong := wrong_lakes(error) - found.keys():
        found |= {name: f"{where}: {mistakes(error, name)}" for name in sorted(wrong)}
        try:
            values = _without(wrong, values, error)
            settings = Settings(**values)
        except ValidationError as another:  # of what goes together, the first mistake is told first
            error = another
        except ValueError:
            return None
        else:
            settings.wrong_lakes.update(found)
            return settings
    return None  # what is wrong is not a lake's, or it is in a variable


def _without(wrong: Set[str], values: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
    """The values without the sections of some lakes. Where the default lake is stays, for the archive may be there."""
    values = with_default_lake_in_our_words(values)
    lakes = {name: section for name, section in values.get("lakes", {}).items() if name not in wrong}
    gone = SECTIONS_OF_DEFAULT_LAKE if DEFAULT_LAKE in wrong else set()
    if all(one["loc"][:1] != ("lake",) for one in error.errors()):
        gone = gone - {"lake"}
    return {name: value for name, value in values.items() if name not in gone} | {"lakes": lakes}
