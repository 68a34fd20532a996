"""Called by hatchling: builds what is written in C before the package is made, or installed in place."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 # of the interface
        root = Path(self.root)
        native = runpy.run_path(str(root / "src" / "eventlake" / "native" / "build.py"))
        build_data["artifacts"] += [str(path.relative_to(root)) for path in native["build_all"]()]
