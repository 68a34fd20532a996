"""A Hive metastore as engines and people see it."""

from typing import Any

from pymetastore.hive_metastore import ttypes as thrift

from eventlake.catalog.hive_client import Metastore
from metastores import HiveServer


class Hive:
    def __init__(self, server: HiveServer) -> None:
        self.server = server
        self.metastore = Metastore([server.uri], timeout=60)

    def table(self, database: str, name: str) -> Any:
        return self.metastore.ask("get_table_req", "look", thrift.GetTableRequest(database, name)).table

    def tables(self, database: str) -> list[str]:
        return sorted(self.metastore.ask("get_all_tables", "look", database))

    def partitions(self, database: str, name: str) -> list[Any]:
        found: list[Any] = self.metastore.ask("get_partitions", "look", database, name, -1)
        return sorted(found, key=lambda partition: list(partition.values))

    def edit(self, table: Any) -> None:
        self.metastore.ask("alter_table", "edit", table.dbName, table.tableName, table)

    def make(self, table: Any) -> None:
        self.metastore.ask("create_table", "make", table)


def types_of(table: Any) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in table.sd.cols]


def foreign(database: str, name: str, **given: Any) -> Any:
    """A table that somebody else made."""
    storage = thrift.StorageDescriptor(
        cols=[thrift.FieldSchema("id", "string", None)],
        location=given.pop("location", None),
        inputFormat="org.apache.hadoop.mapred.TextInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
        serdeInfo=thrift.SerDeInfo(
            serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}
        ),
        parameters={},
    )
    storage.cols = given.pop("cols", storage.cols)
    whole = {"sd": storage, "partitionKeys": [], "parameters": {}, "tableType": "MANAGED_TABLE", **given}
    return thrift.Table(dbName=database, tableName=name, **whole)
