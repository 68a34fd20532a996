"""The command line as people and scripts meet it: the real program, its screens, its JSON and its exit codes."""

import contextlib
import getpass
import gzip
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest
import typer.main
from typer.testing import CliRunner

from conftest import track
from eventlake.cli import lazy
from eventlake.cli.main import COMMANDS, app, main
from eventlake.control.leases import Lease
from eventlake.control.replays import PendingReplay
from eventlake.demo.events import Recipe, write_archive
from eventlake.events.instants import FIRST
from eventlake.workspace import CONFIG, Workspace
from needs import not_there

PROGRAM = Path(sys.executable).with_name("eventlake")
SCREEN = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TZ")
ESCAPES = "\x1b]0;owned\x07\x1b[31mred\x9b2J\r\x08\x7f\u202egnp.exe\u2066\u200f\u2028"


class Answer(NamedTuple):
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Standard output, which must hold nothing but JSON, one value per line."""
        return [json.loads(line) for line in self.out.splitlines()]


class Folder:
    """A folder in which commands are given."""

    def __init__(self, path: Path, columns: int | None = 200, through: Sequence[str] = ()) -> None:
        self.path = path
        self._columns = columns
        self._through = through  # a program that starts the program

    def run(self, *words: str, typed: str = "", **variables: str) -> Answer:
        """Start the program as a shell does."""
        done = subprocess.run(
            [*self._through, PROGRAM, *words],
            cwd=self.path,
            env=self._environment(variables),
            input=typed.encode(),
            capture_output=True,
            timeout=280,
            check=False,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    def run_here(self, *words: str) -> Answer:
        """Do the same in this process: for commands that are done sooner than Python has started anew."""
        out, err = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self._environment({}), clear=True),
            mock.patch.object(sys, "argv", ["eventlake", *words]),
            contextlib.chdir(self.path),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as end,
        ):
            main()
        assert isinstance(end.value.code, int)
        return Answer(end.value.code, out.getvalue(), err.getvalue())

    def _environment(self, variables: dict[str, str]) -> dict[str, str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("EVENTLAKE_") and k not in SCREEN}
        wide = {"COLUMNS": str(self._columns)} if self._columns else {}
        return {**clean, **wide, "EVENTLAKE_SPARK__MASTER": "local[2]", **variables}

    def __call__(self, *words: str, **variables: str) -> Answer:
        """Start the program; it must succeed."""
        return succeeded(self.run(*words, **variables))

    def ask(self, *words: str) -> Answer:
        return succeeded(self.run_here(*words))

    def query(self, sql: str) -> list[dict[str, Any]]:
        return self.ask("query", sql, "--json").lines

    def refused(self, *words: str) -> str:
        """Give a command that is wrong."""
        return failed(self.run_here(*words), 2)

    def copy(self, target: Path) -> "Folder":
        shutil.copytree(self.path, target)
        return Folder(target, self._columns)


def succeeded(answer: Answer) -> Answer:
    assert answer.code == 0, answer
    return answer


def failed(answer: Answer, code: int) -> str:
    """What a command said that failed: it must tell why and what to do, and print no data."""
    assert answer.code == code, answer
    assert "Traceback" not in answer.err
    assert re.search(r"^Error: \S.*^Fix:   \S", answer.err, re.MULTILINE | re.DOTALL), answer.err
    assert answer.out == ""
    return answer.err


def sale(message_id: str, **properties: Any) -> dict[str, Any]:
    return track("Ticket Sold", message_id, properties=properties)


def ndjson(*events: dict[str, Any] | bytes) -> bytes:
    return b"".join((e if isinstance(e, bytes) else json.dumps(e).encode()) + b"\n" for e in events)


class Loaded(NamedTuple):
    """A workspace after two syncs, and what the commands said on the way."""

    folder: Folder
    source: dict[str, Any]
    imports: list[dict[str, Any]]
    first: Answer  # with --json
    second: Answer  # for people


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    base = tmp_path_factory.mktemp("cli")
    Folder(base)("init", "lake")
    folder = Folder(base / "lake")
    source = folder("source", "add", "web", "--json").value
    orders = ndjson(
        sale("o1", revenue=10.5, quantity=1),
        sale("o2", revenue=7, quantity=2),
        sale("o1", revenue=10.5, quantity=1),
        f"not JSON {ESCAPES}".encode(),
    )
    (base / "orders.json.gz").write_bytes(gzip.compress(orders))
    (base / "again.gz").write_bytes((base / "orders.json.gz").read_bytes())
    (base / "evil.ndjson").write_bytes(ndjson(track(f"Evil {ESCAPES}", "e1", properties={"text": ESCAPES})))
    recipe = Recipe(events=300, hours=3, track_types=12, duplicate_share=0.05, broken_share=0.02)
    write_archive(recipe, base / "archive" / "2026-11-01", files=2)
    (base / "archive" / "_SUCCESS").write_bytes(b"")
    (base / "later.gz").write_bytes(gzip.compress(ndjson(sale("o3", revenue="n/a", coupon="SAVE"))))
    imports = [
        folder("import", "web", str(base / name), "--json").value
        for name in ("orders.json.gz", "evil.ndjson", "archive", "again.gz")
    ]
    first = folder("sync", "--json")
    folder("import", "web", str(base / "later.gz"))
    second = folder("sync", "web")
    return Loaded(folder, source, imports, first, second)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A workspace with one source, one raw file, and no sync yet."""
    base = tmp_path_factory.mktemp("small")
    Folder(base)("init", "lake")
    folder = Folder(base / "lake")
    folder("source", "add", "web", "--id", "src1")
    (base / "one.ndjson").write_bytes(ndjson(sale("o1", revenue=1)))
    folder("import", "web", str(base / "one.ndjson"))
    return folder


# Workspaces


def test_a_workspace_is_made_once_and_not_over_another(tmp_path: Path) -> None:
    here = Folder(tmp_path)
    made = here("init", "lake")
    assert made.out == ""
    assert "eventlake -C lake source add" in made.err
    settings = (tmp_path / "lake" / "eventlake.toml").read_text()
    assert "is a workspace already" in here.refused("init", "lake")
    assert (tmp_path / "lake" / "eventlake.toml").read_text() == settings


