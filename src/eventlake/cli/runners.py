"""Where commands let runs be carried out, and how they tell of it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from eventlake.cli import output
from eventlake.library import runners as library
from eventlake.library.runners import spark_log
from eventlake.runners.base import Runner
from eventlake.runners.choice import Surroundings
from eventlake.workspace import Lake, Workspace

_NAMES = {"emr": "EMR", "emr-serverless": "EMR", "connect": "Spark Connect", "databricks": "Databricks"}


def surroundings(lake: Lake) -> Surroundings:
    name = _NAMES.get(lake.settings.runner.kind, "")
    return Surroundings(
        lake.storage,
        lake.archive,
        lake.workspace.all_annexes,
        lake.folders.stage,
        lake.settings.aws.options,
        lake.settings.azure.options,
        lake.workspace.folder,
        spark_log(lake),
        talk=lambda text: output.talk.print(f"{name}: {text}", style="dim"),
        busy=output.talk.status,
    )


class Runners(library.Runners):
    """The runners of lakes, for a command: what they say is shown, and SIGTERM stops what they started elsewhere."""

    def __init__(self, workspace: Workspace, *, transient: bool = False) -> None:
        super().__init__(workspace, surroundings, transient=transient)

    @contextmanager
    def of(self, name: str, cluster_id: str = "") -> Iterator[Runner]:
        if self._workspace.lake(name).settings.runner.kind != "spark":  # without this only Ctrl-C would
            signal.signal(signal.SIGTERM, signal.default_int_handler)
        with super().of(name, cluster_id) as runner:
            yield runner
