"""eventlake: Segment-spec events in, clean Parquet tables out.

    import eventlake

    with eventlake.open("my-lake") as workspace:
        for report in workspace.sync("web"):
            print(report.rows, report.notices)

See docs/library.md.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Report", "TableReport", "Workspace", "create", "open"]

if TYPE_CHECKING:
    from eventlake.library import Report, TableReport, Workspace, create, open  # noqa: A004 - it is eventlake.open


def __getattr__(name: str) -> Any:
    """Load the library when something of it is asked for: tasks and commands need other parts, and at once."""
    if name not in __all__:
        raise AttributeError(f"module 'eventlake' has no attribute {name!r}")
    from eventlake import library  # noqa: PLC0415

    return getattr(library, name)