def test_messages_name_a_folder_as_it_is_called(tmp_path: Path) -> None:
    made = Folder(tmp_path)("init", "my[red]lake")
    assert (tmp_path / "my[red]lake" / "eventlake.toml").is_file()
    assert str(tmp_path / "my[red]lake") in made.err


@pytest.mark.parametrize("command", ["tables", "sync", "source list"])
def test_outside_a_workspace_a_command_says_how_to_get_one(tmp_path: Path, command: str) -> None:
    said = Folder(tmp_path).refused(*command.split())
    assert f"{tmp_path} is not a workspace" in said
    assert "eventlake init" in said
    assert not list(tmp_path.iterdir())


def test_a_setting_of_the_workspace_that_does_not_exist_is_named(small: Folder, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "lake")
    config = copy.path / "eventlake.toml"
    config.write_text(config.read_text().replace("root =", "rooot ="))
    assert "lake.rooot" in copy.refused("tables")


# Sources


def test_a_new_source_shows_its_write_key_once_and_keeps_no_copy(loaded: Loaded) -> None:
    assert loaded.source["slug"] == "web"
    assert re.fullmatch(r"[A-Za-z0-9]\S+", loaded.source["id"])
    key = loaded.source["write_key"]
    assert len(key) >= 32
    files = [file for file in loaded.folder.path.rglob("*") if file.is_file()]
    assert any(file.name == "eventlake.db" for file in files)
    assert not [file for file in files if key.encode() in file.read_bytes()]
    assert key not in loaded.folder.ask("source", "list", "--json").out


def test_a_slug_or_an_id_can_be_taken_only_once(small: Folder) -> None:
    assert "'web'" in small.refused("source", "add", "web")
    assert "'src1'" in small.refused("source", "add", "ios", "--id", "src1")
    assert len(small.ask("source", "list", "--json").value) == 1


@pytest.mark.parametrize("words", [["Web Shop"], ["../x"], [""], ["ios", "--id", "../x"], ["ios", "--id", "a/b"]])
def test_a_name_that_cannot_be_a_folder_is_refused(small: Folder, words: list[str]) -> None:
    assert repr(words[-1]) in small.refused("source", "add", *words)


def test_write_keys_can_be_added_and_taken_back(small: Folder, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "copy")
    added = copy.ask("source", "add-key", "web", "--json").value["write_key"]
    first, second = copy.ask("source", "keys", "web", "--json").value
    assert second["hash"] == hashlib.sha256(added.encode()).hexdigest()
    assert first["created_at"] <= second["created_at"]
    assert added not in copy.ask("source", "keys", "web").out
    assert "no key" in copy.refused("source", "revoke-key", "web", "no-such-key")
    assert second["hash"][:12] in copy.ask("source", "revoke-key", "web", second["hash"][:12]).err
    assert copy.ask("source", "keys", "web", "--json").value == [first]
    assert "Nothing was refused" in copy.ask("rejects").err


def test_no_write_key_looks_like_an_option(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path)
    workspace.connections.add_source("web")
    keys = {workspace.sources.add_key("web") for _ in range(100)}
    assert len(keys) == 100
    assert all(re.fullmatch("[A-Za-z0-9]{32}", key) for key in keys)


def test_settings_of_a_source_can_be_seen_and_changed(small: Folder, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "lake")
    changed = copy.ask("source", "set", "web", "lookback_days=unlimited", "table_prefix=shop", "--json").value
    (listed,) = copy.ask("source", "list", "--json").value
    assert listed == changed
    assert (listed["settings"]["lookback_days"], listed["settings"]["table_prefix"]) == (None, "shop")
    screen = copy.ask("source", "list").out
    assert re.search(r"web +src1 +yes +web +shop +day_hour +unlimited", screen)


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("date_partition=weekly", ["'weekly'", "day_hour", "year_month_day_hour", "year_month_day"]),
        ("lookback_days=0", ["'0'", "must be at least 1", "unlimited"]),
        ("table_naming=camel", ["'camel'", "prefixed", "plain"]),
        ("lookback_days", ["KEY=VALUE", "lookback_days=14"]),
        ("colour=red", ["'colour'", "database", "table_prefix", "date_partition", "lookback_days", "column_limit"]),
    ],
)
def test_a_setting_that_is_not_allowed_is_answered_with_what_is(
    small: Folder, assignment: str, told: list[str]
) -> None:
    said = small.refused("source", "set", "web", assignment)
    assert [word for word in told if word not in said] == []


def test_a_disabled_connection_is_not_synced_until_it_is_enabled(small: Folder, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "lake")
    copy.ask("connection", "disable", "web")
    assert copy.ask("connection", "list", "--json").value[0]["enabled"] is False
    assert "eventlake connection enable web" in copy.refused("sync", "web")
    assert "connection enable" in copy.refused("sync")
    copy.ask("connection", "enable", "web")
    assert copy.ask("connection", "list", "--json").value[0]["enabled"] is True


def test_a_source_that_is_switched_off_is_shown_so(small: Folder, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "lake")
    assert "its events are refused" in copy.ask("source", "disable", "web").err
    assert copy.ask("source", "list", "--json").value[0]["enabled"] is False
    copy.ask("source", "enable", "web")
    assert copy.ask("source", "list", "--json").value[0]["enabled"] is True


# Raw files


def test_gzip_and_plain_files_and_folders_are_imported_once(loaded: Loaded) -> None:
    gz, plain, archive, again = loaded.imports
    assert [(told["files"], len(told["added"])) for told in (gz, plain, archive, again)] == [
        (1, 1),
        (1, 1),
        (2, 2),
        (1, 0),
    ]
    for path in (*gz["added"], *plain["added"], *archive["added"]):
        assert path.startswith(f"segment-logs/{loaded.source['id']}/")
        gzip.decompress((loaded.folder.path / "lake" / path).read_bytes())


def test_importing_a_file_that_is_not_there_is_refused(small: Folder) -> None:
    assert "nowhere.gz" in small.refused("import", "web", "nowhere.gz")
    assert "'ios'" in small.refused("import", "ios", "nowhere.gz")


