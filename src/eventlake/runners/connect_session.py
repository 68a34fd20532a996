"""Sessions of a Connect server: opened, given our code, and looked at before any work is done there."""

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import SecretStr

from eventlake.azure.vault import revealed
from eventlake.errors import InvalidSettingsError, SetupError, VersionMismatchError
from eventlake.runners.connect_errors import is_out_of_reach, lacking
from eventlake.runners.entry import ENVIRONMENT
from eventlake.runners.package import Target, keep, pack_code

OLDEST = (4, 0)  # version of PySpark that tells how far a step is
_ATTEMPTS = 4  # to reach the server, within some five seconds
_MOST_PARTITIONS = 100_000  # of which each has a row
_CONF = {
    "spark.connect.progress.reportInterval": "500ms",
    # A task says nothing until it is done, however long that takes; a step in which none ends is given up from here.
    "spark.sql.execution.pyspark.udf.idleTimeoutSeconds": "0",
}


class Server(NamedTuple):
    """A Connect server, and how it is used. What is secret of it is shown to nobody."""

    url: str
    token: SecretStr | None = None
    conf: Mapping[str, str] = {}
    packed: Target | None = None  # what its nodes are, if libraries are sent to them
    folder: Path = Path()  # where packages are kept


class Session(NamedTuple):
    """A session in which steps can be run."""

    spark: Any
    version: str  # of Spark there
    parallelism: int
    library: str | None  # the folder of our code there, below that of a worker; None if its interpreter knows it

    def is_alive(self) -> bool:
        """Whether the server still has it. Raises what keeps that from being known."""
        try:
            self.spark.client.get_configs("spark.sql.session.timeZone")
        except Exception as error:
            if "INVALID_HANDLE" in str(error) or self.spark.is_stopped:
                return False
            raise
        return True


def is_of_connect(session: Any) -> bool:
    """Whether a SparkSession is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


class Opened:
    """The way to a session of our own."""

    def __init__(self, server: Server, needed: Sequence[str]) -> None:
        self.name = f"the Connect server {server.url}"
        self._server = server
        self._needed = needed  # what its workers must be able to import

    def open(self) -> Session:
        spark = _connected(self._server)
        try:
            check_version(str(spark.version))
            for key, value in _CONF.items():
                with suppress(InvalidSettingsError):  # not every server knows all of them
                    _set(spark, key, value)
            for key, value in self._server.conf.items():
                _set(spark, key, value)
            return _ready(spark, self._needed, self._server)
        except BaseException as error:
            self._end(spark, is_lost=isinstance(error, Exception) and is_out_of_reach(error))
            raise

    def close(self, session: Session, *, is_lost: bool = False) -> None:
        self._end(session.spark, is_lost=is_lost)

    @staticmethod
    def _end(spark: Any, *, is_lost: bool) -> None:
        if is_lost:
            spark.client.close()
        else:
            spark.stop()


class Given:
    """The way to a session that somebody else has opened, and closes. Our code is added to it; nothing is set."""

    name = "the Connect server of the session"

    def __init__(self, spark: Any, needed: Sequence[str]) -> None:
        self._spark = spark
        self._needed = needed

    def open(self) -> Session:
        check_version(str(self._spark.version))
        return _ready(self._spark, self._needed, None)

    def close(self, session: Session, *, is_lost: bool = False) -> None:
        """Leave it to whoever has opened it."""


def _ready(spark: Any, needed: Sequence[str], server: Server | None) -> Session:
    library = _sent(spark, server)
    looks = _looked(spark, library, needed)
    return Session(spark, str(spark.version), len(looks), library)


def _connected(server: Server) -> Any:
    try:
        from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415 - takes a second
        from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415
    except ImportError as error:  # of Spark's own kind, which says what is missing
        told = str(error).strip().splitlines()[0]
        raise SetupError(
            f"Spark Connect cannot be used: {told}", fix="pip install 'eventlake[connect]' 'pyspark>=4'"
        ) from error
    from eventlake.runners.connect_retries import policy  # noqa: PLC0415

    way = DefaultChannelBuilder(server.url)
    if server.token:
        way.set("token", revealed(server.token))
    way.set("user_agent", "eventlake")
    spark = SparkSession(way)  # none that others of this process would get
    spark.client.set_retry_policies([policy(_ATTEMPTS)])
    return spark


def _set(spark: Any, key: str, value: str) -> None:
    from pyspark.errors import AnalysisException, IllegalArgumentException  # noqa: PLC0415

    try:
        spark.conf.set(key, value)
    except (AnalysisException, IllegalArgumentException) as error:
        raise InvalidSettingsError(
            f"conf: the Connect server does not take this {key} from a session ({error.getCondition()})",
            fix="correct it; or set it where the server is started, and remove it from the runner's conf",
        ) from error


def check_version(there: str) -> None:
    """Refuse a server of an older line than the client: what it does not understand is not foreseen by anybody."""
    import pyspark  # noqa: PLC0415

    here = pyspark.__version__
    if _line(here) < OLDEST:
        raise VersionMismatchError(
            f"Spark Connect needs PySpark {_text(OLDEST)} or newer, and this is {here}", fix="pip install 'pyspark>=4'"
        )
    if _line(there) < _line(here):
        raise VersionMismatchError(
            f"the Connect server runs Spark {there}, which is older than PySpark {here} here",
            fix=f"pip install 'pyspark=={_text(_line(there))}.*' here, or upgrade the server"
            if _line(there) >= OLDEST
            else "upgrade the server",
        )


def differs(there: str) -> bool:
    """Whether a server is of another line than the client."""
    import pyspark  # noqa: PLC0415

    return _line(there) != _line(pyspark.__version__)


def _line(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _text(line: tuple[int, int]) -> str:
    return f"{line[0]}.{line[1]}"


def _sent(spark: Any, server: Server | None) -> str | None:
    """Send our code, by itself or with all libraries; what to put before the worker's path."""
    if server and server.packed:
        package = keep(server.packed, server.folder)
        spark.addArtifacts(f"{package}#{ENVIRONMENT}", archive=True)
        spark.conf.set("spark.sql.execution.pyspark.python", f"{ENVIRONMENT}/bin/python")
        return None
    with tempfile.TemporaryDirectory() as folder:
        package = pack_code(Path(folder))
        name = package.name.removesuffix(".tar.gz")
        spark.addArtifacts(f"{package}#{name}", archive=True)
    return f"{name}/lib"


