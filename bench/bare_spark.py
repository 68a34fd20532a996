"""The least that a PySpark program can cost: start a session, count ten rows, and once more while it is warm.

python -m bench.bare_spark ["options for Java"]
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import SparkSession

started = time.perf_counter()
builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
for options in sys.argv[1:]:
    builder = builder.config("spark.driver.extraJavaOptions", options)
spark = builder.getOrCreate()
spark.range(10).count()
cold = time.perf_counter()
spark.range(10).count()
warm = time.perf_counter()
spark.stop()
print(json.dumps({"cold count": cold - started, "warm count": warm - cold}))
