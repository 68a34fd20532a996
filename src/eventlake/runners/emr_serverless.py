"""Spark on EMR Serverless: one job run of an application."""

import shlex
from typing import Any

from eventlake.aws.service import Service
from eventlake.aws.session import AwsOptions
from eventlake.runners.remote import NOT_STARTED, State, Status
from eventlake.runners.submission import Submission

_STATES = {
    "SUBMITTED": State.WAITING,
    "PENDING": State.WAITING,
    "SCHEDULED": State.WAITING,
    "QUEUED": State.WAITING,
    "RUNNING": State.RUNNING,
    "CANCELLING": State.RUNNING,
    "SUCCESS": State.ENDED,
}


class Serverless(Service):
    """What is asked about one application."""

    def __init__(self, options: AwsOptions, application_id: str) -> None:
        super().__init__("emr-serverless", options, hint="check emr.application_id and emr.execution_role_arn")
        self.application_id = application_id

    def ask(self, method: str, what: str, **asked: Any) -> Any:
        return super().ask(method, what, applicationId=self.application_id, **asked)

    def state(self) -> str:
        found = self.ask("get_application", f"look at application {self.application_id}")["application"]
        return f"{self.application_id} is {found['state'].lower()}, {found['releaseLabel']}"


class ServerlessJob:
    """A `Launcher` that starts a job run."""

    def __init__(
        self,
        serverless: Serverless,
        role_arn: str,
        submission: Submission,
        *,
        logs: str,
    ) -> None:
        self._serverless = serverless
        self._role_arn = role_arn
        self._submission = submission
        self._logs = logs
        self._run_id = ""
        self.where: dict[str, str] = {}

    def start(self, session: str) -> str:
        conf = {
            "spark.emr-serverless.driverEnv.EVENTLAKE_PYTHON": self._submission.python,
            **self._submission.configuration,
        }
        parameters = " ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in conf.items())
        started = self._serverless.ask(
            "start_job_run",
            f"submit to application {self._serverless.application_id}",
            name="eventlake",
            executionRoleArn=self._role_arn,
            jobDriver={
                "sparkSubmit": {
                    "entryPoint": self._submission.package.entry,
                    "entryPointArguments": self._submission.arguments(session),
                    "sparkSubmitParameters": parameters,
                }
            },
            configurationOverrides={"monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": self._logs}}},
        )
        self._run_id = started["jobRunId"]
        return f"job run {self._run_id} to application {self._serverless.application_id}"

    def status(self) -> Status:
        if not self._run_id:
            return NOT_STARTED
        run = self._serverless.ask("get_job_run", f"look at job run {self._run_id}", jobRunId=self._run_id)["jobRun"]
        detail = f"job run {self._run_id} is {run['state'].lower()}"
        reason = run.get("stateDetails", "")
        where = f"{self._logs}applications/{self._serverless.application_id}/jobs/{self._run_id}/"
        return Status(_STATES.get(run["state"], State.FAILED), f"{detail}: {reason}" if reason else detail, where)

    def stop(self) -> None:
        if self._run_id and self.status().state in (State.WAITING, State.RUNNING):
            self._serverless.ask("cancel_job_run", f"cancel job run {self._run_id}", jobRunId=self._run_id)
