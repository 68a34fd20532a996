"""Does the lake hold what the ledger says, and is it still backed by the raw archive?

Looks at every raw file, every data file's footer, every partition and the whole index of message ids, and names what
differs. Reads no event: that the events themselves are right was proved by the books when they were loaded.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventlake.archive import layout as archive
from eventlake.control.sources import Source
from eventlake.lake import ids
from eventlake.lake.layout import DATA
from eventlake.workspace import Workspace

Progress = Callable[[str, int, int], None]


class Finding(NamedTuple):
    """Something that is not as it should be."""

    source: str
    kind: str
    where: str
    detail: str


def verify(workspace: Workspace, source: Source, progress: Progress) -> list[Finding]:
    """Everything that differs for one source; an empty list is good news."""
    checks = _Checks(workspace, source, progress)
    return [
        Finding(source.slug, *found)
        for found in (*checks.raw_files(), *checks.data_files(), *checks.partitions(), *checks.sums())
    ]


class _Checks:
    def __init__(self, workspace: Workspace, source: Source, progress: Progress) -> None:
        self._workspace = workspace
        self._source = source
        self._progress = progress
        self._files = workspace.ledger.data_files(source.id)
        self._raw = workspace.ledger.raw_files(source.id)

    def raw_files(self) -> Iterator[tuple[str, str, str]]:
        """Raw files that vanished or changed after they were loaded, and entries that do not add up."""
        present = {file.path: file for file in archive.raw_files(self._workspace.storage, self._source.id)}
        for path, loaded in sorted(self._raw.items()):
            stored = present.get(path)
            if stored is None:
                yield "raw_file_gone", path, f"{loaded.loaded} rows were loaded from it"
            elif (stored.size, stored.etag) != (loaded.size, loaded.etag):
                yield "raw_file_changed", path, f"{loaded.size} bytes when it was loaded, {stored.size} now"
            rest = loaded.duplicates + loaded.suppressed + loaded.blocked + loaded.quarantined
            if loaded.lines != loaded.loaded + rest:
                yield (
                    "books",
                    path,
                    f"{loaded.lines} lines, but {loaded.loaded} loaded and {rest} accounted for",
                )

    def data_files(self) -> Iterator[tuple[str, str, str]]:
        """Data files that vanished, changed, or are not ours."""
        storage = self._workspace.storage
        for number, file in enumerate(self._files, 1):
            self._progress(f"verify {self._source.slug}", number, len(self._files))
            stored = storage.stat(file.path)
            if stored is None:
                yield "data_file_gone", file.path, f"{file.rows} rows"
                continue
            try:
                with storage.open_input(file.path) as source:
                    rows = pq.ParquetFile(source).metadata.num_rows
            except (pa.ArrowInvalid, OSError) as error:
                yield "data_file_broken", file.path, str(error)
                continue
            if rows != file.rows:
                yield "data_file_changed", file.path, f"{file.rows} rows when it was written, {rows} now"
            elif stored.size != file.size:
                yield (
                    "data_file_changed",
                    file.path,
                    f"{file.size} bytes when it was written, {stored.size} now",
                )
        ours = {file.path for file in self._files}
        for stored in storage.files(f"{DATA}/{self._source.rules.source_folder}"):
            if stored.path not in ours:
                yield "foreign_file", stored.path, "not written by a run: readers that list the folder see it"

    def partitions(self) -> Iterator[tuple[str, str, str]]:
        """Partitions that the catalog lacks, or has without data."""
        for table in self._workspace.catalog.tables(self._source.id):
            known = set(self._workspace.catalog.partitions(table.database, table.name))
            filled = {tuple(file.partition) for file in self._files if file.segment_type == table.segment_type}
            for values in sorted(filled - known):
                yield "partition_missing", f"{table.database}.{table.name}", "/".join(values)
            for values in sorted(known - filled):
                yield "partition_empty", f"{table.database}.{table.name}", "/".join(values)

    def sums(self) -> Iterator[tuple[str, str, str]]:
        """Rows of the ledger, of the data files and of the index, and the checksum of all message ids."""
        loaded = sum(file.loaded for file in self._raw.values())
        rows = sum(file.rows for file in self._files)
        indexed, checksum = 0, 0
        for path in self._workspace.ledger.index_files(self._source.id):
            if self._workspace.storage.stat(path) is None:
                yield "index_file_gone", path, "duplicates of its messages would not be noticed"
                continue
            with self._workspace.storage.open_input(path) as source:
                messages = ids.IdFile(source).read(ids.Share(0, ids.BUCKETS), ("high", "low"))
                high, low = (int(messages[half].sum(dtype=np.uint64)) for half in ("high", "low"))
                indexed, checksum = (
                    indexed + len(messages),
                    ids.add_checksums(checksum, ids.checksum_of(high, low)),
                )
        if not loaded == rows == indexed:
            yield (
                "sums",
                self._source.slug,
                f"{loaded} rows loaded, {rows} in data files, {indexed} in the index",
            )
        of_raw = 0
        for file in self._raw.values():
            of_raw = ids.add_checksums(of_raw, int(file.checksum, 16))
        if of_raw != checksum:
            yield (
                "checksum",
                self._source.slug,
                f"message ids: {of_raw:032x} by raw file, {checksum:032x} in the index",
            )
