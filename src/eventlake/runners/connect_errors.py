"""What an error of Spark Connect means, and who must act."""

import re
from collections.abc import Sequence

from eventlake.errors import (
    EventLakeError,
    InvalidSettingsError,
    SetupError,
    SignInDeniedError,
    SubmitDeniedError,
    TransientError,
    VersionMismatchError,
)
from eventlake.runners.task_errors import reason, translated

_STATUS = re.compile(r"<_\w*RpcError.*?\s+status = StatusCode\.(\w+)", re.DOTALL)
_DETAILS = re.compile(r'details = "(?P<details>.*)"')
_PYTHONS = re.compile(r"worker has different version: (?P<there>[0-9.]+) than that in driver: (?P<here>[0-9.]+),")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'")


def is_out_of_reach(error: Exception) -> bool:
    """Whether there was no answer."""
    return _status(error) in ("UNAVAILABLE", "DEADLINE_EXCEEDED")


def explained(step: str, error: Exception, server: str) -> EventLakeError | None:
    """The error of ours for one that came of asking a Connect server; None if it is about something else."""
    if not type(error).__module__.startswith(("pyspark", "grpc")):
        return None
    details = found["details"] if (found := _DETAILS.search(str(error))) else reason(error)
    match _status(error):
        case "UNAUTHENTICATED":
            return SignInDeniedError(f"{server} does not take the token: {details}", fix="check the runner's token")
        case "PERMISSION_DENIED":
            return SubmitDeniedError(f"may not use {server}: {details}", fix="ask whoever owns it for the right to")
        case "UNAVAILABLE" | "DEADLINE_EXCEEDED":
            return TransientError(
                f"Spark could not {step}: {server} does not answer: {details}",
                fix="see whether it runs, and whether the runner's url is right: host, port, and use_ssl=true if it "
                "speaks TLS. Then run it again: nothing was published",
            )
        case "UNIMPLEMENTED":
            return InvalidSettingsError(
                f"{server} does not speak Spark Connect: {details}", fix="correct the runner's url: sc://host:port"
            )
        case _:
            return _of_task(step, error, server)


def _of_task(step: str, error: Exception, server: str) -> EventLakeError:
    text = str(error)
    if versions := _PYTHONS.search(text):
        return VersionMismatchError(
            f"the workers of {server} run Python {versions['there']}, and this is {versions['here']}",
            fix=f"run eventlake with Python {versions['there']}, or let PYSPARK_PYTHON of the server be a Python "
            f"{versions['here']}",
        )
    if (module := _NO_MODULE.search(text)) and step == "start":
        return lacking([module["name"]])
    return translated(step, error, f"the logs of {server}")


def lacking(missing: Sequence[str], python: str = "") -> SetupError:
    """The error for workers that cannot import what they need."""
    libraries = [name for name in missing if not name.startswith("eventlake")]
    return InvalidSettingsError(
        f"the workers of the Connect server lack {', '.join(libraries or missing)}{f', in {python}' if python else ''}",
        fix="install eventlake's libraries where the server's PYSPARK_PYTHON is; or set libraries = \"sent\" in the "
        "settings of the runner: then they are sent along",
    )


def _status(error: Exception) -> str:
    """The code of gRPC, or nothing."""
    ask = getattr(error, "getGrpcStatusCode", None)  # since 4.1
    if ask is not None and ask().name != "UNKNOWN":
        return str(ask().name)
    found = _STATUS.match(str(error))
    return found[1] if found else ""
