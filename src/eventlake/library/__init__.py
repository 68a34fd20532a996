"""eventlake as a library: a workspace that is opened, worked with and closed. The command line is one face of it.

Nothing here prints, handles signals or redirects anything. Progress is told to a callback. What goes wrong is raised,
as one of `eventlake.errors`, which says what happened and what to do.
"""

from eventlake.library.report import Report, TableReport
from eventlake.library.runners import Runners
from eventlake.library.workspace import Workspace, create, open  # noqa: A004 - it is called eventlake.open

__all__ = ["Report", "Runners", "TableReport", "Workspace", "create", "open"]
