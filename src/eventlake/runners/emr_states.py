"""What EMR tells of steps and clusters, in the words of runners. Pure."""

import re
from typing import Any

from eventlake.errors import ClusterLostError, EventLakeError, QuotaExceededError, VersionMismatchError
from eventlake.runners.remote import State

_STATES = {
    "PENDING": State.WAITING,
    "CANCEL_PENDING": State.RUNNING,
    "RUNNING": State.RUNNING,
    "COMPLETED": State.ENDED,
}
_CLUSTER_STATES = {
    "STARTING": State.WAITING,
    "BOOTSTRAPPING": State.WAITING,
    "RUNNING": State.RUNNING,
    "WAITING": State.RUNNING,
}
_GONE = ("TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS")
_RELEASE = re.compile(r"emr-(\d+)\.\d+.*")
_NO_MACHINES = re.compile(r"capacity|quota|limit exceeded|instance limit", re.IGNORECASE)
_OLDEST = 7  # the first release with Spark 3.5


def refuse_old(cluster: dict[str, Any]) -> None:
    """Refuse a cluster on which nothing of ours could run, before anything is done for it."""
    label = str(cluster.get("ReleaseLabel", ""))
    release = _RELEASE.fullmatch(label)
    if release and int(release[1]) < _OLDEST:
        raise VersionMismatchError(
            f"cluster {cluster['Id']} is of the release {label}, whose Spark is older than 3.5",
            fix=f"start a cluster of release emr-{_OLDEST}.0.0 or newer, with Python 3.11, and set its id instead "
            "(emr.cluster_id, or emr_cluster_id of a connection): nothing else changes, and the tables stay",
        )


def lost(cluster_id: str, status: dict[str, Any], logs: str) -> EventLakeError | None:
    """What it means that a cluster has ended before its work did; None if it has not."""
    if state_of(status) is not State.FAILED or status.get("StateChangeReason", {}).get("Code") == "STEP_FAILURE":
        return None  # a step that failed takes its cluster with it: the logs of the step tell why
    problem = f"cluster {cluster_id} ended before the run did: it {in_words(status)}"
    if _NO_MACHINES.search(problem):
        return QuotaExceededError(
            problem, fix="run it again later, take other instance types or another subnet, or have the quota raised"
        )
    return ClusterLostError(
        problem, fix=f"see {logs or 'the logs of the cluster'}, then run it again: nothing was published"
    )


def state_of_step(status: dict[str, Any]) -> State:
    return _STATES.get(status["State"], State.FAILED)


def is_gone(status: dict[str, Any]) -> bool:
    return status["State"] in _GONE


def state_of(status: dict[str, Any]) -> State:
    """How a run is whose cluster has this status."""
    if status.get("StateChangeReason", {}).get("Code") == "ALL_STEPS_COMPLETED":
        return State.ENDED
    return _CLUSTER_STATES.get(status["State"], State.FAILED)


def in_words(status: dict[str, Any]) -> str:
    """The state of a step or a cluster, and why it has it."""
    why = status.get("FailureDetails", {})
    reason = why.get("Message") or why.get("Reason") or status.get("StateChangeReason", {}).get("Message")
    state = f"is {status['State'].lower().replace('_', ' ')}"
    return f"{state}: {reason}" if reason else state


def logs_of(cluster: dict[str, Any]) -> str:
    found = str(cluster.get("LogUri", "")).replace("s3n://", "s3://")
    return found if not found or found.endswith("/") else f"{found}/"
