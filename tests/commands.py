"""The program as people start it, and what its doctor finds without being started."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from eventlake.doctor.steps import examined, of_parts, steps_of
from eventlake.workspace import Lake

PROGRAM = Path(sys.executable).with_name("eventlake")


def command(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command that is given in a workspace."""
    return subprocess.run(
        [str(PROGRAM), "-C", str(folder), *words],
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def examination(lake: Lake, *parts: str) -> dict[str, dict[str, Any]]:
    """What the doctor says of each step of some parts of a lake. In this process, so not of its Spark."""
    assert "spark" not in parts
    return {one["step"]: one for one in examined(lake, of_parts(steps_of(lake), parts))}
