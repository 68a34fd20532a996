"""A real Hive metastore on a real MariaDB. The metastore is in Spark's own jars."""

import contextlib
import fcntl
import getpass
import os
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import pytest

from eventlake.runners.java import java_home
from needs import not_there
from servers import answers, free_ports, server, wait_for

if TYPE_CHECKING:
    from hive_engine import Hive

PACKAGES = ["mariadb-server-core", "mariadb-client", "libmariadb-java"]
DRIVER = Path("/usr/share/java/mariadb-java-client.jar")
USER = "hive"
BUCKET = "lake-with-a-metastore"  # which the metastore knows with s3a, and not with s3; so is a container with abfss
# Java 17 opens none of these by itself.
OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util"),
    *("java.util.concurrent", "java.util.concurrent.atomic", "sun.nio.ch", "sun.nio.cs"),
    *("sun.security.action", "sun.util.calendar"),
)
# What a metastore looks at when a database is dropped. The tool that makes the other tables does not know it.
OF_TRANSACTIONS = {
    "TXN_COMPONENTS": "TC",
    "COMPLETED_TXN_COMPONENTS": "CTC",
    "COMPACTION_QUEUE": "CQ",
    "COMPLETED_COMPACTIONS": "CC",
}


class MariaDb:
    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    @property
    def url(self) -> str:
        """For Java. The library that keeps a metastore's objects knows MySQL, and not that MariaDB is like it."""
        return f"jdbc:mariadb://127.0.0.1:{self.port}/metastore?useMysqlMetadata=true"

    def sql(self, statement: str) -> list[list[str]]:
        words = ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(self.port), "-u", "root", "-N", "-B"]
        done = subprocess.run([*words, "-e", statement], capture_output=True, text=True, check=True)
        return [line.split("\t") for line in done.stdout.splitlines()]


class HiveServer:
    """A metastore that can be stopped and started again, at the same address."""

    def __init__(self, folder: Path, database: MariaDb, port: int) -> None:
        self.folder = folder
        self.database = database
        self.port = port
        self._running = contextlib.ExitStack()

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"

    def start(self) -> None:
        (self.folder / "hive-site.xml").write_text(_site(self.database, self.folder))
        opened = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED]
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-Djava.security.manager=allow", *opened]
        options += [f"-Dhive.log.dir={self.folder}", "-Dhive.log.file=metastore.log"]
        words = _java(f"{self.folder}:{DRIVER}:{_jars()}/*", *options)
        words += ["org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(self.port)]
        process = self._running.enter_context(server(self.folder / "out.log", *words, stop=signal.SIGKILL))
        wait_for("Hive metastore", self.folder, [process], lambda: answers(self.port))

    def stop(self) -> None:
        self._running.close()


def _jars() -> Path:
    found = find_spec("pyspark")
    assert found
    assert found.origin
    return Path(found.origin).parent / "jars"


def _java(path: str, *options: str) -> list[str]:
    return [str(java_home() / "bin" / "java"), *options, "-cp", path]


def _site(database: MariaDb, folder: Path) -> str:
    settings = {
        "javax.jdo.option.ConnectionURL": database.url,
        "javax.jdo.option.ConnectionDriverName": "org.mariadb.jdbc.Driver",
        "javax.jdo.option.ConnectionUserName": USER,
        "javax.jdo.option.ConnectionPassword": USER,
        "datanucleus.connectionPoolingType": "HikariCP",  # the default is not in Spark's jars, nor is what logs at once
        "datanucleus.schema.autoCreateAll": "false",
        "hive.async.log.enabled": "false",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "hive.metastore.server.min.threads": "8",
        "hive.hmshandler.retry.interval": "100ms",  # what its database refuses is tried ten times, two seconds apart
        **_mapped("s3a", BUCKET, folder / "s3a"),
        **_mapped("abfss", f"{BUCKET}@devstoreaccount1.dfs.core.windows.net", folder / "abfss"),
    }
    entries = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items()
    )
    return f"<configuration>{''.join(entries)}</configuration>"


def _mapped(scheme: str, name: str, folder: Path) -> dict[str, str]:
    """Lets Hadoop see a folder where somebody speaks of a bucket or container. It has no libraries for them here."""
    folder.mkdir(exist_ok=True)
    return {
        f"fs.{scheme}.impl": "org.apache.hadoop.fs.viewfs.ViewFileSystemOverloadScheme",
        f"fs.viewfs.mounttable.{name}.linkFallback": f"file://{folder}",
    }


