"""The Java process behind a Spark of this machine: how it is started, and whether it has ended.

PySpark hands all settings to it as words of its command, which every user of the machine can read. Here they are in a
file that only its owner may read, and that is gone when Java is up.
"""

import logging
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from eventlake.storage import private

_LOWEST = 19
_MOMENT = 5.0  # seconds that a process may take to end after its connections broke


def launch(conf: Mapping[str, str], log: Path | None, *, gives_way: bool = False) -> Any:
    """Start Java with these settings; returns what PySpark calls its gateway.

    If it `gives_way`, it and its workers leave the cores to whatever else wants them; this process goes on as it was.

    What it and its workers say goes to the log, if there is one: not between the tables of a command, nor into whatever
    somebody's program writes.
    """
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415 - half a second that most commands can do without

    logging.getLogger().addFilter(_without_py4j)
    if log is not None:
        private.make_file(log)
    with tempfile.TemporaryDirectory() as folder, (log or Path(os.devnull)).open("ab") as sink:
        file = Path(folder, "spark.properties")
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as properties:
            properties.write(_defaults())
            properties.writelines(f"\n{_escaped(key)}={_escaped(value)}" for key, value in conf.items())
        words = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
        # What a thread starts has its priority, and may never be given a higher one: so a thread that ends.
        with (
            _variable("PYSPARK_SUBMIT_ARGS", f"--properties-file {shlex.quote(str(file))} {words}"),
            ThreadPoolExecutor(1, initializer=_give_way if gives_way else None) as thread,
        ):
            return thread.submit(launch_gateway, popen_kwargs={"stderr": sink}).result()


def _give_way() -> None:
    """Lower the priority of this thread, where threads have their own.

    Not to SCHED_IDLE: on a machine that has too much to do for minutes, a run would not get on at all.
    """
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)


def _without_py4j(record: logging.LogRecord) -> bool:
    """Py4J logs a stack, as root, of every error that it raises as well. Whoever gets the error tells it."""
    return Path(record.pathname).parent.name != "py4j"


def _defaults() -> str:
    """What spark-submit would read if it were given no file."""
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415

    folder = os.environ.get("SPARK_CONF_DIR") or Path(_find_spark_home(), "conf")
    file = Path(folder, "spark-defaults.conf")
    return file.read_text() if file.is_file() else ""


def _escaped(text: str) -> str:
    r"""A text as Java's Properties read it back, whatever it holds.

    >>> _escaped("spark.x"), _escaped("a = \\")
    ('spark\\u002ex', 'a\\u0020\\u003d\\u0020\\u005c')
    """
    content = text.encode("utf-16-be", "surrogatepass")
    units = (int.from_bytes(content[at : at + 2], "big") for at in range(0, len(content), 2))
    return "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else f"\\u{unit:04x}" for unit in units)


@contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def how_it_ended(*, wait: bool = False) -> str | None:
    """What became of the Java process that PySpark talks to; None if it runs, or is not ours to know.

    `wait`: its connections broke, so it may be about to end.
    """
    process = _process()
    if process is None:  # none was started, or spark-submit started this process
        return None
    try:
        code: int | None = process.wait(_MOMENT) if wait else process.poll()
    except subprocess.TimeoutExpired:
        return None
    if code is None:
        return None
    return f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"


def _process() -> Any:
    from pyspark import SparkContext  # noqa: PLC0415

    return getattr(SparkContext._gateway, "proc", None)


def stop(context: Any) -> None:
    """Stop a Spark, whether its Java process still runs or not."""
    # The thread that takes counts from Java only looks every second whether it shall end. Nobody need wait for it.
    server, context._accumulatorServer = context._accumulatorServer, None
    if server is not None:
        threading.Thread(target=server.shutdown, daemon=True).start()
    with warnings.catch_warnings(), suppress(OSError):
        warnings.simplefilter("ignore", RuntimeWarning)  # that Java is gone
        context.stop()
    forget_if_ended()


def quiet(context: Any) -> None:
    """Let the thread that takes counts from Java not print a stack when Java ends: there are others who notice."""
    server = context._accumulatorServer
    tell = server.handle_error

    def tell_if_java_runs(*request: Any) -> None:
        if how_it_ended(wait=True) is None:
            tell(*request)

    server.handle_error = tell_if_java_runs


def forget_if_ended() -> None:
    """Let PySpark start another Java process if the one that it knows has ended; by itself it never does."""
    from pyspark import SparkContext  # noqa: PLC0415

    if how_it_ended() is None:
        return
    context = SparkContext._active_spark_context
    if context is not None:
        context._jsc = None  # nobody is there to be told
        context.stop()
    with suppress(OSError):  # what was on its way to Java, nobody reads any more
        _process().stdin.close()
    SparkContext._gateway = SparkContext._jvm = None
