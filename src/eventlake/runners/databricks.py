"""Spark on Databricks: as a run of Jobs, on a cluster that is there or on one that is made for it and ended with it.

The package lies in a volume of Unity Catalog, which the driver's node sees as a folder. The cluster itself stays as it
is: nothing is installed on it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from pydantic import SecretStr

from eventlake import errors
from eventlake.azure.identity import AzureOptions, credential
from eventlake.azure.refusals import no_token
from eventlake.azure.vault import forget, revealed
from eventlake.errors import EventLakeError, InvalidSettingsError, PermissionMissingError, SetupError, TransientError
from eventlake.runners.databricks_endings import out_of_quota, problem_of
from eventlake.runners.remote import NOT_STARTED, State, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from databricks.sdk import WorkspaceClient

    from eventlake.runners.package import Package

_AZURE_DATABRICKS = "2ff814a6-3304-4ab8-85cb-cd0e6f879c1d/.default"  # what Entra calls all workspaces of Azure
_SECONDS = 60  # for one request
_LARGEST = 5 << 30  # bytes that Databricks takes in one request

_STATES = {
    "BLOCKED": State.WAITING,
    "PENDING": State.WAITING,
    "QUEUED": State.WAITING,
    "WAITING": State.WAITING,
    "RUNNING": State.RUNNING,
    "TERMINATING": State.RUNNING,
}


class DatabricksOptions(NamedTuple):
    """A workspace of Databricks, and who acts there. What is secret among them is shown to nobody."""

    host: str
    client_id: str | None = None
    client_secret: SecretStr | None = None
    token: SecretStr | None = None
    azure: AzureOptions = AzureOptions()  # who acts, if a tenant is named or nobody else is
    patience: int = 60  # seconds for which a request is tried again


class Databricks:
    """What is asked of a workspace."""

    def __init__(self, options: DatabricksOptions) -> None:
        self._options = options
        self._made: WorkspaceClient | None = None

    @property
    def name(self) -> str:
        return self._options.host

    @contextmanager
    def asking(self, what: str, denied: type[PermissionMissingError]) -> "Iterator[WorkspaceClient]":
        """The client; what it raises becomes an error of ours."""
        try:
            from databricks.sdk.errors import base  # noqa: PLC0415 - takes its time
        except ImportError as error:
            raise SetupError(
                "the Databricks library is not installed", fix="pip install 'eventlake[databricks]'"
            ) from error
        try:
            yield self._signed_in(what)
        except EventLakeError:
            raise
        except (base.DatabricksError, OSError) as error:
            # After some attempts it tells only that they took too long, and why beside it.
            cause = error.__cause__ if isinstance(error, TimeoutError) else None
            raise self._explained(what, denied, cause or error) from error

    def _signed_in(self, what: str) -> "WorkspaceClient":
        try:
            if self._made is None:
                self._made = _client(self._options)
            self._made.config.authenticate()  # now, for what is raised here is about who acts
        except OSError:
            raise
        except ValueError as error:  # a secret that is wrong has no other kind
            raise self._not_believed(what, error) from error
        return self._made

    def _not_believed(self, what: str, error: BaseException) -> EventLakeError:
        forget()  # the secret may be another by now
        self._made = None
        return errors.SignInDeniedError(
            f"could not {what}: Databricks does not take who this is: {_message_of(error)}",
            fix="check client_id and client_secret (or token) of the runner, and that they are of this workspace; a "
            "service principal of Entra needs tenant_id as well",
        )

    def _explained(self, what: str, denied: type[PermissionMissingError], error: BaseException) -> EventLakeError:
        from databricks.sdk.errors import base, platform  # noqa: PLC0415

        match error:
            case platform.PermissionDenied():
                fix = "give whoever acts there that right; see docs/azure.md"
                return denied(f"may not {what}: {_message_of(error)}", fix=fix)
            case platform.ResourceExhausted() | platform.TooManyRequests():
                return out_of_quota(what, _message_of(error))
            case platform.NotFound() | platform.BadRequest():
                fix = "correct the runner's settings; `eventlake doctor` looks at each"
                return InvalidSettingsError(f"could not {what}: {_message_of(error)}", fix=fix)
            case platform.Unauthenticated():
                return self._not_believed(what, error)
            case base.DatabricksError():
                return TransientError(f"could not {what}: {_message_of(error)}", fix="run it again in a while")
            case _:
                fix = f"check the network and host = {self.name!r}"
                return TransientError(f"could not {what}: {type(error).__name__}", fix=fix)

    def user(self) -> str:
        """Who acts there."""
        with self.asking("sign in to Databricks", errors.SignInDeniedError) as client:
            return str(client.current_user.me().user_name)

    def cluster(self, cluster_id: str) -> str:
        """The state of a cluster."""
        with self.asking(f"look at cluster {cluster_id}", errors.JobStatusDeniedError) as client:
            found = client.clusters.get(cluster_id)
        return str(found.state.value if found.state else "UNKNOWN")


def _client(options: DatabricksOptions) -> "WorkspaceClient":
    from databricks.sdk import WorkspaceClient  # noqa: PLC0415
    from databricks.sdk.config import Config  # noqa: PLC0415

    way_in: dict[str, Any]
    if options.token:
        way_in = {"token": revealed(options.token), "auth_type": "pat"}
    elif options.client_secret and not options.azure.tenant_id:
        secret = revealed(options.client_secret)
        way_in = {"client_id": options.client_id, "client_secret": secret, "auth_type": "oauth-m2m"}
    else:
        way_in = {"credentials_strategy": _by_entra(options)}
    # No file or variable of whoever starts this shall decide who acts.
    config = Config(
        host=options.host,
        config_file="/dev/null",
        http_timeout_seconds=_SECONDS,
        retry_timeout_seconds=options.patience,
        product="eventlake",
        **way_in,
    )
    # In one request, through the workspace: parts would go to storage that this machine may not reach.
    config.files_ext_multipart_upload_min_stream_size = _LARGEST
    return WorkspaceClient(config=config)


def _by_entra(options: DatabricksOptions) -> Any:
    """Tokens of Microsoft's directory, as the client asks for them: before each request."""
    from databricks.sdk.credentials_provider import credentials_strategy  # noqa: PLC0415

    azure = options.azure
    if options.client_id:
        azure = azure._replace(client_id=options.client_id, client_secret=options.client_secret)
    found = credential(azure, revealed(azure.client_secret) if azure.client_secret else None)

    def headers() -> dict[str, str]:
        try:
            token = found.get_token(_AZURE_DATABRICKS).token  # it keeps one until it expires
        except Exception as error:
            raise no_token(error, "sign in to Databricks") from error
        return {"Authorization": f"Bearer {token}"}

    return credentials_strategy("entra", [])(lambda _: headers)


