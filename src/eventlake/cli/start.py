"""Where the program begins: what takes time at every start is set before anything else is loaded."""

import gc
import os


def main() -> None:
    # What is loaded stays: to look through it for garbage every few hundred objects takes a tenth of a short command.
    gc.set_threshold(50_000, 20, 20)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # to look for some takes as long

    from eventlake.cli.main import main as run  # noqa: PLC0415

    run()
