"""eventlake as a library: a workspace that is opened, worked with and closed. The command line is one face of it.

Nothing here prints, handles signals or redirects anything. Progress is told to a callback. What goes wrong is raised,
as one of `eventlake.errors`, which says what happened and what to do.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["Report", "Runners", "TableReport", "Workspace", "create", "open"]

if TYPE_CHECKING:
    from eventlake.library.report import Report, TableReport
    from eventlake.library.runners import Runners
    from eventlake.library.workspace import Workspace, create, open  # noqa: A004 - it is called eventlake.open

_PLACES = {"Report": "report", "TableReport": "report", "Runners": "runners"}


def __getattr__(name: str) -> Any:
    """Load what is asked for: a command that needs runners only does not wait for queries and audits."""
    if name not in __all__:
        raise AttributeError(f"module 'eventlake.library' has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    return getattr(importlib.import_module(f"eventlake.library.{_PLACES.get(name, 'workspace')}"), name)