@pytest.mark.parametrize(
    "content",
    [
        b"id,name\n1,a\n",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b'{\n"type": "page",\n"messageId": "m1"\n}\n',
        gzip.compress(b"hello\n"),
    ],
)
def test_a_file_without_any_json_is_refused_before_anything_is_archived(
    small: Folder, tmp_path: Path, content: bytes
) -> None:
    copy = small.copy(tmp_path / "lake")
    before = sorted((copy.path / "lake").rglob("*"))
    (tmp_path / "a.ndjson").write_bytes(ndjson(sale("o2")))
    (tmp_path / "b").write_bytes(content)
    said = copy.refused("import", "web", str(tmp_path / "a.ndjson"), str(tmp_path / "b"))
    assert f"{tmp_path / 'b'} holds no JSON" in said
    assert "one JSON object per line" in said
    assert sorted((copy.path / "lake").rglob("*")) == before


@pytest.mark.parametrize("content", [b"", b"\n\n", b"bad\n" * 3000 + b"{}\n", b"\x1f\x8b\x08broken", b"[1]"])
def test_a_file_with_some_bad_lines_or_none_at_all_is_imported(small: Folder, tmp_path: Path, content: bytes) -> None:
    copy = small.copy(tmp_path / "lake")
    (tmp_path / "b").write_bytes(content)
    assert len(copy.ask("import", "web", str(tmp_path / "b"), "--json").value["added"]) == 1
    assert (
        "1 file added to the archive. Next"
        in small.copy(tmp_path / "other").ask("import", "web", str(tmp_path / "b")).err
    )
    again = copy.ask("import", "web", str(tmp_path / "b")).err
    assert "0 files added to the archive, 1 was there already" in again


# Syncs


def test_sync_prints_its_report_as_json_and_nothing_else(loaded: Loaded) -> None:
    head, *tables = loaded.first.lines
    assert (head["type"], head["status"]) == ("source", "finished")
    assert tables
    assert {table["type"] for table in tables} == {"event"}
    books = head["books"]
    rest = ("loaded", "duplicates", "suppressed", "blocked", "quarantined")
    assert books["lines"] == sum(books[word] for word in rest)
    assert books["duplicates"] > 1
    assert books["quarantined"] > 1
    assert books["loaded"] == sum(table["row_count"] for table in tables) == 303


def test_progress_and_talk_go_to_standard_error(loaded: Loaded) -> None:
    for sync in (loaded.first, loaded.second):
        assert [step for step in ("stage", "dedupe", "publish") if step not in sync.err] == []
        assert "━" not in sync.out


def test_a_report_for_people_shows_the_books(loaded: Loaded) -> None:
    assert "web: sync finished" in loaded.second.out
    assert re.search(r"1 lines? read = 1 rows? loaded \+ 0 duplicates \+ 0 quarantined", loaded.second.out)
    assert "_rescued_data" in loaded.second.out
    assert re.search(r"track_ticket_sold +█+ +1 ", loaded.second.out)


def test_syncing_an_unknown_source_is_refused_with_the_known_ones(loaded: Loaded) -> None:
    said = loaded.folder.refused("sync", "ios")
    assert "'ios'" in said
    assert "web" in said


def test_a_sync_of_nothing_is_done_and_says_so(loaded: Loaded, tmp_path: Path) -> None:
    copy = loaded.folder.copy(tmp_path / "lake")
    (head,) = copy.ask("sync", "--json").lines
    assert (head["status"], head["row_count"], head["notices"]) == ("finished", 0, ["No data found"])
    assert "No data found" in copy.ask("sync").out


@pytest.mark.parametrize("words", ["tables", "source add other", "sync nothing"])
def test_a_command_lets_go_of_the_database_when_it_is_done(small: Folder, tmp_path: Path, words: str) -> None:
    """What SQLite keeps beside an open database is gone, so the folder can be copied; also after an error."""
    copy = small.copy(tmp_path / "lake")
    copy.run_here(*words.split())
    assert sorted(file.name for file in copy.path.glob("eventlake.db*")) == ["eventlake.db"]


# Exit codes


def holding(folder: Folder, source_id: str) -> AbstractContextManager[Lease]:
    """Hold a source as a run does."""
    return Workspace.open(folder.path).lake().leases.held(source_id)


def test_a_source_that_another_run_holds_is_busy_until_it_is_waited_for(loaded: Loaded, tmp_path: Path) -> None:
    copy = loaded.folder.copy(tmp_path / "lake")
    runs = copy.ask("runs", "--json").value
    revenue = ("web.track_ticket_sold", "properties_revenue", "string")
    with holding(copy, loaded.source["id"]):
        for words in (("sync",), ("retype", *revenue), ("sync", "--json", "--wait", "0.3")):
            assert "another run of this connection" in failed(copy.run_here(*words), 4)
        assert "another run of this connection" in failed(copy.run_here("verify", "--wait", "0.3"), 4)
        assert copy.ask("runs", "--json").value == runs
    held = holding(copy, loaded.source["id"])
    held.__enter__()
    end = threading.Timer(1, held.__exit__, (None, None, None))
    end.start()
    waited = copy.ask("sync", "--wait", "120")
    end.join()
    assert "web: waiting for another run to end" in waited.err
    assert "No data found" in waited.out


def test_what_is_done_in_part_is_told_by_the_exit_code(loaded: Loaded, tmp_path: Path) -> None:
    copy = loaded.folder.copy(tmp_path / "lake")
    other = copy.ask("source", "add", "ios", "--json").value
    with holding(copy, other["id"]):
        partly = copy.run_here("sync")
        assert partly.code == 3
        assert "web: sync finished" in partly.out
        assert "ios: another run of this connection" in partly.err
        with holding(copy, loaded.source["id"]):
            assert copy.run_here("sync").code == 4
    logs = copy.path / "lake" / "segment-logs" / other["id"] / "1794700800000"
    logs.mkdir(parents=True)
    (logs / "whole.gz").write_bytes(gzip.compress(ndjson(sale("i1"))))
    (logs / "broken.gz").write_bytes(gzip.compress(ndjson(sale("i2")))[:-9])
    unread = copy.run_here("sync", "ios", "--json")
    assert unread.code == 3
    assert (unread.lines[0]["row_count"], len(unread.lines[0]["failed_files"])) == (1, 1)
    assert unread.lines[0]["notices"] == ["1 raw file could not be read; the next sync tries again"]


