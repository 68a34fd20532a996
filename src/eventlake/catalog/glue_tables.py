"""What is special about tables in the Glue Data Catalog. Pure."""

from collections.abc import Sequence

from eventlake.aws.refusals import NOT_TAKEN
from eventlake.catalog import described
from eventlake.catalog.base import TableChange
from eventlake.catalog.described import Described
from eventlake.errors import CatalogLimitError, TransientError

GONE, THERE = "EntityNotFoundException", "AlreadyExistsException"

Values = tuple[str, ...]

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
DELETED_AT_ONCE = 25  # partitions that Glue takes in one call
_CREATED_AT_ONCE = 100
_COLUMNS_AT_ONCE = 10_000  # over all partitions of a call, to keep it small: each has all columns of its table


def as_input(table: Described) -> Described:
    """A table as Glue told it, as far as it takes it back."""
    return {key: value for key, value in table.items() if key in _TAKEN}


def partitions_at_once(table: Described) -> int:
    """How many partitions of a table one call may have."""
    return max(1, min(_CREATED_AT_ONCE, _COLUMNS_AT_ONCE // max(1, len(described.types_of(table)))))


def changes_partitions(before: Described, table: Described) -> bool:
    """Whether a table changes so that its partitions do. One without keys has none, and nobody need ask for them."""
    is_changed = described.is_retyped(before, table) or described.is_moved(before, table)
    return bool(described.keys_of(before)) and is_changed


def partition_changes(
    before: Described, table: Described, change: TableChange, there: Sequence[Values]
) -> tuple[list[Values], list[Values]]:
    """Of the partitions that are there, those that become as the table is; and those to be deleted.

    In a table that was taken over, only those that we write to are changed, and none is deleted.
    """
    if described.is_adopted(table):
        return [values for values in there if values in change.partitions], []
    gone = set(there if described.keys_of(before) != described.keys_of(table) else change.forgotten)
    return [values for values in there if values not in gone], sorted(gone)


def refuse_errors(answer: Described) -> None:
    """Raise what was wrong with a part of a batch; that a thing is there, or is not any more, is right."""
    for error in answer.get("Errors", ()):
        detail = error.get("ErrorDetail", {})
        if detail.get("ErrorCode") in NOT_TAKEN:
            raise CatalogLimitError(f"Glue refused a partition: {detail}", fix="make room, or ask for a higher limit")
        if detail.get("ErrorCode") not in (THERE, GONE):
            raise TransientError(f"Glue refused a partition: {detail}", fix="run it again")
