"""`eventlake package`: what a cluster needs to work for a lake."""

from eventlake.cli import output, state
from eventlake.cli.runners import surroundings
from eventlake.cli.state import JsonFlag, LakeOption
from eventlake.errors import InvalidSettingsError
from eventlake.runners.choice import provided
from eventlake.settings import DEFAULT_LAKE


def package(name: LakeOption = DEFAULT_LAKE, as_json: JsonFlag = False) -> None:
    """Build what a cluster needs and upload it, once per version: to the lake for EMR, to a volume for Databricks.

    The archive holds eventlake and its libraries as they are built for the cluster's Linux (`python` and `machine` of
    the runner). A sync on a cluster does this by itself when it is needed.
    """
    lake = state.lake(name)
    runner = lake.settings.runner
    if runner.kind == "spark" or runner.kind == "connect":  # noqa: PLR1714 - mypy understands this
        raise InvalidSettingsError(
            f"the lake {name!r} does not run on EMR or Databricks", fix="set its runner; see docs/aws.md, docs/azure.md"
        )
    made = provided(runner, surroundings(lake))
    made_of = {"archive": made.tarball, "entry": made.entry, "uploaded": made.is_new}
    if as_json:
        output.print_json(made_of)
    else:
        output.talk.print(f"{'Uploaded' if made.is_new else 'It is there:'} {made_of['archive']}")