def test_a_sync_that_failed_prints_its_report_as_json_too(small: Folder, tmp_path: Path) -> None:
    copy = in_the_way(small, tmp_path, "lake/segment-stage")
    answer = copy.run_here("sync", "--json")
    assert answer.code == 1
    (line,) = answer.lines
    assert (line["type"], line["status"], line["error_code"]) == ("source", "failed", "invalid_settings")
    assert "fix" in line
    assert copy.ask("report", "--json").lines == [line]
    assert copy.ask("runs", "--json").value[0]["fix"] == line["fix"]
    assert f"Fix: {line['fix']}" in copy.ask("runs").out
    assert f"Fix: {line['fix']}" in copy.ask("report").err


# The audit log


def test_changes_on_the_command_line_are_in_the_audit_log(small: Folder, tmp_path: Path) -> None:
    copy = small.copy(tmp_path / "workspace")
    with (copy.path / CONFIG).open("a") as file:
        file.write('\n[channels.ops]\nkind = "slack"\nurl = "http://127.0.0.1:9/x"\n')
    place = Workspace.open(copy.path)
    before = place.audit_log.latest(1)
    (web,) = place.connections.all()
    name = web.source.slug
    key = copy.ask("source", "add", "shop", "--json").value["write_key"]
    told = [
        (("source", "set", "shop", "lookback_days=3"), "change settings"),
        (("source", "add-key", "shop"), "add write key"),
        (("source", "revoke-key", "shop", key), "revoke write key"),
        (("source", "disable", "shop"), "disable source"),
        (("source", "enable", "shop"), "enable source"),
        (("connection", "set", name, "lookback_days=5"), "change settings"),
        (("connection", "copy", name, "shop"), f"copy settings of {name}"),
        (("connection", "disable", name), "disable connection"),
        (("connection", "enable", name), "enable connection"),
        (("disconnect", "shop"), "disconnect"),
        (("connect", "shop"), "connect"),
        (("user", "invite", "--role", "read"), "invite"),
        (("alerts", "subscribe", "ops", "no_data"), "subscribe"),
        (("suppress", "add", "u1"), "suppress"),
        (("suppress", "remove", "u1"), "let in again"),
    ]
    for words, _ in told:
        assert copy.run_here(*words).code == 0, words
    (subscription,) = place.alerts.subscriptions()
    assert copy.run_here("alerts", "unsubscribe", subscription.id).code == 0
    noted = [one for one in reversed(place.audit_log.latest(99)) if one not in before]
    assert [one.action for one in noted] == ["add source", *(action for _, action in told), "unsubscribe"]
    assert {one.who for one in noted} == {f"{getpass.getuser()} on the command line"}
    (set_days,) = [one for one in noted if one.target == web.full_name and one.action == "change settings"]
    assert (set_days.before, set_days.after) == (
        {"lookback_days": web.settings.lookback_days},
        {"lookback_days": 5},
    )
    assert key not in str(noted)


# The workspace database


def garbled(copy: Folder, content: bytes) -> None:
    for name in ("eventlake.db-wal", "eventlake.db-shm"):
        (copy.path / name).unlink(missing_ok=True)
    (copy.path / "eventlake.db").write_bytes(content)


@pytest.mark.parametrize("words", ["tables", "sync", "describe web.page", "source list", "runs"])
def test_a_broken_database_is_told_with_what_to_do(small: Folder, tmp_path: Path, words: str) -> None:
    copy = small.copy(tmp_path / "lake")
    whole = (copy.path / "eventlake.db").read_bytes()
    for content in (b"no database" * 1000, whole[:5000]):
        garbled(copy, content)
        said = failed(copy.run_here(*words.split()), 1)
        assert "the workspace database is broken" in said
        assert "backup" in said
        assert (copy.path / "eventlake.db").read_bytes() == content


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "foo://user:hush@host/name",
        "oracle://user:hush@host/name",
        "postgresql://user:hush@host:port/name",
        "sqlite://user:hush@host/name",
        "sqlite://",
        "sqlite:///:memory:",
    ],
)
def test_a_database_url_that_cannot_be_used_is_told_without_its_password(
    small: Folder, tmp_path: Path, url: str
) -> None:
    copy = small.copy(tmp_path / "lake")
    config = copy.path / "eventlake.toml"
    config.write_text(f"database = {json.dumps(url)}\n{config.read_text()}")
    said = copy.refused("tables")
    assert "database" in said
    assert "hush" not in said


# Rights


def test_a_workspace_and_what_is_in_it_are_for_their_owner_only(loaded: Loaded) -> None:
    folder = loaded.folder.path
    made = [folder, *folder.iterdir(), *(folder / "logs").iterdir()]
    assert {"eventlake.toml", "eventlake.db", "lake", "logs", "spark.log"} <= {path.name for path in made}
    assert [path.name for path in made if path.stat().st_mode & 0o077] == []


# Looking


def test_tables_queries_and_reports_count_the_same_rows(loaded: Loaded) -> None:
    folder = loaded.folder
    tables = folder.ask("tables", "--json").value
    counts = " union all ".join(
        f"select '{t['table']}' as name, count(*) as rows from {t['database']}.{t['table']}" for t in tables
    )
    assert {row["name"]: row["rows"] for row in folder.query(counts)} == {t["table"]: t["rows"] for t in tables}
    runs = folder.ask("runs", "--json").value
    assert sum(run["rows"] for run in runs) == sum(table["rows"] for table in tables) == 304


def test_runs_and_reports_tell_of_the_same_runs(loaded: Loaded) -> None:
    folder = loaded.folder
    latest, first = folder.ask("runs", "web", "--json").value
    assert (first["run_id"], first["status"], first["kind"]) == (loaded.first.lines[0]["run_id"], "Success", "sync")
    assert folder.ask("report", first["run_id"], "--json").lines == loaded.first.lines
    report = folder.ask("report", "--json").lines
    assert report[0]["run_id"] == latest["run_id"]
    columns = "run_id, type, table_name, row_count"
    in_the_lake = folder.query(f"select {columns} from __segment_datalake.sync_reports")
    told = [{c: line[c] for c in columns.split(", ")} for line in (*loaded.first.lines, *report)]
    assert sorted(in_the_lake, key=str) == sorted(told, key=str)
    assert folder.ask("report").out == loaded.second.out
    assert all(run["run_id"] in folder.ask("runs").out for run in (latest, first))


