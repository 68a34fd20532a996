"""The settings file itself: what a new one holds, and what is wrong with one."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from eventlake.errors import ConfigurationError, InvalidSettingsError, NotFoundError
from eventlake.settings import Settings
from eventlake.settings.mistakes import mistakes, wrong_lakes

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
        settings = _without_wrong_lakes(values, error)
        if settings is not None:
            return settings
        what = "file" if where == CONFIG else "setting"
        raise ConfigurationError(
            f"{where}: {mistakes(error)}", fix=f"correct the {what} or the EVENTLAKE_… variable"
        ) from error


def _without_wrong_lakes(values: Mapping[str, Any], error: ValidationError) -> Settings | None:
    """The settings without the lakes of which something is wrong; None if that is not all that is wrong."""
    wrong = wrong_lakes(error)
    if not wrong:
        return None
    sections = {name: section for name, section in values.get("lakes", {}).items() if name not in wrong}
    try:
        settings = Settings(**{**values, "lakes": sections})
    except ValidationError:  # as if what is wrong is in a variable
        return None
    settings.wrong_lakes.update({name: mistakes(error, ("lakes", name)) for name in sorted(wrong)})
    return settings