def _install() -> None:
    """MariaDB, if this is a machine of Debian's kind and we may; the packages start no service."""
    is_there = shutil.which("mariadbd") and shutil.which("mariadb-install-db") and shutil.which("mariadb")
    if not (is_there and DRIVER.exists()) and os.geteuid() == 0 and shutil.which("apt-get"):
        for words in (["update"], ["install", "-y", "--no-install-recommends", *PACKAGES]):
            subprocess.run(["apt-get", *words], capture_output=True, check=False)
    for program in ("mariadbd", "mariadb-install-db", "mariadb", "my_print_defaults"):
        if not shutil.which(program):
            not_there("MariaDB", f"there is no {program}")
    if not DRIVER.exists():
        not_there("MariaDB", f"there is no {DRIVER}")


@contextlib.contextmanager
def _maria_db(folder: Path, *, durable: bool = False) -> Iterator[MariaDb]:
    """A server on a folder of data; nobody pulls the plug in a test."""
    (port,) = free_ports(1)
    quick = [f"--innodb-flush-log-at-trx-commit={int(durable)}", "--innodb-log-file-size=16M", "--skip-name-resolve"]
    place = [f"--datadir={folder / 'data'}", f"--port={port}", f"--socket={folder / 'socket'}"]
    words = ["mariadbd", "--no-defaults", f"--user={getpass.getuser()}", "--bind-address=127.0.0.1", *place, *quick]
    with server(folder / "maria.log", *words) as process:
        wait_for("MariaDB", folder, [process], lambda: answers(port))
        yield MariaDb(folder, port)


def _make_data(folder: Path) -> None:
    """An empty metastore's data."""
    made = subprocess.run(
        [
            *("mariadb-install-db", "--no-defaults", f"--datadir={folder / 'data'}", f"--user={getpass.getuser()}"),
            *("--auth-root-authentication-method=normal", "--skip-test-db"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        not_there("MariaDB", made.stdout[-500:] + made.stderr[-500:])
    with zipfile.ZipFile(next(_jars().glob("hive-metastore-*.jar"))) as jar:
        jar.extract("package.jdo", folder)
    with _maria_db(folder) as database:
        database.sql(
            f"create database metastore; create user {USER}@'%' identified by '{USER}'; grant all on *.* to {USER}@'%'"
        )
        properties = {
            "javax.jdo.option.ConnectionURL": database.url,
            "javax.jdo.option.ConnectionDriverName": "org.mariadb.jdbc.Driver",
            "javax.jdo.option.ConnectionUserName": USER,
            "javax.jdo.option.ConnectionPassword": USER,
            "javax.jdo.PersistenceManagerFactoryClass": "org.datanucleus.api.jdo.JDOPersistenceManagerFactory",
            "datanucleus.connectionPoolingType": "None",
            "datanucleus.identifierFactory": "datanucleus1",  # as a metastore names its columns
            "datanucleus.rdbms.useLegacyNativeValueStrategy": "true",
        }
        (folder / "jdo.properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        tool = [*_java(f"{DRIVER}:{_jars()}/*"), "org.datanucleus.store.schema.SchemaTool", "-create", "-api", "JDO"]
        tool += ["-props", str(folder / "jdo.properties"), str(folder / "package.jdo")]
        done = subprocess.run(tool, capture_output=True, text=True, check=False)
        if done.returncode:
            not_there("Hive metastore", done.stdout[-500:] + done.stderr[-500:])
        for table, prefix in OF_TRANSACTIONS.items():
            columns = ", ".join(f"{prefix}_{name} varchar(767)" for name in ("DATABASE", "TABLE", "PARTITION"))
            database.sql(f"create table metastore.{table} ({columns})")


def _data(folder: Path) -> None:
    """The same, from the last time that it was made."""
    kept = Path.home() / ".cache" / "eventlake-tests" / f"metastore-{version('pyspark')}"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_name(f"{kept.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two processes may want it at once
        if not (kept / ".done").exists():
            shutil.rmtree(kept, ignore_errors=True)
            kept.mkdir()
            _make_data(kept)
            (kept / ".done").touch()
    shutil.copytree(kept / "data", folder / "data")


@contextlib.contextmanager
def hive_server(folder: Path, *, durable: bool = False) -> Iterator[HiveServer]:
    """A metastore with nothing in it."""
    _install()
    for name in ("maria", "hive"):
        (folder / name).mkdir()
    _data(folder / "maria")
    with _maria_db(folder / "maria", durable=durable) as database:
        (port,) = free_ports(1)
        found = HiveServer(folder / "hive", database, port)
        try:
            found.start()
            yield found
        finally:
            found.stop()


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveServer]:
    """One Hive metastore for all tests."""
    with hive_server(tmp_path_factory.mktemp("metastore")) as found:
        yield found


@pytest.fixture
def engine(metastore: HiveServer) -> "Hive":
    from hive_engine import Hive  # not everywhere where tests run there is a client

    return Hive(metastore)