def test_describe_and_query_show_the_same_columns(loaded: Loaded) -> None:
    folder = loaded.folder
    told = folder.ask("describe", "web.track_ticket_sold", "--json").value
    columns = {column["name"]: column["type"] for column in told["columns"]}
    assert (told["rows"], told["files"]) == (3, 2)
    assert columns["properties_revenue"] == "decimal(38,6)"
    assert columns["properties_coupon"] == columns["_rescued_data"] == columns["hr"] == "string"
    names = {"VARCHAR": "string", "TIMESTAMP WITH TIME ZONE": "timestamp"}
    seen = {
        row["column_name"]: names.get(row["column_type"], row["column_type"].lower())
        for row in folder.query("describe web.track_ticket_sold")
    }
    assert seen == columns
    assert list(seen) == list(columns)
    runs = {column["name"]: column.get("added_run") for column in told["columns"]}
    assert runs["properties_revenue"] == loaded.first.lines[0]["run_id"] != runs["properties_coupon"]
    screen = folder.ask("describe", "web.track_ticket_sold").out
    assert screen.startswith("web.track_ticket_sold")
    assert re.search(r"properties_coupon +string +/properties/coupon +\d{4}-\d\d-\d\d", screen)


@pytest.mark.parametrize("name", ["sync_reports", "quarantine"])
def test_the_tables_that_eventlake_keeps_can_be_described_too(loaded: Loaded, name: str) -> None:
    table = f"__segment_datalake.{name}"
    told = loaded.folder.ask("describe", table, "--json").value["columns"]
    assert [column["name"] for column in told] == [
        row["column_name"] for row in loaded.folder.query(f"describe {table}")
    ]


def test_a_table_that_does_not_exist_is_not_described(loaded: Loaded) -> None:
    assert "web.nothing" in loaded.folder.refused("describe", "web.nothing")


def test_a_run_that_does_not_exist_has_no_report(loaded: Loaded) -> None:
    assert "123" in loaded.folder.refused("report", "123")


def test_rows_can_be_asked_for_in_sql_from_standard_input(loaded: Loaded) -> None:
    sql = "select message_id, properties_revenue as revenue\nfrom web.track_ticket_sold order by message_id"
    rows = succeeded(loaded.folder.run("query", "-", "--json", typed=sql)).lines
    assert rows == [
        {"message_id": "o1", "revenue": 10.5},
        {"message_id": "o2", "revenue": 7},
        {"message_id": "o3", "revenue": None},
    ]
    screen = loaded.folder.ask("query", sql, "--limit", "2")
    assert [line.split() for line in screen.out.splitlines()] == [
        ["message_id", "revenue"],
        ["o1", "10.500000"],
        ["o2", "7.000000"],
    ]
    assert "2 of 3 rows" in screen.err


def test_times_are_shown_in_utc_wherever_the_reader_lives(loaded: Loaded) -> None:
    sql = "select received_at, hour(received_at) as h, hr from web.track_ticket_sold where message_id = 'o1'"
    for zone in ("UTC", "America/New_York"):
        assert re.search(r"2026-11-15 10:20:30.123 +10 +10", loaded.folder("query", sql, TZ=zone).out)


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("selec 1", "selec"),
        ("select * from web.nothing", "nothing"),
        ("select nothing from web.track_ticket_sold", "nothing"),
        ("", "query"),
    ],
)
def test_a_query_that_cannot_be_answered_is_refused(loaded: Loaded, sql: str, told: str) -> None:
    said = loaded.folder.refused("query", sql)
    assert told in said
    assert 'schema "web" does not exist' not in said  # it does


def test_two_columns_of_one_name_are_both_shown(loaded: Loaded) -> None:
    sql = "select 11 as n, 22 as n"
    assert re.findall(r"\d\d", loaded.folder.ask("query", sql).out) == ["11", "22"]
    (row,) = loaded.folder.query(sql)
    assert list(row.values()) == [11, 22]


def test_the_name_of_a_column_is_shown_as_it_is(loaded: Loaded) -> None:
    screen = loaded.folder.ask("query", """select 1 as "a[red]b", 2 as "[/red]" """).out
    assert screen.split() == ["a[red]b", "[/red]", "1", "2"]


# Screens


def on_screen(loaded: Loaded, columns: int, *words: str) -> list[str]:
    return Folder(loaded.folder.path, columns=columns)(*words).out.splitlines()


@pytest.mark.parametrize("columns", [80, 120])
def test_a_table_too_wide_for_the_screen_shows_what_fits_and_names_the_rest(loaded: Loaded, columns: int) -> None:
    names = [row["column_name"] for row in loaded.folder.query("describe web.page")]
    lines = on_screen(loaded, columns, "query", "select * from web.page limit 5")
    assert max(map(len, lines)) <= columns
    shown = lines[0].split()
    assert 2 <= len(shown) < len(names)
    said = " ".join(line.rstrip() for line in lines[6:])
    assert said == f"… {len(names) - len(shown)} more columns: {', '.join(names[len(shown) :])}"
    ids = [row["message_id"] for row in loaded.folder.query("select message_id from web.page limit 5")]
    assert [line.split()[0] for line in lines[1:6]] == ids


def test_a_few_wide_rows_are_shown_one_value_below_the_other(loaded: Loaded) -> None:
    sql = "select * from web.page limit 2"
    lines = on_screen(loaded, 80, "query", sql)
    assert max(map(len, lines)) <= 80
    assert lines == on_screen(loaded, 80, "query", sql, "--records")
    for number, row in enumerate(loaded.folder.query(sql), 1):
        start = lines.index(f"── row {number} ──")
        with_value = [name for name, value in row.items() if value is not None]
        told = [line.split()[0] for line in lines[start + 1 :] if line[:1].strip()]
        assert told[: len(with_value)] == with_value
        nulls = len(row) - len(with_value)
        assert not nulls or f"… {nulls} columns without a value".replace("1 columns", "1 column") in lines


def test_all_columns_can_be_had_in_long_lines(loaded: Loaded) -> None:
    names = [row["column_name"] for row in loaded.folder.query("describe web.page")]
    lines = on_screen(loaded, 80, "query", "select * from web.page limit 5", "--wide")
    assert lines[0].split() == names
    assert len(lines) == 6
    assert "exclude each other" in loaded.folder.refused("query", "select 1", "--wide", "--records")


def test_long_texts_are_folded_in_a_table_that_fits(loaded: Loaded) -> None:
    sql = "select 7 as n, repeat('word ', 40) as words from range(5)"
    lines = on_screen(loaded, 80, "query", sql)
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).count("word ") + sum(line.endswith("word") for line in lines) >= 200


