"""`python -m eventlake.doctor FOLDER LAKE`: what came of each step, a line of JSON as soon as it is known.

For whoever shows it while it goes on. In a process of its own, because it tries Spark, of which a process has only one.
"""

import json
import sys
from pathlib import Path
from typing import Any

from eventlake.doctor.steps import examined, steps_of
from eventlake.errors import EventLakeError
from eventlake.workspace import Workspace


def main() -> None:
    folder, name = sys.argv[1:]
    try:
        lake = Workspace.open(Path(folder)).lake(name)
    except EventLakeError as error:
        _say({"step": "workspace", "status": "failed", "detail": error.problem, "fix": error.fix})
        return
    for result in examined(lake, steps_of(lake)):
        _say(result)


def _say(result: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
