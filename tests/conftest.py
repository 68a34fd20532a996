"""What the tests share: a lake in a temporary folder, a real Spark for all of them, and a clock that can be set."""

import functools
import gzip
import json
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import boto3
import cloudpathlib
import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventlake.workspace
from aws import Aws, aws_account
from browsers import browser as browser  # noqa: PLC0414 - fixtures, as are the next
from browsers import chromium as chromium  # noqa: PLC0414
from browsers import node_modules as node_modules  # noqa: PLC0414
from browsers import site as site  # noqa: PLC0414
from eventlake.archive import layout as archive
from eventlake.clock import Clock
from eventlake.control.connections import Connection
from eventlake.control.sources import Source
from eventlake.events import instants
from eventlake.lake.layout import HOUR
from eventlake.query import query
from eventlake.runners.base import Runner
from eventlake.runners.class_cache import find_class_cache, make_class_cache
from eventlake.runners.spark import SparkRunner
from eventlake.storage import private
from eventlake.storage.adls import AzureStorage
from eventlake.storage.objects import ObjectStorage
from eventlake.storage.s3 import S3Storage
from eventlake.sync import jobs
from eventlake.sync.jobs import Job
from eventlake.sync.run import run
from eventlake.sync.work import Sizes
from eventlake.workspace import CONFIG, Workspace
from metastores import engine as engine  # noqa: PLC0414 - fixtures, as is the next
from metastores import metastore as metastore  # noqa: PLC0414
from needs import skipped_for
from runner_without_spark import InProcess as InProcess  # noqa: PLC0414 - tests take it from here
from servers import AwsUser, AzureServer, PostgresServer, S3Server, azure_server, postgres_server, s3_server

