"""SQL over the lake with DuckDB."""

from eventlake.query.answer import query, save

__all__ = ["query", "save"]
