"""The settings file itself: what a new one holds, and what is wrong with one."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from eventlake.errors import ConfigurationError
from eventlake.settings import Settings
from eventlake.settings.mistakes import mistakes

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


def read_settings(values: Mapping[str, Any], where: str) -> Settings:
    """Settings from a file or from values; `where` they are is for the message."""
    try:
        return Settings(**values)
    except ValidationError as error:
        what = "file" if where == CONFIG else "setting"
        raise ConfigurationError(
            f"{where}: {mistakes(error)}", fix=f"correct the {what} or the EVENTLAKE_… variable"
        ) from error
