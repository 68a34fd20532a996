"""The spark-submit that starts a driver on a cluster."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from eventlake.runners.entry import ENVIRONMENT
from eventlake.runners.package import Package

PYTHON = f"./{ENVIRONMENT}/bin/python"


class Submission(NamedTuple):
    """What is submitted: the package, its entry and Spark's configuration."""

    package: Package
    conf: Mapping[str, str]
    python: str  # the interpreter on the nodes
    describe: Callable[[str], str]  # what the driver is told of a session

    def arguments(self, session: str) -> list[str]:
        """What the entry is told."""
        return [self.package.digest, self.describe(session)]

    @property
    def configuration(self) -> dict[str, str]:
        return {
            "spark.archives": f"{self.package.tarball}#{ENVIRONMENT}",
            "spark.pyspark.python": PYTHON,
            # The entry, which looks at the package first, is not run by anything that is in the package.
            "spark.pyspark.driver.python": self.python,
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
            self.package.entry,
            *self.arguments(session),
        ]
