"""SDKs of Segment and RudderStack, as they are published: what they send is in the lake, field by field."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from collectors import Collector
from conftest import Lake
from needs import not_there

pytestmark = pytest.mark.long

CLIENTS = Path(__file__).parent / "clients"
PACKAGES = [
    "@segment/analytics-node@3.1.0",
    "@rudderstack/rudder-sdk-node@3.0.13",
    "@segment/analytics-next@1.84.3",
    "@rudderstack/analytics-js@3.34.1",
]
CHROMIUM = "/usr/bin/chromium"
SECONDS = 120

# What all of them send, by table; RudderStack's SDK for browsers has no call `screen`.
SENT: dict[str, dict[str, Any]] = {
    "identify": {"user_id": "u1", "traits_email": "a@b.c", "traits_age": 3},
    "track_checkout_completed": {
        "user_id": "u1",
        "event": "Checkout Completed",
        "properties_total_price": Decimal("12.5"),
        "properties_items": '[{"sku":"a"}]',
        "properties_nested_a_b": 1,
    },
    "page": {"user_id": "u1", "name": "Home", "category": "Docs", "properties_category": "Docs"},
    "screen": {"user_id": "u1", "name": "Start", "properties_build": 7},
    "group": {"user_id": "u1", "group_id": "g1", "traits_plan": "team"},
    "alias": {"user_id": "u1", "previous_id": "u0"},
}


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The SDKs for Node and browsers, from npm."""
    npm = shutil.which("npm")
    if not npm:
        not_there("npm", "Node.js is not installed")
    folder = tmp_path_factory.mktemp("npm")
    command = [npm, "install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", *PACKAGES]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        not_there("SDKs from npm", done.stderr[-500:])
    return folder


@pytest.fixture(scope="session")
def chromium() -> str:
    """A real browser; installed if this is a machine of Debian's kind and we may."""
    if not Path(CHROMIUM).exists() and os.geteuid() == 0 and shutil.which("apt-get"):
        for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", *words], capture_output=True, check=False)
    if not Path(CHROMIUM).exists():
        not_there("browser", f"there is no {CHROMIUM}; apt-get install chromium")
    return CHROMIUM


def check(
    lake: Lake,
    collector: Collector,
    library: str,
    *,
    tables: set[str] | None = None,
    traits_in_context: bool = False,  # of identify
) -> dict[str, Any]:
    """Sync what the collector has, and compare with what was sent; the rows by table."""
    collector.stop()
    lake.sync()
    expected = {table: SENT[table] for table in tables or SENT}
    if traits_in_context:
        expected["identify"] = {"user_id": "u1", "context_traits_email": "a@b.c", "context_traits_age": 3}
    assert set(lake.tables()) == set(expected)
    rows = {}
    for table, columns in expected.items():
        [row] = lake.rows(table)
        assert {column: row[column] for column in columns} == columns
        assert row["context_library_name"] == library
        assert row["message_id"]
        assert row["received_at"] >= row["timestamp"]
        assert row["project_id"] == "src1"
        rows[table] = row
    return rows


@pytest.fixture
def collecting(lake: Lake) -> Iterator[Collector]:
    collector = Collector(lake.workspace.folder)
    collector.key = lake.workspace.sources.add_key("web")
    with collector:
        yield collector


def sent_by(*command: str, cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("encoding", ["plain", "gzip"])
@pytest.mark.parametrize("program", ["segment_python.py", "rudder_python.py"])
def test_python(lake: Lake, collecting: Collector, program: str, encoding: str) -> None:
    host = f"http://127.0.0.1:{collecting.port}"
    sent_by(sys.executable, str(CLIENTS / program), host, collecting.key, encoding, cwd=CLIENTS)
    rows = check(lake, collecting, "analytics-python", traits_in_context=program == "rudder_python.py")
    assert str(rows["identify"]["original_timestamp"]).startswith("2026-11-01 12:30:00")


@pytest.mark.parametrize(
    ("program", "library", "encoding"),
    [
        ("segment_node.mjs", "@segment/analytics-node", "plain"),
        ("rudder_node.mjs", "analytics-node", "plain"),
        ("rudder_node.mjs", "analytics-node", "gzip"),
    ],
)
def test_node(lake: Lake, collecting: Collector, node_modules: Path, program: str, library: str, encoding: str) -> None:
    host = f"http://127.0.0.1:{collecting.port}"
    sent_by("node", str(CLIENTS / program), host, collecting.key, encoding, cwd=node_modules)
    rows = check(lake, collecting, library)
    assert str(rows["identify"]["original_timestamp"]).startswith("2026-11-01 12:30:00")


@pytest.fixture
def site(node_modules: Path) -> Iterator[str]:
    """A web site at another origin than the collector, with the SDKs on it."""
    (node_modules / "page.html").write_text("<!doctype html><title>T</title>")

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(node_modules))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def in_browser(chromium: str, site: str, script: str, program: str, *arguments: str) -> None:
    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        page = browser.new_page()
        page.goto(f"{site}/page.html")
        page.add_script_tag(url=f"{site}/node_modules/{script}")
        function = "\n".join(line for line in (CLIENTS / program).read_text().splitlines() if line[:2] != "//")
        with page.expect_response(lambda response: is_about(response.request.post_data, "alias")):
            page.evaluate(f"({function.strip().removesuffix(';')})(...{json.dumps(arguments)})")
        page.wait_for_load_state("networkidle")
        browser.close()


def is_about(body: str | None, call: str) -> bool:
    return f'"type":"{call}"' in (body or "")


@pytest.mark.parametrize("strategy", ["standard", "batching"])
def test_segment_in_a_browser(lake: Lake, collecting: Collector, chromium: str, site: str, strategy: str) -> None:
    host = f"127.0.0.1:{collecting.port}"
    script = "@segment/analytics-next/dist/umd/index.js"
    in_browser(chromium, site, script, "segment_browser.js", host, collecting.key, strategy)
    rows = check(lake, collecting, "analytics.js")
    assert rows["page"]["context_ip"] == "127.0.0.1"
    assert rows["page"]["context_page_url"] == f"{site}/page.html"
    assert rows["page"]["channel"] == "client"


def test_rudderstack_in_a_browser(lake: Lake, collecting: Collector, chromium: str, site: str) -> None:
    host = f"127.0.0.1:{collecting.port}"
    script = "@rudderstack/analytics-js/dist/npm/legacy/bundled/umd/index.js"
    in_browser(chromium, site, script, "rudder_browser.js", host, collecting.key)
    rows = check(lake, collecting, "RudderLabs JavaScript SDK", tables=set(SENT) - {"screen"}, traits_in_context=True)
    assert rows["page"]["context_ip"] == "127.0.0.1"
