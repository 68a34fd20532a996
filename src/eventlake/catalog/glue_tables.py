"""What is special about tables in the Glue Data Catalog. Pure."""

from eventlake.catalog import described
from eventlake.catalog.described import Described

# What Glue takes of what it tells of a table.
_TAKEN = (
    "Name",
    "Description",
    "Owner",
    "LastAccessTime",
    "LastAnalyzedTime",
    "Retention",
    "StorageDescriptor",
    "PartitionKeys",
    "ViewOriginalText",
    "ViewExpandedText",
    "TableType",
    "Parameters",
    "TargetTable",
)
MARKS = {"classification": "parquet"}
REPORTS = described.reports(
    ("source_id", "day"), "org.openx.data.jsonserde.JsonSerDe", marks={"classification": "json"}
)
_CREATED_AT_ONCE = 100
_COLUMNS_AT_ONCE = 10_000  # over all partitions of a call, to keep it small: each has all columns of its table


def as_input(table: Described) -> Described:
    """A table as Glue told it, as far as it takes it back."""
    return {key: value for key, value in table.items() if key in _TAKEN}


def partitions_at_once(table: Described) -> int:
    """How many partitions of a table one call may have."""
    return max(1, min(_CREATED_AT_ONCE, _COLUMNS_AT_ONCE // max(1, len(described.types_of(table)))))
