"""What a Spark session of somebody is to see of a lake."""

from eventlake.catalog import view_sql
from eventlake.runners.spark_tables import SparkTable, SparkView
from eventlake.workspace import Lake


def spark_tables(lake: Lake) -> tuple[str, list[SparkTable], list[SparkView]]:
    """The lake's name, the tables that have data, and the views over them."""
    known, tables = [], []
    for table in lake.catalog.tables():
        files = [file.path for file in lake.ledger.data_files(table.source_id, table.table_key)]
        if files:
            known.append(table)
            tables.append(
                SparkTable(
                    table.database,
                    table.name,
                    lake.storage.full(table.location),
                    [path.removeprefix(f"{table.location}/") for path in files],
                    [(column.name, column.type.value) for column in table.schema.columns],
                    table.partition_keys,
                )
            )
    views = [
        SparkView(one.settings.warehouse, view.name, view_sql.select(view, view_sql.SPARK))
        for one in lake.connections
        for view in lake.warehouse_views(one, [table for table in known if table.source_id == one.source.id])
    ]
    return lake.name, tables, views
