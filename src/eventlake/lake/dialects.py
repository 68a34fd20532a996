"""Dialects: how events become tables. A table has a key, which never changes, a name in the catalog, and a folder.

Which tables a message goes to, what they and their columns are called, which types values have, where files lie, what
happens to a value that does not fit: all of that is asked of the dialect of a lake, and of nothing else.
"""

from eventlake.lake.rudderstack import RudderStackDialect
from eventlake.lake.segment import SegmentDialect

Dialect = SegmentDialect | RudderStackDialect