def _message_of(error: BaseException) -> str:
    """The first line of what the service says; the SDK adds how it was configured."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].partition(" Config: ")[0][:300]


class Volume:
    """A `Shelf` in a volume."""

    def __init__(self, databricks: Databricks, folder: str) -> None:
        self._databricks = databricks
        self._folder = folder.rstrip("/")

    def full(self, path: str) -> str:
        return f"{self._folder}/{path}"

    def read(self, path: str, size: int) -> bytes:
        from databricks.sdk.errors import NotFound  # noqa: PLC0415

        what = f"read {self.full(path)}"
        with self._databricks.asking(what, errors.DownloadDeniedError) as client, suppress(NotFound):
            contents = client.files.download(self.full(path)).contents
            return bytes(contents.read(size)) if contents else b""
        raise FileNotFoundError(self.full(path))

    def upload(self, path: str, file: BinaryIO) -> None:
        with self._databricks.asking(f"write {self.full(path)}", errors.StagingDeniedError) as client:
            client.files.upload(self.full(path), file, overwrite=True, use_parallel=False)


class Job(NamedTuple):
    """What is submitted: the package, and where it is done."""

    package: "Package"
    cluster_id: str | None
    new_cluster: Mapping[str, Any] | None
    describe: "Callable[[str], str]"  # what the driver is told of a session

    def task(self, session: str) -> dict[str, Any]:
        where = {"existing_cluster_id": self.cluster_id} if self.cluster_id else {"new_cluster": self.new_cluster}
        words = [self.package.digest, self.describe(session), self.package.tarball]
        entry = {"python_file": self.package.entry, "parameters": words}
        return {"task_key": "eventlake", **where, "spark_python_task": entry, "max_retries": 0}


class DatabricksRun:
    """A `Launcher` that submits a run of Jobs."""

    def __init__(self, databricks: Databricks, job: Job) -> None:
        self._databricks = databricks
        self._job = job
        self._run_id = 0
        self.where: dict[str, str] = {}
        self._has_ended = False

    def start(self, session: str) -> str:
        from databricks.sdk.service.jobs import SubmitTask  # noqa: PLC0415

        task = SubmitTask.from_dict(self._job.task(session))
        where = self._job.cluster_id
        what = f"submit to cluster {where}" if where else "submit to a cluster that is made for it"
        with self._databricks.asking(what, errors.SubmitDeniedError) as client:
            # Asked again after an answer that got lost, Databricks gives the run that it has.
            token = session.replace("/", "-")
            self._run_id = int(client.jobs.submit(run_name="eventlake", tasks=[task], idempotency_token=token).run_id)
        page = ""
        with suppress(EventLakeError):  # it runs, whether or not its page can be told
            page = self._run().run_page_url
        return f"run {self._run_id} to {where or 'a cluster that is made for it'}{f', see {page}' if page else ''}"

    def status(self) -> Status:
        if not self._run_id:
            return NOT_STARTED
        run = self._run()
        state = str(run.status.state.value if run.status and run.status.state else "PENDING")
        ended = run.status.termination_details if run.status else None
        code = str(ended.code.value if ended and ended.code else "")
        message = (ended.message if ended else None) or ""
        detail = f"run {self._run_id} is {state.lower()}{f': {code} {message}'.rstrip() if code else ''}"
        page = run.run_page_url or ""
        self._has_ended = state == "TERMINATED"
        if not self._has_ended:
            return Status(_STATES.get(state, State.RUNNING), detail, page)
        if code == "SUCCESS":
            return Status(State.ENDED, detail, page)
        return Status(State.FAILED, detail, page, problem_of(code, detail, page))

    def stop(self) -> None:
        if self._run_id and not self._has_ended:
            with self._databricks.asking(f"cancel run {self._run_id}", errors.SubmitDeniedError) as client:
                client.jobs.cancel_run(self._run_id)  # which does nothing to one that has ended

    def _run(self) -> Any:
        with self._databricks.asking(f"look at run {self._run_id}", errors.JobStatusDeniedError) as client:
            return client.jobs.get_run(self._run_id)
