"""Who may run a source: one at a time, known to all machines that share the database."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from conftest import InProcess, Lake, track
from eventlake.audit.verify import verify
from eventlake.control import database
from eventlake.control.leases import Holder, Lane, Leases
from eventlake.errors import BusyError, LeaseLostError, TransientError
from eventlake.sync import jobs
from eventlake.sync.run import run
from eventlake.workspace import Workspace


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> str:
    return "sqlite:///eventlake.db" if request.param == "sqlite" else request.getfixturevalue("postgres").new_database()


@pytest.fixture
def engine(address: str, tmp_path: Path) -> Iterator[sa.Engine]:
    engine = database.connect(address, tmp_path)
    yield engine
    engine.dispose()


def taken_over(engine: sa.Engine, name: str) -> None:
    """As if the holder had frozen for longer than its lease, and another machine had taken its place."""
    with engine.begin() as connection:
        here = database.leases.c.name == f"{name}/default"
        connection.execute(database.leases.update().where(here).values(expires_at=0))
    with Leases(engine, "default").held(name):
        pass


def test_one_at_a_time_and_the_others_are_told_who(engine: sa.Engine) -> None:
    with Leases(engine, "default").held("web") as first:
        with pytest.raises(BusyError) as busy:
            Leases(engine, "default").held("web").__enter__()
        holder = f"process {os.getpid()} on {socket.gethostname()}, since 20"
        assert busy.value.problem.startswith(f"another run of this connection is going on: {holder}")
        assert busy.value.fix == "wait until it ends, or give `--wait SECONDS`; see `eventlake runs`"
        with engine.connect() as connection:
            row = connection.execute(sa.select(database.leases)).one()
        assert row.expires_at - row.since == 60_000_000
        with Leases(engine, "default").held("app") as other:
            other.confirm()
        first.confirm()
    with Leases(engine, "default").held("web") as second:
        assert second.fence > first.fence
        second.confirm()
        with pytest.raises(LeaseLostError) as lost:
            first.confirm()
        assert lost.value.problem == (
            "this run stood still for so long that another took its place; it changed nothing since"
        )
        assert lost.value.fix == "see `eventlake runs` for what the other did, then run it again"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has name spaces of processes")
def test_processes_of_two_containers_with_one_name_are_told_apart() -> None:
    host, space, boot = Holder.myself().host.split()
    assert (host, space) == (socket.gethostname(), str(Path("/proc/self/ns/pid").readlink()))
    assert boot == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert Holder.myself().pid == os.getpid()


@pytest.mark.parametrize("other", ["another", ""])
def test_of_two_machines_with_one_name_none_takes_the_processes_of_the_other_for_its_own(other: str) -> None:
    """The first name space of a system has the same number everywhere, and machines are cloned with their names."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    here = Holder.myself().host
    assert Holder(here, ended.pid).is_gone
    assert not Holder(f"{here.rpartition(' ')[0]} {other}".strip(), ended.pid).is_gone


@pytest.mark.parametrize("before", ["nobody", "another"])
def test_of_many_who_ask_at_once_one_gets_it(engine: sa.Engine, before: str) -> None:
    if before == "another":
        with Leases(engine, "default").held("web"), Leases(engine, "default").held("app"):
            pass
    together = threading.Barrier(8)

    def ask(_: int) -> bool:
        together.wait()
        try:
            with Leases(engine, "default").held("web"):
                together.wait()  # until all have asked
                return True
        except BusyError:
            together.wait()
            return False

    with ThreadPoolExecutor(8) as threads:
        assert sorted(threads.map(ask, range(8))) == [*7 * [False], True]


def test_a_lease_is_renewed_as_long_as_its_holder_lives(engine: sa.Engine) -> None:
    with Leases(engine, "default", seconds=2).held("web") as lease:
        deadline = time.monotonic() + 2.5
        while time.monotonic() < deadline:
            with pytest.raises(BusyError):
                Leases(engine, "default").held("web").__enter__()
        lease.confirm()


