"""SDKs of Segment and RudderStack, as they are published: what they send is in the lake, field by field."""

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from browsers import CLIENTS, run_sdk
from collectors import Collector
from conftest import Lake

pytestmark = pytest.mark.long

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
def test_node(
    lake: Lake,
    collecting: Collector,
    node_modules: Path,
    program: str,
    library: str,
    encoding: str,
) -> None:
    host = f"http://127.0.0.1:{collecting.port}"
    sent_by("node", str(CLIENTS / program), host, collecting.key, encoding, cwd=node_modules)
    rows = check(lake, collecting, library)
    assert str(rows["identify"]["original_timestamp"]).startswith("2026-11-01 12:30:00")


@pytest.mark.parametrize("strategy", ["standard", "batching"])
def test_segment_in_a_browser(lake: Lake, collecting: Collector, browser: Any, site: str, strategy: str) -> None:
    host = f"127.0.0.1:{collecting.port}"
    script = "@segment/analytics-next/dist/umd/index.js"
    run_sdk(browser, site, script, "segment_browser.js", host, collecting.key, strategy)
    rows = check(lake, collecting, "analytics.js")
    assert rows["page"]["context_ip"] == "127.0.0.1"
    assert rows["page"]["context_page_url"] == f"{site}/page.html"
    assert rows["page"]["channel"] == "client"


def test_rudderstack_in_a_browser(lake: Lake, collecting: Collector, browser: Any, site: str) -> None:
    host = f"127.0.0.1:{collecting.port}"
    script = "@rudderstack/analytics-js/dist/npm/legacy/bundled/umd/index.js"
    run_sdk(browser, site, script, "rudder_browser.js", host, collecting.key)
    rows = check(lake, collecting, "RudderLabs JavaScript SDK", tables=set(SENT) - {"screen"}, traits_in_context=True)
    assert rows["page"]["context_ip"] == "127.0.0.1"
