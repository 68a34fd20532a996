"""How long a commit takes to show many partitions in a Hive metastore: `PYTHONPATH=tests python -m bench.metastore`.

The metastore and its MariaDB are those of the tests, on this machine; MariaDB flushes every transaction, as it does by
itself. Every partition has a folder with a file, as when a run has moved its files there.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from eventlake.catalog import hive_tables
from eventlake.catalog.base import TableChange
from eventlake.catalog.embedded import EmbeddedCatalog
from eventlake.catalog.hive import HiveCatalog
from eventlake.catalog.hive_client import Metastore
from eventlake.catalog.mirrored import MirroredCatalog
from eventlake.control.database import connect
from eventlake.lake.layout import DatePartition
from eventlake.schema.evolve import Column
from eventlake.schema.types import ColumnType
from metastores import hive_server  # of the tests

DATABASE, SOURCE = "web", "src1"
FIRST_HOUR = 490_000


def change(table: int, partitions: int, columns: int) -> TableChange:
    name = f"track_{table}"
    kinds = (ColumnType.STRING, ColumnType.BIGINT, ColumnType.DECIMAL)
    return TableChange(
        database=DATABASE,
        table=name,
        source_id=SOURCE,
        table_key=name,
        location=f"segment-data/data/{SOURCE}/segment_type={name}",
        partition_keys=DatePartition.DAY_HOUR.keys,
        added=tuple(Column(f"properties_{n}", kinds[n % 3], f"/properties/{n}") for n in range(columns)),
        partitions=tuple(DatePartition.DAY_HOUR.values(FIRST_HOUR + n) for n in range(partitions)),
    )


def write_files(root: Path, one: TableChange) -> None:
    for number in range(len(one.partitions)):
        folder = root / one.location / DatePartition.DAY_HOUR.folder(FIRST_HOUR + number)
        folder.mkdir(parents=True)
        (folder / "1.parquet").write_bytes(b"1")


def measured(what: str, catalog: MirroredCatalog, changes: list[TableChange]) -> None:
    begun, count = time.perf_counter(), sum(len(one.partitions) for one in changes)
    refused = catalog.apply(changes, run_id="1", at=1)
    seconds = time.perf_counter() - begun
    if refused:
        raise SystemExit("\n".join(refused))
    print(f"{what}: {count:,} partitions in {seconds:.1f} s, {seconds / count * 1000:.2f} s per thousand", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.metastore", description=__doc__)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--at-once", type=int, default=hive_tables.MOST_AT_ONCE, help="partitions in one call")
    chosen = parser.parse_args()
    hive_tables.MOST_AT_ONCE = chosen.at_once
    with tempfile.TemporaryDirectory(prefix="eventlake-bench-") as scratch:
        folder = Path(scratch)
        (folder / "server").mkdir()
        with hive_server(folder / "server", durable=True) as server:
            hive = HiveCatalog(
                Metastore([server.uri], timeout=600), f"file://{folder}/lake", lambda: {SOURCE: DATABASE}
            )
            catalog = MirroredCatalog(EmbeddedCatalog(connect("sqlite:///catalog.db", folder), "default"), hive)
            catalog.prepare(DATABASE)
            one = change(0, chosen.partitions, chosen.columns)
            many = [change(n, chosen.partitions // 100, chosen.columns) for n in range(1, 101)]
            for made in (one, *many):
                write_files(folder / "lake", made)
            measured("one new table", catalog, [one])
            measured("the same again", catalog, [one])
            measured("with a new column", catalog, [replace(one, added=(Column("new", ColumnType.STRING, "/new"),))])
            measured("100 new tables", catalog, many)


if __name__ == "__main__":
    main()