# No "explain" phase: it traces every line, which on these tests takes minutes.
PHASES = (hypothesis.Phase.explicit, hypothesis.Phase.reuse, hypothesis.Phase.generate, hypothesis.Phase.shrink)
EXAMPLES = int(os.environ.get("EVENTLAKE_EXAMPLES", "30"))
# Other examples every time, everywhere: make prints the seed with which a run can be repeated. What was found once
# stays as an explicit example beside its test.
hypothesis.settings.register_profile(
    "eventlake",
    max_examples=EXAMPLES,
    deadline=None,
    phases=PHASES,
    derandomize=False,
    print_blob=True,
)
# For mutants only whether a test fails counts, the same every time, and not the smallest example.
hypothesis.settings.register_profile(
    "mutants",
    max_examples=25,
    deadline=None,
    phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
    derandomize=True,
    database=None,
)
hypothesis.settings.load_profile("eventlake")
of_lakes = hypothesis.settings(
    max_examples=max(10, EXAMPLES // 2)
)  # for laws whose examples are lakes with their syncs

DATABASE = "eventlake.db"
RECEIVED = "2026-11-15T10:20:30.123Z"


class SetClock(Clock):
    """A clock that stands still until it is moved, but never shows the same nanosecond twice."""

    def __init__(self, text: str = "2026-11-15T12:00:00Z") -> None:
        instant = instants.parse(text)
        assert instant
        self._ns = instant.micros * 1000

    def now_ns(self) -> int:
        self._ns += 1000
        return self._ns

    def forward(self, *, hours: float) -> None:
        self._ns += int(hours * HOUR) * 1000


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name binary values by what they are: a gzip header holds the time, and every worker must find the same names."""
    return "binary" if isinstance(val, bytes) and not val.isascii() else None


os.environ["XDG_CACHE_HOME"] = str(Path(sys.prefix, "cache"))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before several processes run tests, make a class cache for them: they start a hundred Sparks."""
    if getattr(session.config.option, "numprocesses", None) and find_class_cache() is None:
        make_class_cache(Path(os.devnull))


# Files that take longest. They come first, or one process would still be busy with them when the others have ended.
SLOWEST = (
    *("cli", "collector", "aws", "rudder_laws", "faults", "laws", "serve", "api", "cli_lakes", "connect", "console"),
    *("rudderstack", "spark", "bring", "catalog", "crash", "suppression", "sizes", "library", "cli_admission"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {f"test_{name}": place for place, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was not tested on this machine, and what to do about it."""
    reasons = skipped_for(terminalreporter.stats.get("skipped", []))
    if reasons:
        terminalreporter.section("not tested on this machine")
    for reason, tests in reasons.items():
        terminalreporter.write_line(f"{tests} {'test' if tests == 1 else 'tests'}: {reason}")


collect_ignore = ["terraform"]  # runs in another environment
os.environ.pop("COLUMNS", None)  # pytest-xdist sets it, and tables would be cut

ELSEWHERE = os.environ.get("EVENTLAKE_TEST_LAKE", "")  # the store that has all lakes: s3, azure, or none
IN_BUCKETS = bool(ELSEWHERE)
_servers: list[S3Server | AzureServer] = []  # where new lakes are made, if all shall be in buckets


ON_POSTGRES = os.environ.get("EVENTLAKE_TEST_DATABASE") == "postgres"
_databases: list[PostgresServer] = []  # where new workspaces have their databases, if all shall be on a server


def new_database() -> str:
    """The URL of a database that is made for a new workspace."""
    return _databases[0].new_database() if _databases else "sqlite:///eventlake.db"


def new_bucket(server: S3Server | AzureServer) -> str:
    """Or a container, as Azure calls it."""
    name = f"lake-{uuid.uuid4().hex}"
    if isinstance(server, AzureServer):
        server.client.create_container(name)
    else:
        boto3.client("s3", endpoint_url=server.endpoint).create_bucket(Bucket=name)
    return name


def settings_for(server: S3Server | AzureServer, bucket: str) -> str:
    if isinstance(server, AzureServer):
        way_in = f'endpoint = "{server.endpoint}"\naccount_key = "{server.key}"\n'
        return f'[lake]\nroot = "{server.root(bucket)}/lake"\n[azure]\n{way_in}'
    return f'[lake]\nroot = "s3://{bucket}/lake"\n[s3]\nendpoint = "{server.endpoint}"\npath_style = true\n'


@functools.cache
def _paths_client(endpoint: str) -> cloudpathlib.S3Client:
    return cloudpathlib.S3Client(endpoint_url=endpoint, local_cache_dir=tempfile.mkdtemp())


@functools.cache
def _container_client(endpoint: str, key: str) -> cloudpathlib.AzureBlobClient:
    service = AzureServer(endpoint, key).client
    return cloudpathlib.AzureBlobClient(blob_service_client=service, local_cache_dir=tempfile.mkdtemp())


def settings_of_new_lake() -> str | None:
    """Of one in a bucket of its own, if all lakes shall be in buckets."""
    return settings_for(_servers[0], new_bucket(_servers[0])) if _servers else None


@functools.cache
def empty_database() -> bytes:
    """The file of a database without rows. To make its tables step by step takes longer than most tests do."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace.create(Path(folder) / "workspace")
        assert not workspace.connections.all()
        workspace.close()
        return (workspace.folder / DATABASE).read_bytes()


def with_database(folder: Path) -> None:
    """Let a new workspace begin with a database, if it has one of its own."""
    private.make_file(folder / DATABASE)
    (folder / DATABASE).write_bytes(empty_database())


class Lake:
    """A workspace with one source, as a test uses it; `settings` are added to its settings file."""

    def __init__(
        self,
        folder: Path,
        runner: Runner,
        *,
        source_id: str = "src1",
        clock: Clock | None = None,
        settings: str | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        is_new = not (folder / CONFIG).exists()  # else it is a copy of another
        if is_new:
            Workspace.create(folder)
            settings = settings or settings_of_new_lake() or ""
            if settings or ON_POSTGRES:
                database = "" if settings.startswith("database =") else f'database = "{new_database()}"\n'
                (folder / CONFIG).write_text(f'workspace_id = "test"\n{database}{settings}')
            with_database(folder)
        self.workspace = Workspace.open(folder, clock or SetClock())
        self.runner = runner
        self.sizes = sizes or Sizes()
        if is_new:
            self.workspace.connections.add_source("web", source_id=source_id)
        self._files = 0

    @property
    def place(self) -> eventlake.workspace.Lake:
        """The lake itself, with its books."""
        return self.workspace.lake()

    @property
    def source(self) -> Source:
        return self.workspace.sources.get("web")

    @property
    def connection(self) -> Connection:
        return self.workspace.connections.get("web")

    @property
    def root(self) -> Path:
        """The lake's folder; of one in a bucket, something that can do as much of what folders can as tests need."""
        storage = self.place.storage
        if isinstance(storage, S3Storage):
            return cast("Path", cloudpathlib.S3Path(storage.root, client=_paths_client(storage.options.endpoint)))
        if isinstance(storage, AzureStorage):
            container, _, prefix = storage.root.removeprefix("abfss://").partition("/")
            key = storage.options.account_key
            client = _container_client(storage.options.endpoint, key.get_secret_value() if key else "")
            return cast("Path", client.CloudPath(f"az://{container.partition('@')[0]}/{prefix}"))
        return Path(storage.root)

    def put(self, *lines: bytes | dict[str, Any], name: str | None = None, day: str = "2026-11-15") -> Path:
        """Put a gzip file with these lines into the raw archive."""
        text = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
        return self.put_bytes(gzip.compress(text, mtime=0), name=name, day=day)

    def put_bytes(self, content: bytes, *, name: str | None = None, day: str = "2026-11-15") -> Path:
        """Put a file with exactly this content into the raw archive."""
        self._files += 1
        instant = instants.parse(f"{day}T00:00:00Z")
        assert instant
        path = archive.path(self.source.id, instant.micros, name or f"{self._files}.gz")
        self.workspace.archive.write(path, content)
        return self.root / path

    def sync(self) -> list[dict[str, Any]]:
        return self.run(jobs.sync(self.connection))

    def sync_of(self, *lines: bytes | dict[str, Any]) -> list[dict[str, Any]]:
        self.put(*lines)
        return self.sync()

    def run(self, job: Job) -> list[dict[str, Any]]:
        return run(self.workspace, job, self.runner, sizes=self.sizes)

    def query(self, sql: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = query(self.place, sql).to_pylist()
        return rows

    def rows(self, table: str, *, run: str = "") -> list[dict[str, Any]]:
        """The rows of a table, or only those that one run added, in order of their message ids."""
        if not run:
            message_column = self.connection.dialect.columns(table).message_column
            return self.query(f'select * from web."{table}" order by {message_column}, received_at')
        files = [f.path for f in self.place.ledger.data_files(self.source.id, table) if f.run_id == run]
        read = [pq.read_table(self.root / path, partitioning=None) for path in files]
        rows: list[dict[str, Any]] = pa.concat_tables(read, promote_options="default").to_pylist() if read else []
        return rows

    def all_rows(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of every table, in an order that depends on them only. By one query: to begin one takes long."""
        tables = self.tables()
        if not tables:
            return {}
        of_each = (f'(select list("a row") from web."{table}" "a row") as "{table}"' for table in tables)
        (found,) = self.query(f"select {', '.join(of_each)}")  # no column is called so
        return {
            table: sorted(found[table] or [], key=lambda row: json.dumps(row, default=str, sort_keys=True))
            for table in tables
        }

    def rows_of_discards(self) -> list[dict[str, Any]]:
        """Values that a cast changed or refused, in a lake of RudderStack's."""
        if "rudder_discards" not in self.tables():
            return []
        return self.query("select * from web.rudder_discards order by row_id, table_name, column_name")

    def row(self, table: str) -> dict[str, Any]:
        (only,) = self.rows(table)
        return only

    def rescued(self, table: str) -> dict[str, Any]:
        """What was rescued of a table's only row: pointer → value and reason."""
        text = self.row(table).get("_rescued_data")
        entries: dict[str, Any] = json.loads(text) if text else {}
        return entries

    def types(self, table: str) -> dict[str, str]:
        found = next(t for t in self.place.catalog.tables() if t.name == table)
        return {column.name: column.type.value for column in found.schema.columns}

    def tables(self) -> list[str]:
        return [table.name for table in self.place.catalog.tables()]

    def staged(self) -> list[str]:
        """What runs left in the staging folder. A bucket has no folders, though the server may show empty ones."""
        folder = self.connection.dialect.folders.stage
        if isinstance(self.place.storage, ObjectStorage):
            return [file.path for file in self.place.storage.files(folder)]
        return [path.name for path in (self.root / folder).glob("*")]

    def data_files(self) -> list[str]:
        """All files below segment-data/data, by path."""
        folder = self.root / "segment-data" / "data"
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())

    def parquet(self, table: str) -> pa.Table:
        folder = self.root / "segment-data" / "data" / self.source.id / f"segment_type={table}"
        return pa.concat_tables(
            [pq.read_table(file, partitioning=None) for file in sorted(folder.rglob("*.parquet"))],
            promote_options="default",
        )


def track(event: str = "Clicked", message_id: str | None = "m1", **fields: Any) -> dict[str, Any]:
    """A track call as it lies in the archive; `properties` and any other field may be given."""
    whole = {
        "type": "track",
        "event": event,
        "messageId": message_id,
        "anonymousId": "a1",
        "receivedAt": RECEIVED,
        **fields,
    }
    return {key: value for key, value in whole.items() if value is not None}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, aws_user: AwsUser) -> Iterator[SparkRunner]:
    """One Spark for all tests."""
    runner = SparkRunner("local[2]", {}, tmp_path_factory.mktemp("spark") / "spark.log")
    yield runner
    runner.close()


@pytest.fixture(scope="session")
def aws_user() -> Iterator[AwsUser]:
    """A user that the AWS library finds in the environment, as in real life: here and in the workers of Spark."""
    user = AwsUser("tester", "not-a-secret")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", user.key)
        patch.setenv("AWS_SECRET_ACCESS_KEY", user.secret)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield user


@pytest.fixture(scope="session")
def aws(aws_user: AwsUser) -> Iterator[Aws]:
    """One AWS account for all tests, which the AWS library finds for everything but S3."""
    with aws_account() as account, pytest.MonkeyPatch.context() as patch:
        for service in ("GLUE", "STS", "IAM", "EMR", "EMR_SERVERLESS"):
            patch.setenv(f"AWS_ENDPOINT_URL_{service}", account.endpoint)
        yield account


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory, aws_user: AwsUser) -> Iterator[S3Server]:
    """One S3 server for all tests."""
    with s3_server(tmp_path_factory.mktemp("s3"), aws_user) as server:
        yield server


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """One storage account of Azure for all tests."""
    with azure_server(tmp_path_factory.mktemp("azure")) as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def lakes_in_buckets(request: pytest.FixtureRequest) -> None:
    """With EVENTLAKE_TEST_LAKE=s3 or azure every lake of the tests is in a bucket or container of its own."""
    if ELSEWHERE:
        _servers.append(request.getfixturevalue(ELSEWHERE))


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests."""
    with postgres_server(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session", autouse=True)
def databases_on_a_server(request: pytest.FixtureRequest) -> None:
    """With EVENTLAKE_TEST_DATABASE=postgres every workspace of the tests has a database of its own there."""
    if ON_POSTGRES:
        _databases.append(request.getfixturevalue("postgres"))


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return new_bucket(s3)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def lake(tmp_path: Path, request: pytest.FixtureRequest, clock: SetClock) -> Lake:
    """A lake on Spark; with EVENTLAKE_TEST_RUNNER=process without it, for tests that run hundreds of times."""
    without_spark = os.environ.get("EVENTLAKE_TEST_RUNNER") == "process"
    runner = InProcess() if without_spark else request.getfixturevalue("spark")
    return Lake(tmp_path / "workspace", runner, clock=clock)
