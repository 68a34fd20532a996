"""The spark-submit that starts a driver on a cluster."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

ENVIRONMENT = "environment"  # the folder into which Spark unpacks the package
PYTHON = f"./{ENVIRONMENT}/bin/python"


class Submission(NamedTuple):
    """What is submitted: the package, its entry and Spark's configuration."""

    archive: str  # URI of the package
    entry: str  # URI of the script
    conf: Mapping[str, str]
    python: str  # the interpreter on the nodes
    describe: Callable[[str], str]  # what the driver is told of a session

    @property
    def configuration(self) -> dict[str, str]:
        return {
            "spark.archives": f"{self.archive}#{ENVIRONMENT}",
            "spark.pyspark.python": PYTHON,
            "spark.pyspark.driver.python": PYTHON,
            "spark.executorEnv.EVENTLAKE_PYTHON": self.python,
            **self.conf,
        }

    def on_yarn(self, session: str) -> list[str]:
        """The words of the command, as an EMR step takes them."""
        conf = {
            "spark.yarn.appMasterEnv.EVENTLAKE_PYTHON": self.python,
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": PYTHON,
            "spark.yarn.maxAppAttempts": "1",  # the run asks anew, if at all
            **self.configuration,
        }
        options = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
        return [
            "spark-submit",
            "--deploy-mode",
            "cluster",
            "--name",
            "eventlake",
            *options,
            self.entry,
            self.describe(session),
        ]
