"""A Spark that reads tables of a Hive metastore, in a process of its own: a program that tests start.

Each line of its input is a list of statements, as JSON; it answers with a line of what each of them gave.
"""

import json
import os
import sys
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable


def answered(session: Any, statement: str) -> Any:
    try:
        return [row.asDict(recursive=True) for row in session.sql(statement).collect()]
    except Exception as error:  # whatever it is, the test that asked must see it
        return f"{type(error).__name__}: {str(error)[:2000]}"


def main() -> None:
    from pyspark.sql import SparkSession

    uri, folder, *settings = sys.argv[1:]
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").enableHiveSupport()
    builder = builder.config("spark.hadoop.hive.metastore.uris", uri).config("spark.sql.warehouse.dir", folder)
    builder = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "1")
    for setting in settings:
        builder = builder.config(*setting.split("=", 1))
    spark = builder.getOrCreate()
    for line in sys.stdin:
        session = spark.newSession()  # which has looked at no table yet
        answers = [answered(session, statement) for statement in json.loads(line)]
        sys.stdout.write(json.dumps(answers, default=str) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