class _Look(NamedTuple):
    """What a worker tells of itself."""

    python: str
    missing: Sequence[str]


def _looked(spark: Any, library: str | None, needed: Sequence[str]) -> list[_Look]:
    """Let as many tasks as run at once look whether their workers have what is needed."""
    rows = spark.range(0, _MOST_PARTITIONS).mapInArrow(_looking(library, list(needed)), "told string").collect()
    looks = [_Look(**json.loads(row.told)) for row in rows]
    missing = sorted({name for look in looks for name in look.missing})
    if missing:
        raise lacking(missing, looks[0].python)
    return looks


Batches = Iterable[Any]


def _looking(library: str | None, needed: list[str]) -> Callable[[Batches], Iterator[Any]]:
    """Made here, so that it is sent whole: nothing of ours can be imported before it has run."""

    def look(batches: Batches) -> Iterator[Any]:
        import importlib  # noqa: PLC0415
        import json  # noqa: PLC0415
        import os  # noqa: PLC0415
        import sys  # noqa: PLC0415

        import pyarrow  # noqa: PLC0415

        for _ in batches:
            pass
        if library is not None:
            sys.path.insert(0, os.path.abspath(library))  # noqa: PTH100
        missing = []
        for name in needed:
            try:
                importlib.import_module(name)
            except ImportError:
                missing.append(name)
        told = json.dumps({"python": sys.executable, "missing": missing})
        yield pyarrow.RecordBatch.from_pydict({"told": [told]})

    return look


def working(library: str | None, told: bytes) -> Callable[[Batches], Iterator[Any]]:
    """What a worker does for a step; sent whole, like `_looking`."""

    def work(batches: Batches) -> Iterator[Any]:
        import importlib  # noqa: PLC0415
        import os  # noqa: PLC0415
        import sys  # noqa: PLC0415

        path = os.path.abspath(library) if library is not None else None  # noqa: PTH100
        if path is not None and path not in sys.path:
            sys.path.insert(0, path)
        yield from importlib.import_module("eventlake.runners.connect_worker").work(told, batches)

    return work