@pytest.mark.parametrize("columns", [80, 200])
def test_the_history_of_runs_breaks_no_run_id(loaded: Loaded, columns: int) -> None:
    runs = loaded.folder.ask("runs", "--json").value
    lines = on_screen(loaded, columns, "runs")
    starts = [number for number, line in enumerate(lines) if line.split()[0] in {run["run_id"] for run in runs}]
    assert [lines[number].split()[0] for number in starts] == [run["run_id"] for run in runs]
    for run, start in zip(runs, starts, strict=True):
        for notice in run["notices"]:
            assert f"  ! {notice}" in lines[start : start + 1 + len(run["notices"])]


def test_names_of_tables_stay_whole_on_a_narrow_screen(loaded: Loaded) -> None:
    names = [f"web.{table['table']}" for table in loaded.folder.ask("tables", "--json").value]
    longest = max(len(name) for name in names)
    shown = [line.split()[0] for line in on_screen(loaded, longest + 40, "tables")[1:-1]]
    assert shown == names


@pytest.mark.parametrize(
    ("sql", "told"),
    [("create temp table x as select 1", "there are no rows to show"), ("set variable a = 1", "no rows")],
)
def test_a_statement_without_rows_says_so(loaded: Loaded, sql: str, told: str) -> None:
    assert told in loaded.folder.ask("query", sql).err


def test_rows_are_saved_to_a_file_and_only_to_that_one(loaded: Loaded, tmp_path: Path) -> None:
    sql = "select message_id from web.track_ticket_sold order by 1"
    done = loaded.folder.ask("query", sql, "--output", str(tmp_path / "ids.csv"))
    assert (done.out, done.err) == ("", f"3 rows written to {tmp_path / 'ids.csv'}\n")
    assert (tmp_path / "ids.csv").read_text().split() == ["message_id", "o1", "o2", "o3"]
    copy = f"copy ({sql}) to '{tmp_path}/other.csv'"
    assert "--unrestricted" in loaded.folder.refused("query", copy)
    assert not (tmp_path / "other.csv").exists()
    loaded.folder.ask("query", copy, "--unrestricted")
    assert (tmp_path / "other.csv").read_text() == (tmp_path / "ids.csv").read_text()


# What an attacker sends must not drive the reader's terminal


def terminal_safe(answer: Answer) -> str:
    shown = answer.out + answer.err
    assert not {c for c in shown if not c.isprintable()} - {"\n"}
    return shown


def test_escape_sequences_in_an_event_do_not_reach_the_terminal(loaded: Loaded) -> None:
    table = next(t["table"] for t in loaded.folder.ask("tables", "--json").value if "evil" in t["table"])
    sql = f"select event, properties_text, [properties_text] as list from web.{table}"
    shown = terminal_safe(loaded.folder.ask("query", sql))
    assert r"\x1b[31mred\x9b2J" in shown
    answer = loaded.folder.ask("query", sql, "--json")
    terminal_safe(answer)
    assert answer.value["properties_text"] == ESCAPES
    terminal_safe(loaded.folder.ask("query", f'select 1 as "{ESCAPES}"', "--records"))
    answer = loaded.folder.run_here("query", f"select cast(properties_text as integer) from web.{table}")
    assert "red" in failed(answer, 2)
    terminal_safe(answer)


def test_escape_sequences_in_a_quarantined_line_do_not_reach_the_terminal(loaded: Loaded) -> None:
    sql = "select content, detail from __segment_datalake.quarantine where content::varchar like 'not JSON%'"
    assert "not JSON" in terminal_safe(loaded.folder.ask("query", sql))


def test_escape_sequences_in_a_column_name_do_not_reach_the_terminal(loaded: Loaded) -> None:
    assert "red" in terminal_safe(loaded.folder.ask("query", f'select 1 as "{ESCAPES}"'))


# Pipes


def test_names_and_paths_stay_whole_in_a_pipe(loaded: Loaded, tmp_path: Path) -> None:
    narrow = Folder(loaded.folder.path, columns=None)
    lines = narrow("report", loaded.first.lines[0]["run_id"]).out.splitlines()
    tables = sorted(loaded.first.lines[1:], key=lambda line: -line["row_count"])[:15]
    assert [t["table_name"] for t in tables if not any(t["table_name"] in line.split() for line in lines)] == []
    deep = tmp_path / "a-folder-whose-name-is-rather-long" / "with-another-one-inside-of-it"
    deep.mkdir(parents=True)
    assert str(deep) in failed(Folder(deep, columns=None).run("tables"), 2)


# Replays


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("web", "--from and --to, or --all"),
        ("web --to 2026-11-01", "--from and --to, or --all"),
        ("web --from 2999-01-01", "the period ends before it begins"),
        ("web --from 2026-11-02 --to 2026-11-01", "2026-11-02"),
        ("web --from 2026-11-01 --to 2026-11-01", "is not included in the period"),
        ("web --from yesterday --to 2026-11-01", "yesterday"),
        ("web --all --to 2026-11-01", "exclude each other"),
        ("web --all --event Nothing", "'Nothing'"),
        ("ios --all", "'ios'"),
        ("web --set date_partition=day", "--all"),
        ("web --resume", "no replay of web was interrupted"),
        ("web --resume --all", "leave out the period"),
        ("web --resume --event page", "leave out the period"),
    ],
)
def test_a_replay_that_makes_no_sense_is_refused(loaded: Loaded, words: str, told: str) -> None:
    assert told in loaded.folder.refused("replay", *words.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("web.nothing properties_revenue string", "web.nothing"),
        ("web.track_ticket_sold properties_nothing string", "properties_nothing"),
        ("web.track_ticket_sold properties_revenue float", "bigint, boolean, decimal(38,6), string, timestamp"),
        ("web.track_ticket_sold received_at string", "received_at"),
        ("web.track_ticket_sold _rescued_data bigint", "_rescued_data"),
        ("web.track_ticket_sold hr bigint", "hr"),
    ],
)
def test_a_type_that_cannot_be_changed_so_is_refused(loaded: Loaded, words: str, told: str) -> None:
    assert told in loaded.folder.refused("retype", *words.split())


