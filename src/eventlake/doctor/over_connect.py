"""What `eventlake doctor` tries of Spark Connect."""

from eventlake.library.runners import Around, Runners
from eventlake.reports.words import count
from eventlake.workspace import Lake


def server(lake: Lake, around: Around) -> str:
    """Shows that it can be reached, takes the token, and has the versions and libraries that tasks need."""
    settings = lake.settings.runner
    assert settings.kind == "connect"  # noqa: S101 - the step is for it
    with Runners(lake.workspace, around) as runners, runners.of(lake.name) as runner:
        return f"{settings.url}, {count(runner.parallelism, 'task')} at once"
