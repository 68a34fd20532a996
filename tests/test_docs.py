"""The documents are tested like the code: what they should name they name, where they point to is there, and the
commands they show can be typed.
"""

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from pydantic import BaseModel
from typer import BadParameter
from typer.main import get_command

from conftest import InProcess, Lake, track
from eventlake.catalog.base import TableChange
from eventlake.cli.main import app
from eventlake.commit import manifest, recover
from eventlake.control.alerts import Kind
from eventlake.control.ledger import Entry
from eventlake.control.settings import ConnectionSettings, RudderStackSettings, SegmentSettings
from eventlake.errors import EventLakeError
from eventlake.lake import ids, segments
from eventlake.lake.report_columns import REPORT_COLUMNS
from eventlake.schema.cast import REASONS
from eventlake.settings import Settings
from eventlake.settings.serve import EmailChannelSettings, SlackChannelSettings, WebhookChannelSettings
from eventlake.sync import jobs, noted
from eventlake.sync.shares import PUBLISH_TASKS_PER_CORE, TASKS_PER_CORE
from eventlake.sync.work import Sizes
from eventlake.web import access
from eventlake.web import app as web_app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

USAGE_ERROR: Any = BadParameter.__base__  # what the parser raises; Typer has no name for it

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*eventlake (.*)$")


def page(name: str) -> str:
    return (DOCS / name).read_text()


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# The command line


