"""What `eventlake doctor` tries of Databricks."""

from eventlake.cli.runners import surroundings
from eventlake.runners.choice import databricks_of, provided
from eventlake.runners.databricks import Databricks
from eventlake.settings.runners import DatabricksRunnerSettings
from eventlake.workspace import Lake


def sign_in(place: Lake) -> str:
    """Shows that the workspace takes who acts there."""
    settings, workspace = _of(place)
    return f"{workspace.user()} on {settings.host}"


def cluster(place: Lake) -> str:
    settings, workspace = _of(place)
    if settings.cluster_id is None:
        return "one is made for each run"
    return f"{settings.cluster_id} is {workspace.cluster(settings.cluster_id).lower()}"


def package(place: Lake) -> str:
    """Shows that files may be put where the cluster finds them."""
    settings, _ = _of(place)
    made = provided(settings, surroundings(place))
    return f"{made.tarball}{', uploaded now' if made.is_new else ''}"


def _of(place: Lake) -> tuple[DatabricksRunnerSettings, Databricks]:
    settings = place.settings.runner
    assert settings.kind == "databricks"  # noqa: S101 - the steps are for it
    return settings, databricks_of(settings, surroundings(place))
