"""The steps that a run may ask of a driver on a cluster, by name, each with the check of its results."""

from eventlake.runners.wire import Step, registry
from eventlake.sync import answers
from eventlake.sync.dedupe import dedupe
from eventlake.sync.index import reindex
from eventlake.sync.inspect import difference, inspect_data, inspect_index, inspect_raw, names_of
from eventlake.sync.publish import publish
from eventlake.sync.stage import stage


def twice(_: None, number: int) -> int:
    """What the doctor asks for, to see that tasks are done."""
    return 2 * number


def _not_twice(_: None, number: int, result: int) -> str | None:
    return None if result == 2 * number else f"twice {number} is not {result}"


STEPS = registry(
    Step(stage, answers.stage),
    Step(reindex, answers.reindex),
    Step(dedupe, answers.dedupe),
    Step(publish, answers.publish),
    Step(inspect_raw, answers.inspect_files),
    Step(inspect_data, answers.inspect_files),
    Step(inspect_index, answers.inspect_index),
    Step(difference, answers.difference),
    Step(names_of, answers.names_of),
    Step(twice, _not_twice),
)
