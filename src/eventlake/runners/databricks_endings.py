"""What a run of Databricks' Jobs that failed means, and who must act."""

from eventlake import errors
from eventlake.errors import EventLakeError, InvalidSettingsError

_QUOTAS = frozenset(
    {
        "BUDGET_POLICY_LIMIT_EXCEEDED",
        "CLUSTER_REQUEST_LIMIT_EXCEEDED",
        "MAX_CONCURRENT_RUNS_EXCEEDED",
        "MAX_JOB_QUEUE_SIZE_EXCEEDED",
        "MAX_SPARK_CONTEXTS_EXCEEDED",
        "WORKSPACE_RUN_LIMIT_EXCEEDED",
    }
)
_CLUSTERS = frozenset({"CLOUD_FAILURE", "CLUSTER_ERROR", "DRIVER_ERROR"})
_WRONG = frozenset({"FEATURE_DISABLED", "INVALID_CLUSTER_REQUEST", "INVALID_RUN_CONFIGURATION", "RESOURCE_NOT_FOUND"})
_DENIED = frozenset({"STORAGE_ACCESS_ERROR", "UNAUTHORIZED_ERROR"})


def problem_of(code: str, detail: str, page: str) -> EventLakeError | None:
    """What a run that failed means, if Databricks tells why."""
    see = f"see {page or 'its page'}"
    if code in _QUOTAS or (code in _CLUSTERS and "quota" in detail.lower()):
        return out_of_quota("run on Databricks", detail)
    if code in _CLUSTERS:
        return errors.ClusterLostError(
            f"the cluster ended before the run did: {detail}",
            fix=f"{see}, and the cluster's event log; start it, then run it again: nothing was published",
        )
    if code in _WRONG:
        return InvalidSettingsError(f"Databricks does not take the run: {detail}", fix=f"{see}, correct the settings")
    if code in _DENIED:
        return errors.SubmitDeniedError(f"the cluster may not do it: {detail}", fix=f"{see}, and docs/azure.md")
    return None


def out_of_quota(what: str, told: str) -> EventLakeError:
    return errors.QuotaExceededError(
        f"could not {what}: {told}", fix="let other work end, or have the quota raised; then run it again"
    )