def test_a_replay_adds_nothing_and_a_corrected_type_brings_rescued_values_back(loaded: Loaded, tmp_path: Path) -> None:
    copy = loaded.folder.copy(tmp_path / "lake")
    head, *_ = copy.ask("replay", "web", "--from", "2026-01-01", "--json").lines
    assert (head["replay"], head["row_count"], head["rewritten"]) == (True, 0, 304)
    assert head["start_time"][:10] == head["replay_to"][:10]  # without --to, until now
    shown = copy.ask("report").out.splitlines()
    assert "replay finished" in shown[0]
    assert shown[1] == "  304 rows written again from the archive, 0 carried over from the lake, 0 added"
    assert re.search(r"lines read = 0 new rows \+ 3\d\d in the lake already", shown[2])
    shown = copy.ask("retype", "web.track_ticket_sold", "properties_revenue", "string").out.splitlines()
    assert "web: retype finished" in shown[0]
    assert shown[1] == "  track_ticket_sold.properties_revenue is string now"
    assert shown[2].startswith("  3 rows written again")
    runs = copy.ask("runs", "--json").value
    again = copy.ask("retype", "web.track_ticket_sold", "properties_revenue", "string")
    assert again.out == ""
    assert "properties_revenue is string already" in again.err
    assert copy.ask("runs", "--json").value == runs
    revenue = "select message_id, properties_revenue as r from web.track_ticket_sold order by 1"
    assert [row["r"] for row in copy.query(revenue)] == ["10.5", "7", "n/a"]
    assert "was decimal(38,6) until" in copy.ask("describe", "web.track_ticket_sold").out
    assert copy.ask("verify", "web", "--json").value == []


def test_a_replay_that_was_interrupted_is_told_by_syncs_and_gone_on_with(loaded: Loaded, tmp_path: Path) -> None:
    copy = loaded.folder.copy(tmp_path / "lake")
    place = Workspace.open(copy.path)
    source_id = loaded.source["id"]
    place.lake().replays.put(PendingReplay(source_id, None, None, FIRST, ["track_ticket_sold"], 5, 3))
    told = "web: a replay was interrupted after 3 of 5 parts; `eventlake replay web --resume` continues it"
    assert told in copy.ask("sync").err
    head, *tables = copy.ask("replay", "web", "--resume", "--json").lines
    assert (head["kind"], head["rewritten"]) == ("replay", 3)
    assert [line["table_name"] for line in tables] == ["track_ticket_sold"]
    assert place.lake().replays.pending(source_id) is None
    assert "a replay was interrupted" not in copy.ask("sync").err


# Checking


def test_verify_agrees_with_what_was_loaded(loaded: Loaded) -> None:
    assert "304 rows" in loaded.folder.ask("verify").out


def test_verify_names_a_data_file_that_is_gone(loaded: Loaded, tmp_path: Path) -> None:
    copy = loaded.folder.copy(tmp_path / "lake")
    gone = sorted((copy.path / "lake" / "segment-data" / "data").rglob("*.parquet"))[0]
    gone.unlink()
    name = str(gone.relative_to(copy.path / "lake"))
    told = copy.run_here("verify", "--json")
    assert told.code == 1
    assert ("web", "data_file_gone", name) in [(f["source"], f["kind"], f["where"]) for f in told.value]


def test_the_doctor_finds_a_good_workspace_well(small: Folder, tmp_path: Path) -> None:
    told = {step["step"]: step for step in small("doctor", "--json", XDG_CACHE_HOME=str(tmp_path)).value}
    assert list(told)[-3:] == ["java", "spark", "quick start"]
    assert told.pop("quick start")["status"] == "skipped"
    assert {step["status"] for step in told.values()} == {"passed"}
    assert not list((small.path / "lake").rglob(".doctor*"))


@pytest.mark.long
def test_spark_starts_from_a_class_archive_and_also_if_it_is_broken(small: Folder, tmp_path: Path) -> None:
    classes = tmp_path / "classes"
    cache = {"XDG_CACHE_HOME": str(tmp_path), "JAVA_TOOL_OPTIONS": f"-Xlog:class+load:file={classes}"}
    made = small("doctor", "--quick-start", "--json", **cache).value[-1]
    (archive,) = (tmp_path / "eventlake").iterdir()
    assert made == {"step": "quick start", "status": "passed", "detail": str(archive)}
    assert small("doctor", "--json", **cache).value[-1]["detail"] == str(archive)
    assert "SparkContext source: shared objects file (top)" in classes.read_text()
    archive.chmod(0o600)
    archive.write_bytes(archive.read_bytes()[:10_000])
    told = small("doctor", "--json", **cache)
    assert {step["status"] for step in told.value[:-1]} == {"passed"}
    assert "SparkContext source: shared" not in classes.read_text()


def test_the_doctor_names_what_is_ill_and_goes_on(small: Folder, tmp_path: Path) -> None:
    copy = in_the_way(small, tmp_path, "lake")
    told = copy.run("doctor", EVENTLAKE_SPARK__MASTER="nowhere")
    assert told.code == 1
    assert "Traceback" not in told.err
    marks = {"✓": "passed", "✗": "failed", "-": "skipped"}
    steps = {line[3:].split("  ")[0]: line for line in told.out.splitlines() if line[:1] in marks}
    ended = {name: marks[line[0]] for name, line in steps.items()}
    assert {name for name, how in ended.items() if how == "failed"} == {
        "storage: upload to staging",
        "storage: upload",
        "lake",
        "spark",
    }
    assert {name for name, how in ended.items() if how == "skipped"} == {
        "storage: download",
        "storage: list",
        "storage: conditional create",
        "storage: move",
        "storage: delete",
        "quick start",
    }
    assert "nowhere" in told.out
    assert told.out.count("Fix: ") == 4


# What stands in the way


def in_the_way(small: Folder, tmp_path: Path, name: str) -> Folder:
    """A copy of a workspace with a file where a folder is needed: nobody can write there, not even root."""
    copy = small.copy(tmp_path / "workspace")
    place = copy.path / name
    if place.is_dir():
        shutil.move(place, tmp_path / "aside")
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"")
    return copy


@pytest.mark.parametrize("name", ["lake", "lake/segment-logs"])
def test_an_import_that_cannot_write_says_what_to_do(small: Folder, tmp_path: Path, name: str) -> None:
    (tmp_path / "new.ndjson").write_bytes(ndjson(sale("o9")))
    copy = in_the_way(small, tmp_path, name)
    assert name.rpartition("/")[2] in failed(copy.run_here("import", "web", str(tmp_path / "new.ndjson")), 1)