def test_the_lease_of_another_machine_ends_by_itself(engine: sa.Engine) -> None:
    now = time.time_ns() // 1000
    row = {"name": "web/default", "fence": 7, "host": "elsewhere", "pid": 1, "since": now, "expires_at": now + 10**9}
    with engine.begin() as connection:
        connection.execute(database.leases.insert().values(row))
    with pytest.raises(BusyError, match="process 1 on elsewhere"):
        Leases(engine, "default").held("web").__enter__()
    with engine.begin() as connection:
        connection.execute(database.leases.update().values(expires_at=now - 10**9))
    with Leases(engine, "default").held("web") as lease:
        assert lease.fence == 8


def test_who_could_not_give_a_lease_back_may_have_it_again_and_others_wait(engine: sa.Engine) -> None:
    leases = Leases(engine, "default")

    def away(*_: Any) -> None:
        raise TransientError("the workspace database does not answer", fix="run it again")

    with leases.held("web"):
        sa.event.listen(engine, "before_cursor_execute", away)
    sa.event.remove(engine, "before_cursor_execute", away)
    with pytest.raises(BusyError):
        Leases(engine, "default").held("web").__enter__()
    assert leases.other_holder("web", Lane.SYNC) is None
    with leases.held("web") as lease:
        assert lease.fence == 2
        with pytest.raises(BusyError):
            leases.held("web").__enter__()


def test_a_lease_that_is_renewed_at_the_last_moment_is_not_taken(engine: sa.Engine) -> None:
    with Leases(engine, "default").held("web") as first:
        with engine.begin() as connection:
            connection.execute(database.leases.update().values(expires_at=1))

        moments = iter([first.confirm_in])

        def renewed(connection: sa.Connection, cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith("UPDATE"):
                for renew in moments:  # once
                    renew(connection)

        sa.event.listen(engine, "before_cursor_execute", renewed)
        with pytest.raises(BusyError):
            Leases(engine, "default").held("web").__enter__()
        first.confirm()


HOLD = """
import signal, sys, time
from pathlib import Path
from typing import Any
from eventlake.control import database
from eventlake.control.leases import Leases
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with Leases(database.connect(sys.argv[1], Path(sys.argv[2])), "default").held("web"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_process_of_this_machine_that_is_gone_holds_nothing(engine: sa.Engine, address: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLD, address, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match=f"process {process.pid} on"):
            Leases(engine, "default").held("web").__enter__()
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL  # to ask whether it lives did it no harm
        assert Holder.myself()._replace(pid=process.pid).is_gone
    with Leases(engine, "default").held("web") as lease:
        assert lease.fence == 2


# A run that froze


@pytest.fixture
def lake(address: str, tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "workspace", InProcess(), settings=f'database = "{address}"\n')
    lake.sync_of(track("A", "m0"))
    lake.put(track("A", "m1"), track("B", "m2"))
    return lake


class Frozen(InProcess):
    """Does its tasks, but freezes in one of the steps for longer than a lease lasts; meanwhile another machine runs."""

    def __init__(self, lake: Lake, step: str) -> None:
        super().__init__()
        self._lake = lake
        self._step = step

    def run(self, function, context, tasks, progress=None):  # type: ignore[no-untyped-def]
        results = super().run(function, context, tasks, progress)
        if function.__name__ == self._step:
            self._step = ""
            taken_over(self._lake.workspace.engine, self._lake.source.id)
            run(Workspace.open(self._lake.workspace.folder), jobs.sync(self._lake.connection), InProcess())
        return results


@pytest.mark.parametrize("step", ["stage", "dedupe", "publish"])
def test_a_run_that_froze_cannot_commit_any_more(lake: Lake, step: str) -> None:
    with pytest.raises(LeaseLostError, match="another took its place"):
        run(lake.workspace, jobs.sync(lake.connection), Frozen(lake, step))
    assert sorted(row["message_id"] for table in ("track_a", "track_b") for row in lake.rows(table)) == [
        "m0",
        "m1",
        "m2",
    ]
    assert [run.status for run in lake.place.runs.latest(3)] == ["finished", "failed", "finished"]
    assert len(list((lake.root / "segment-data" / "commits").rglob("*.json"))) == 2
    assert verify(lake.workspace, lake.connection, InProcess()) == []
    assert lake.sync()[0]["books"]["lines"] == 0
