"""What the steps of a run gave."""

from typing import NamedTuple

from eventlake.control.ledger import LakeFile
from eventlake.lake.parquet import DataFile
from eventlake.sync.books import Accounts
from eventlake.sync.dedupe import Kept
from eventlake.sync.discover import Found
from eventlake.sync.index import Reindexed
from eventlake.sync.jobs import Job
from eventlake.sync.plan import TablePlan
from eventlake.sync.stage import Staged
from eventlake.tasks.publish import Published
from eventlake.tasks.scope import Mode


class Outcome(NamedTuple):
    found: Found
    staged: Staged
    kept: Kept
    plans: list[TablePlan]
    published: list[Published]
    accounts: Accounts
    replaced: list[LakeFile]  # data files that the new ones take the place of

    @property
    def by_table(self) -> dict[str, list[Published]]:
        """What was published of each table, by its key."""
        found: dict[str, list[Published]] = {}
        for part in self.published:
            found.setdefault(part.table_key, []).append(part)
            for file in part.discards:
                found.setdefault(file.table_key, []).append(Published(file.table_key, [file], file.rows))
        return found

    @property
    def data_files(self) -> list[DataFile]:
        """All that were written."""
        return [file for part in self.published for file in (*part.files, *part.discards)]

    @property
    def partitions(self) -> dict[str, set[tuple[str, ...]]]:
        """Those that were written, by table key."""
        return {key: {file.partition for part in parts for file in part.files} for key, parts in self.by_table.items()}

    @property
    def rescued(self) -> int:
        """Values that did not fit their columns."""
        return sum(sum(part.rescued.values()) for part in self.published)

    @property
    def carried(self) -> int:
        """Rows that only the lake had."""
        return sum(self.kept.carried_tables.values())

    @property
    def removed(self) -> int:
        """Rows that leave the lake."""
        return sum(self.kept.removed_tables.values())

    def reindexed(self, job: Job) -> Reindexed:
        """The part of the index that was made anew because it was lost; a rebuild makes all of it anew anyway."""
        return Reindexed() if job.mode is Mode.REBUILD else self.kept.reindexed