def commands(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with its whole name."""
    group: Mapping[str, Any] = getattr(command, "commands", {})
    if not group:
        yield " ".join(path), command
    for name, inner in group.items():
        yield from commands(inner, *path, name)


COMMANDS = dict(commands(get_command(app), "eventlake"))


def options(command: Any) -> list[str]:
    return [text for parameter in command.params if parameter.param_type_name == "option" for text in parameter.opts]


def section(text: str, heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/cli.md has no section {heading}"
    return found[1]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section_that_names_its_options(name: str) -> None:
    text = section(page("cli.md"), f"`{name}`")
    assert [option for option in options(COMMANDS[name]) if f"`{option}" not in text] == []


def test_the_options_before_the_command_are_named() -> None:
    assert [option for option in options(get_command(app)) if f"`{option}" not in page("cli.md")] == []


def test_no_section_is_about_a_command_that_is_gone() -> None:
    assert set(re.findall(r"^## `(eventlake .*)`$", page("cli.md"), re.MULTILINE)) == set(COMMANDS)


# Settings, reports, reasons


@pytest.mark.parametrize("kind", [SegmentSettings, RudderStackSettings])
def test_every_setting_of_a_connection_is_described(kind: type[ConnectionSettings]) -> None:
    of_connection = page("settings.md").partition("\n## Connection\n")[2]
    for name in kind.model_fields:
        row = re.search(rf"^\| `{name}`(.*?) \|", of_connection, re.MULTILINE)
        assert row, f"docs/settings.md does not describe {name}"
        assert ("**fixed**" in row[1]) == (name in kind.fixed_once_loaded)


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield prefix + name
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from fields(field.annotation, f"{prefix}{name}.")


@pytest.mark.parametrize("name", list(fields(Settings)))
def test_every_setting_of_the_workspace_is_described(name: str) -> None:
    assert f"| `{name}` |" in page("settings.md")


def test_every_environment_variable_is_named() -> None:
    groups = {name.partition(".")[0] for name in fields(Settings) if "." in name}
    variables = {f"EVENTLAKE_{name.upper().replace('.', '__')}" for name in fields(Settings) if name not in groups}
    assert set(re.findall(r"^\| `(EVENTLAKE_\w+)`", page("settings.md"), re.MULTILINE)) == variables


@pytest.mark.parametrize("name", [column.name for column in REPORT_COLUMNS])
def test_every_column_of_the_reports_is_described(name: str) -> None:
    assert f"`{name}`" in page("reports.md")


def real_reports(lake: Lake) -> Iterator[dict[str, Any]]:
    """Lines of real reports that have, together, every field there is."""
    lake.workspace.connections.change("web", {"column_limit": "20"})
    for file in ("one", "two"):  # two tasks, each with room for all its columns
        lake.put(*(track(message_id=f"{file}{n}", properties={f"{file}{n}": n}) for n in range(12)), b"no event")
    lake.put_bytes(b"\x1f\x8b", name="broken.gz")
    yield from lake.sync()
    yield from lake.run(jobs.replay(lake.connection, 0, 1 << 52))
    yield from lake.sync_of(*(track("Junk", f"j{n}", properties={"n": n or "none"}) for n in range(3)))
    yield from lake.run(jobs.drop(lake.connection, "track_junk"))
    for raw in (lake.root / "segment-logs").rglob("*.gz"):
        raw.unlink()
    with pytest.raises(EventLakeError):
        lake.run(jobs.rebuild(lake.connection))
    yield from lake.place.runs.get(None).report or []


def test_every_field_of_real_reports_is_described(tmp_path: Path) -> None:
    lines = list(real_reports(Lake(tmp_path / "workspace", InProcess())))
    assert {line["status"] for line in lines} == {"finished", "failed"}
    names = {name for line in lines for name in line} | {name for line in lines for name in line.get("books", ())}
    assert {"failed_files", "refused_columns", "rescued", "rewritten", "carried_over", "error_code"} <= names
    assert {"type_reasons", "dropped_rows"} <= names
    assert sorted(name for name in names if f"`{name}`" not in page("reports.md")) == []


@pytest.mark.parametrize("reason", sorted(REASONS - {"not a string"}))  # everything is a string
def test_every_reason_of_a_cast_is_explained(reason: str) -> None:
    assert f'"{reason}"' in page("types-and-rescue.md")


# The journey of an event


def test_one_line_is_followed_to_its_cell_through_few_files_that_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.partition("Follow one line from its raw file")[2].partition("Then the run is closed")[0]
    files = re.findall(r"^\|[^|]*\|[^|]*\| `([a-z_/]+\.(?:py|c|h))` \|", table, re.MULTILINE)
    assert f"through {len(files)} files" in text
    assert 10 < len(files) <= 15
    assert len(set(files)) == len(files), "nobody goes back"
    assert [file for file in files if not (ROOT / "src" / "eventlake" / file).is_file()] == []


def test_every_module_that_a_page_names_is_there() -> None:
    gone = set()
    for path in PAGES:
        text = path.read_text().replace("\n", " ")
        if "the modules named here are gone" in text:  # a decision that was taken back
            assert "Superseded by [" in text
            continue
        named = re.findall(r"`((?:src/eventlake/)?[a-z_]+/[a-z_]+\.py)`", text)
        gone |= {
            (name_of(path), file)
            for file in named
            if not any((ROOT / place / file).exists() for place in (".", "src/eventlake"))
        }
    assert gone == set()


# Sizes


TIMES = "\N{MULTIPLICATION SIGN}"
IN_WORDS = {2: "twice", 3: "three", 4: "four"}
BYTES_PER_ID = sum(np.dtype(kind).itemsize for kind in ids.FIELDS.values())


def sizes_in_words() -> dict[str, list[str]]:
    """What ARCHITECTURE.md must say of each step."""
    sizes = Sizes()
    shares, stage, publish = sizes.shares, sizes.stage, sizes.publish
    return {
        "stage": [
            f"{IN_WORDS[TASKS_PER_CORE]} per core",
            f"if each gets {shares.fewest_bytes_per_stage_task >> 20} MiB of compressed raw files",
            f"more from {shares.bytes_per_stage_task >> 20} MiB or {shares.files_per_stage_task} files each",
            f"reads {stage.read.block >> 20} MiB at a time",
            f"A line over {stage.read.longest_line >> 20} MiB is not held",
            f"When {stage.bytes_at_once >> 20} MiB of lines are there",
            f"written out at {stage.rows_per_chunk:,} per table",
            f"when {stage.bytes_in_buffers >> 20} MiB of raw lines are held",
            f"At most {stage.new_columns:,} columns may be new",
            f"Ids are written out at {stage.ids_per_segment:,}",
        ],
        "dedupe": [
            f"one up to {shares.ids_for_one_share:,} messages",
            f"more from {shares.ids_per_share:,} messages each",
            f"up to {ids.BUCKETS} ",
            f"at {BYTES_PER_ID} bytes per staged message",
        ],
        "publish": [
            f"up to {IN_WORDS[PUBLISH_TASKS_PER_CORE]} per core",
            f"{shares.fewest_rows_per_share:,} to {shares.most_rows_per_share:,} rows per share",
            f"{publish.rows_at_once:,} rows at a time, written as {publish.cells_at_once:,} cells at most",
            f"fewer rows, if they take {publish.bytes_at_once >> 20} MiB",
            f"at most {publish.files.open_files} open Parquet files",
            f"with {publish.files.bytes_in_memory >> 20} MiB in memory",
        ],
    }


def test_the_size_of_the_parts_of_a_replay_is_that_of_the_code() -> None:
    sizes = Sizes()
    told = (
        f"about {sizes.bytes_per_part >> 30} GiB of raw files ({sizes.bytes_per_part_and_core >> 20} MiB for each core"
    )
    assert told in " ".join(page("replay.md").split())


@pytest.mark.parametrize("step", sizes_in_words())
def test_the_sizes_that_are_told_are_those_of_the_code(step: str) -> None:
    memory = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Memory and parallelism\n")[2]
    row = next(line for line in memory.splitlines() if line.startswith(f"| {step} |"))
    assert [words for words in sizes_in_words()[step] if words not in row] == []


@pytest.mark.parametrize(
    "words",
    [
        f"each dedupe task {BYTES_PER_ID} bytes for each message of its share from "
        f"{ids.BUCKETS * Sizes().shares.ids_per_share // 10**6} million messages on",
        f"the driver {segments.RECORD.itemsize} bytes for each piece",
        f"whatever is older than {recover.STAGING_KEPT_NS // (86_400 * 10**9)} days",
        f"whoever carries a run out, {IN_WORDS[int(1 / noted.EVERY)]} a second",
        f"| `version` | {manifest.VERSION}. ",
        f"| {len(ids.MAGIC)} | `{ids.MAGIC.decode()}` |",
        f"| {ids.BUCKETS + 1} {TIMES} 8 | fences",
        f"| fields {TIMES} {ids.BUCKETS} {TIMES} 4 | CRC-32",
        f"begin with `{ids.MAGIC_WITHOUT_CHECKSUMS.decode()}`",
        f"`{'`, `'.join(f for f in ids.FIELDS if f not in ids.INDEX_FIELDS)}`".replace("`, `number`", "` and `number`"),
        *(f"| n {TIMES} {np.dtype(ids.FIELDS[field]).itemsize} | `{field}`" for field in ids.INDEX_FIELDS),
    ],
)
def test_formats_and_limits_that_are_told_are_those_of_the_code(words: str) -> None:
    text = " ".join((ROOT / "ARCHITECTURE.md").read_text().split())
    plain = re.sub(r" \([^)]*\)", "", text)
    assert words in text or words in plain


def test_every_field_of_a_manifest_is_told() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text().partition("**Manifest.**")[2].partition("\n**")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE))
    assert set(rows) == {field.name for field in msgspec.structs.fields(manifest.Manifest)}
    within = {"added", "removed", "owner"}  # what is told of the data files of a table
    told = set(re.findall(r"`(\w+)`", rows["entry"]))
    assert told - within == {field.name for field in msgspec.structs.fields(Entry)}
    assert within <= told
    assert set(re.findall(r"`(\w+)`", rows["tables"])) == {field.name for field in dataclasses.fields(TableChange)}


# Links


def anchors(path: Path) -> set[str]:
    """The anchors that a page's headings give, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_every_link_leads_somewhere(path: Path) -> None:
    lost = []
    for link in _LINK.findall(_FENCE.sub("", path.read_text())):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        file = (path.parent / target).resolve() if target else path
        if not file.exists() or (anchor and anchor not in anchors(file)):
            lost.append(link)
    assert lost == []


def test_every_page_can_be_reached_from_the_map() -> None:
    linked = {(DOCS / link).resolve() for link in _LINK.findall(page("index.md"))}
    assert [name_of(path) for path in DOCS.rglob("*.md") if path not in linked and path.name != "index.md"] == []


# Commands that are shown


def shown_commands(path: Path) -> Iterator[str]:
    """The command lines of a page's code blocks, without the program's name; a quoted text may go on over lines."""
    for block in _FENCE.findall(path.read_text()):
        lines = iter(block.splitlines())
        for line in lines:
            for part in re.split(r" (?:&&|\|) ", line):
                found = _COMMAND.match(part)
                if found:
                    text = found[1]
                    while text.count('"') % 2:
                        text += f"\n{next(lines)}"
                    yield text


SHOWN = [(name_of(path), text) for path in PAGES for text in shown_commands(path)]


def check_command(text: str) -> None:
    """Parse a command line with the program's own parsers, without running it."""
    words = [word for word in shlex.split(text, comments=True) if not word.startswith((">", "2>"))]
    command: Any = get_command(app)
    while inner := getattr(command, "commands", None):
        assert words, "a command is missing"
        while words[0].startswith("-"):
            assert words[0] in options(command), f"there is no option {words[0]}"
            words = words[2:] if words[0] == "-C" else words[1:]
        assert words[0] in inner, f"there is no command {words[0]}"
        command, words = inner[words[0]], words[1:]
    command.make_context("eventlake", words)


@pytest.mark.parametrize(("where", "text"), SHOWN, ids=[f"{where}-{number}" for number, (where, _) in enumerate(SHOWN)])
def test_every_command_that_is_shown_can_be_typed(where: str, text: str) -> None:
    check_command(text)


def test_there_are_commands_to_check() -> None:
    assert {"README.md", "docs/tutorial.md", "docs/cli.md", "docs/replay.md"} <= {where for where, _ in SHOWN}


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("snyc web", "there is no command snyc"),
        ("-X sync", "there is no option -X"),
        ("source", "a command is missing"),
        ("source --help", "there is no option --help"),
        ("sync web --quickly", "No such option: --quickly"),
        ("retype web.page", "Missing parameter: column"),
        ("sync --wait soon", "should be a valid number"),
    ],
)
def test_a_wrong_command_would_be_noticed(wrong: str, told: str) -> None:
    with pytest.raises((AssertionError, USAGE_ERROR), match=re.escape(told)):
        check_command(wrong)


