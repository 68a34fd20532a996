"""What tests need of the machine."""

import os
from typing import NoReturn

import pytest


def not_there(what: str, reason: str) -> NoReturn:
    """It is missing: a failure where the tests must be complete, a reason to skip on somebody's own machine."""
    if os.environ.get("CI"):
        pytest.fail(f"no {what}: {reason}")
    pytest.skip(f"no {what}: {reason}")
