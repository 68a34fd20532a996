"""A real browser, the SDKs that run in it, and a site that has them."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from needs import not_there
from servers import npm_packages

CLIENTS = Path(__file__).parent / "clients"
PACKAGES = [
    "@segment/analytics-node@3.1.0",
    "@rudderstack/rudder-sdk-node@3.0.13",
    "@segment/analytics-next@1.84.3",
    "@rudderstack/analytics-js@3.34.1",
    "axe-core@4.14.0",  # the rules of accessibility that a program can check
]
CHROMIUM = "/usr/bin/chromium"
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The folder that has the SDKs for Node and browsers, from npm."""
    return npm_packages("sdks", PACKAGES).parent


@pytest.fixture(scope="session")
def chromium() -> str:
    """A real browser; installed if this is a machine of Debian's kind and we may."""
    if not Path(CHROMIUM).exists() and os.geteuid() == 0 and shutil.which("apt-get"):
        for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", *words], capture_output=True, check=False)
    if not Path(CHROMIUM).exists():
        not_there("browser", f"there is no {CHROMIUM}; apt-get install chromium")
    return CHROMIUM


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright  # not everywhere where tests run

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        yield found
        found.close()


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


def run_sdk(browser: Any, site: str, script: str, program: str, *arguments: str) -> None:
    """Load an SDK into a page of the site, and let it send all its calls."""
    page = browser.new_page()
    page.goto(f"{site}/page.html")
    page.add_script_tag(url=f"{site}/node_modules/{script}")
    function = "\n".join(line for line in (CLIENTS / program).read_text().splitlines() if line[:2] != "//")
    with page.expect_response(lambda response: _is_about(response.request.post_data, "alias")):
        page.evaluate(f"({function.strip().removesuffix(';')})(...{json.dumps(arguments)})")
    page.wait_for_load_state("networkidle")
    page.close()


def _is_about(body: str | None, call: str) -> bool:
    return f'"type":"{call}"' in (body or "")
