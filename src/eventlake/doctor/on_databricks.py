"""What `eventlake doctor` tries of Databricks."""

from eventlake.library.runners import Around
from eventlake.runners.choice import databricks_of, provided
from eventlake.runners.databricks import Databricks
from eventlake.settings.runners import DatabricksRunnerSettings
from eventlake.workspace import Lake


def sign_in(lake: Lake, around: Around) -> str:
    """Shows that the workspace takes who acts there."""
    settings, workspace = _of(lake, around)
    return f"{workspace.user()} on {settings.host}"


def cluster(lake: Lake, around: Around) -> str:
    settings, workspace = _of(lake, around)
    if settings.cluster_id is None:
        return "one is made for each run"
    return f"{settings.cluster_id} is {workspace.cluster(settings.cluster_id).lower()}"


def package(lake: Lake, around: Around) -> str:
    """Shows that files may be put where the cluster finds them."""
    settings, _ = _of(lake, around)
    made = provided(settings, around(lake))
    return f"{made.tarball}{', uploaded now' if made.is_new else ''}"


def _of(lake: Lake, around: Around) -> tuple[DatabricksRunnerSettings, Databricks]:
    settings = lake.settings.runner
    assert settings.kind == "databricks"  # noqa: S101 - the steps are for it
    return settings, databricks_of(settings, around(lake))
