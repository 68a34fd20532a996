"""The steps that a run may ask of a driver on a cluster, by name, each with the check of its results."""

from eventlake.runners.wire import Step, registry
from eventlake.tasks import answers
from eventlake.tasks.dedupe import dedupe
from eventlake.tasks.examine import difference, examine_data, examine_index, examine_raw, names_of
from eventlake.tasks.publish import publish
from eventlake.tasks.reindex import reindex
from eventlake.tasks.stage import stage


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
    Step(examine_raw, answers.examine_raw),
    Step(examine_data, answers.examine_data),
    Step(examine_index, answers.examine_index),
    Step(difference, answers.difference),
    Step(names_of, answers.names_of),
    Step(twice, _not_twice),
)
