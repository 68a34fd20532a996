"""The least that a PySpark program can cost: start a session, count ten rows, and once more while it is warm."""

from __future__ import annotations

import json
import time

from pyspark.sql import SparkSession

started = time.perf_counter()
spark = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false").getOrCreate()
spark.range(10).count()
cold = time.perf_counter()
spark.range(10).count()
warm = time.perf_counter()
spark.stop()
print(json.dumps({"cold count": cold - started, "warm count": warm - cold}))