@pytest.mark.parametrize("name", ["lake/segment-stage", "logs"])
def test_a_sync_that_cannot_write_says_what_to_do(small: Folder, tmp_path: Path, name: str) -> None:
    copy = in_the_way(small, tmp_path, name)
    # In a process of its own, for the log is that of a Spark that starts.
    assert name.rpartition("/")[2] in failed(copy.run("sync"), 1)
    assert copy.ask("tables", "--json").value == []


def test_a_sync_that_failed_to_publish_is_made_good_by_the_next(small: Folder, tmp_path: Path) -> None:
    copy = in_the_way(small, tmp_path, "lake/segment-data")
    assert "segment-data" in failed(copy.run_here("sync"), 1)
    assert copy.ask("tables", "--json").value == []
    (copy.path / "lake" / "segment-data").unlink()
    assert copy.ask("sync", "--json").lines[0]["books"]["loaded"] == 1
    assert [run["status"] for run in copy.ask("runs", "--json").value] == ["Success", "Failed"]


@pytest.fixture
def read_only(small: Folder, tmp_path: Path) -> Iterator[Folder]:
    copy = small.copy(tmp_path / "workspace")
    lake = copy.path / "lake"
    folders = [lake, *(path for path in lake.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    as_anybody: tuple[str, ...] = ()
    if os.access(lake, os.W_OK):  # root may write everywhere, unless it gives that right away
        if not shutil.which("setpriv"):
            not_there("read-only lake", "root may write everywhere, whatever the mode of a folder, without setpriv")
        as_anybody = ("setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override")
    yield Folder(copy.path, through=as_anybody)
    for folder in folders:
        folder.chmod(0o755)


def test_a_lake_that_may_only_be_read_gives_an_error_that_says_what_to_do(read_only: Folder, tmp_path: Path) -> None:
    (tmp_path / "new.ndjson").write_bytes(ndjson(sale("o9")))
    for command in (["import", "web", str(tmp_path / "new.ndjson")], ["sync"]):
        problem, _, fix = failed(read_only.run(*command), 1).partition("Fix:")
        assert "lake" in problem
        assert "Permission denied" in problem
        assert "write" in fix
    assert [run["status"] for run in read_only.ask("runs", "--json").value] == ["Failed"]
    read_only.query("select * from __segment_datalake.sync_reports")  # although no report could be written


# Help


@pytest.mark.parametrize("words", ["--version", "tables", "query select", "describe web.nothing --json"])
def test_a_command_answers_alike_in_a_process_of_its_own(loaded: Loaded, words: str) -> None:
    assert loaded.folder.run(*words.split()) == loaded.folder.run_here(*words.split())


def commands(group: Any, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        yield before + name
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")


ALL_COMMANDS = list(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_itself(name: str) -> None:
    said = " ".join(str(lazy.loaded(name, COMMANDS[name]).help).partition("\n\n")[0].split())
    assert said == COMMANDS[name].help


HEAVY = (
    *("alembic", "argon2", "boto3", "duckdb", "fastapi", "jinja2", "numpy", "obstore", "pandas", "pyarrow"),
    *("pyspark", "starlette", "uvicorn"),
)
TOLD = f"import atexit, sys; atexit.register(lambda: print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr))"


@pytest.mark.parametrize(
    "words", ["--help", "sync --help", "tables", "describe web.page", "runs", "report", "source list", "tabels"]
)
def test_what_only_looks_loads_nothing_that_takes_long(loaded: Loaded, words: str) -> None:
    """So it answers at once: 0.15 seconds for help, 0.4 for what asks the database."""
    run = f"{TOLD}; sys.argv = ['eventlake', '-C', {str(loaded.folder.path)!r}, *{words.split()}]"
    program = f"{run}; from eventlake.cli.start import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == (2 if words == "tabels" else 0), done.stderr
    if words == "tabels":
        assert "Did you mean 'tables'?" in " ".join(done.stderr.split())
    if "sync" in words:  # its own help is with what it does
        assert "pyspark" not in done.stderr
    else:
        assert done.stderr.splitlines()[-1] == "[]"


def test_help_names_every_command(tmp_path: Path) -> None:
    screen = Folder(tmp_path)("--help").out
    assert [name for name in ALL_COMMANDS if " " not in name and not re.search(rf"│ {name} +[A-Z]", screen)] == []


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_help_of_a_command_begins_with_a_sentence(name: str) -> None:
    screen = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"}).output
    below_usage = screen.partition("Usage:")[2].partition("\n")[2].partition("╭")[0]
    assert re.match(r"[A-Z][^.]{10,}\.", below_usage.strip()), screen


# The demo


# In RudderStack's dialect, each message has one row in one of these.
ROUTED = {"tracks", "identifies", "pages", "screens", "groups", "aliases"}


@pytest.mark.long
@pytest.mark.parametrize("dialect", ["segment", "rudderstack"])
def test_the_demo_runs_to_its_end_and_the_commands_it_recommends_work(tmp_path: Path, dialect: str) -> None:
    here = Folder(tmp_path)
    tour = here("demo", "--events", "3000", "--dir", "scratch", "--dialect", dialect)
    assert "What next" in tour.out
    assert "No data found" in tour.out
    scratch = Folder(tmp_path / "scratch")
    recommended = re.findall(r"^  eventlake (.+?)   #", tour.out, re.MULTILINE)
    assert len(recommended) >= 5
    recommended.remove(next(line for line in recommended if line.endswith(" collect")))  # it would not end
    answers = {line.split()[-1]: here(*shlex.split(line)) for line in recommended}
    sent = re.search(r"^(\d+) events with .* to http://127.0.0.1:\d+/v1/batch$", tour.out, re.MULTILINE)
    assert sent
    rows = {table["table"]: table["rows"] for table in scratch.ask("tables", "--json").value}
    of_calls = [n for table, n in rows.items() if dialect == "segment" or table in ROUTED]
    assert sum(of_calls) == 3000 + int(sent[1])
    assert f"{sum(rows.values()):,} rows" in answers["verify"].out
    assert "is a workspace already" in here.refused("demo", "--dir", "scratch")