# Promises


def test_every_promise_names_tests_that_exist() -> None:
    text = page("promises.md")
    files = {path.name: path.read_text() for path in Path(__file__).parent.glob("test_*.py")}
    named = re.findall(r"`tests/(test_\w+\.py)`", text)
    assert set(named) <= files.keys()
    missing = [name for name in re.findall(r"`(test_\w+)`", text) if f"def {name}(" not in "".join(files.values())]
    assert missing == []
    for promise in text.split("\n## ")[1:]:
        assert "*Proved by* `tests/" in promise.replace("\n", " "), promise.splitlines()[0]


def test_every_row_of_the_table_of_protections_names_a_test_that_exists() -> None:
    rows = re.findall(r"^\| (?!against|---)(.*) \|$", page("security.md").partition("\n## ")[0], re.MULTILINE)
    assert len(rows) >= 7
    tests = Path(__file__).parent
    for row in rows:
        for proof in row.split(" | ")[-1].split("; "):
            file, *names = re.findall(r"`([^`]+)`", proof)
            assert names, row
            assert [name for name in names if f"def {name}(" not in (tests.parent / file).read_text()] == []


# The HTTP API


def api_rows() -> list[str]:
    """The rows of docs/api.md, as the code says them."""
    rows = []
    for module in web_app.API:
        for route in module.router.routes:
            calls = set(_calls(route.dependant))
            is_admins = calls & {access.admin, access.admin_looks}
            scope = "admin" if is_admins else "operate" if access.operator in calls else "read"
            (method,) = route.methods
            rows.append(f"| `{method} {route.path}` | {route.endpoint.__doc__.strip().splitlines()[0]} | {scope} |")
    return rows


def _calls(dependant: Any) -> Iterator[Any]:
    yield dependant.call
    for inner in dependant.dependencies:
        yield from _calls(inner)


def test_every_path_of_the_api_is_described_with_its_scope() -> None:
    shown = re.findall(r"^\| `(?:GET|POST|PUT|PATCH|DELETE) .*$", page("api.md"), re.MULTILINE)
    assert shown == api_rows()


def test_every_kind_of_alert_and_every_setting_of_a_channel_is_described() -> None:
    for kind in Kind:
        row = re.search(rf"^\| `{kind.value}` \|.*\| (.*?) ?\|$", page("alerts.md"), re.MULTILINE)
        assert row, kind
        assert row[1] == ("" if kind.threshold is None else f"{kind.threshold:g}")
    for channel in (EmailChannelSettings, WebhookChannelSettings, SlackChannelSettings):
        assert [name for name in channel.model_fields if f"`{name}`" not in page("alerts.md") and name != "kind"] == []
