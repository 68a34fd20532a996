"""Every error that eventlake raises on purpose, sorted by who must act.

    EventLakeError
    ├── SetupError                 somebody must change something: do not retry
    │   ├── InvalidSettingsError   a setting is missing or not allowed; below it, what about it
    │   ├── NotFoundError          a name that does not exist was asked for
    │   ├── PermissionMissingError the program may not do what it must; below it, which right is missing
    │   ├── VersionMismatchError   what runs here and what runs there do not go together
    │   ├── NoSpaceError           the disk is full
    │   ├── UnknownLakeError       the database does not know what is in the lake
    │   └── DamagedError           a file is not what it was when it was written
    ├── BusyError                  another run holds the source: try later
    ├── NotDueError                another did what was due
    ├── CancelledError             somebody wanted the run to end
    ├── TransientError             worth another attempt; below it, what the next attempt begins with
    └── InternalError              a law of eventlake does not hold: nothing is published

Each class carries the code that sync reports show; each message says what happened and what to do.
"""

import errno
from typing import ClassVar


class EventLakeError(Exception):
    """Anything this program raises on purpose."""

    code: ClassVar[str] = "internal_error"

    def __init__(self, problem: str, *, fix: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix
        self.run_id: str | None = None  # of the run that it ended

    def __str__(self) -> str:
        return f"{self.problem}\n  Fix: {self.fix}"


class SetupError(EventLakeError):
    code = "invalid_settings"


class InvalidSettingsError(SetupError):
    code = "invalid_settings"

    def __init__(self, problem: str, *, fix: str, fields: dict[str, str] | None = None) -> None:
        super().__init__(problem, fix=fix)
        self.fields = fields or {}  # what is wrong with which setting


class NotFoundError(SetupError):
    code = "not_found"


class PermissionMissingError(SetupError):
    code = "insufficient_permissions"


class ConfigurationError(InvalidSettingsError):
    """A setting of the workspace is missing or has a form that cannot be right."""

    code = "invalid_settings.configuration"


class PartitionMismatchError(InvalidSettingsError):
    code = "invalid_settings.date_partition"


class ExternalIdMissingError(InvalidSettingsError):
    code = "invalid_settings.external_id_not_set"


class ExternalIdWrongError(InvalidSettingsError):
    code = "invalid_settings.external_id_invalid"


class StagingDeniedError(PermissionMissingError):
    code = "insufficient_permissions.upload_staging"


class DownloadDeniedError(PermissionMissingError):
    code = "insufficient_permissions.download_object"


class UploadDeniedError(PermissionMissingError):
    code = "insufficient_permissions.upload_object"


class DeleteDeniedError(PermissionMissingError):
    code = "insufficient_permissions.delete_object"


class ListDeniedError(PermissionMissingError):
    code = "insufficient_permissions.list_bucket"


class SignInDeniedError(PermissionMissingError):
    """Whoever is asked does not believe who this is."""

    code = "insufficient_permissions.sign_in"


class SubmitDeniedError(PermissionMissingError):
    code = "insufficient_permissions.submit_job"


class JobStatusDeniedError(PermissionMissingError):
    code = "insufficient_permissions.job_status"


class CatalogReadDeniedError(PermissionMissingError):
    code = "insufficient_permissions.fetch_schema"


class CatalogWriteDeniedError(PermissionMissingError):
    code = "insufficient_permissions.change_catalog"


class CatalogDeleteDeniedError(PermissionMissingError):
    code = "insufficient_permissions.delete_table"


class CatalogLimitError(SetupError):
    """A catalog does not take a table, a partition or a version: it has as many as it may have, or none like this."""

    code = "catalog_limit"


class VersionMismatchError(SetupError):
    """Python or Spark on the other side is of a version that does not go together with the one here."""

    code = "version_mismatch"


class NoSpaceError(SetupError):
    code = "no_space"


class UnknownLakeError(SetupError):
    """The lake holds runs that the workspace database does not know."""

    code = "unknown_lake"


class DamagedError(SetupError):
    code = "damaged"


class BusyError(EventLakeError):
    code = "busy"


class NotDueError(EventLakeError):
    """A sync that was due has begun elsewhere."""

    code = "not_due"


class CancelledError(EventLakeError):
    """Somebody wanted a run to end. Whoever is told of its progress may raise this."""

    code = "cancelled"


class GivenUpError(CancelledError):
    """A run ended because whatever carried it out had to end. The next one makes up for it."""

    code = "given_up"


class TransientError(EventLakeError):
    code = "service_unavailable"


class QuotaExceededError(TransientError):
    """Whoever lends machines lends no more of them now."""

    code = "quota_exceeded"


class ClusterLostError(TransientError):
    """The cluster on which a run was carried out has ended."""

    code = "cluster_terminated"


class StagingLostError(TransientError):
    """Files that a run had staged are gone, so it cannot be finished."""

    code = "staging_lost"


class OvertakenError(TransientError):
    """Another run was committed on top of what a run had been made for."""

    code = "overtaken"


class LeaseLostError(TransientError):
    """A run stood still for so long that another took its place."""

    code = "lease_lost"


class InternalError(EventLakeError):
    code = "internal_error"


class DamagedIdsError(InternalError):
    """A file of message ids is not what was written."""


def waits_for_somebody(code: str | None) -> bool:
    """Whether what failed with this code fails again until somebody changes something."""
    return code in _codes_below(SetupError)


def _codes_below(kind: type[EventLakeError]) -> set[str]:
    return {kind.code}.union(*map(_codes_below, kind.__subclasses__()))


def of_system(error: OSError, what: str = "") -> EventLakeError:
    """What an error of the operating system means for the person who must act."""
    problem = f"{what}: {error.strerror or error}" if what else str(error)
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return PermissionMissingError(
            problem, fix="give the user that runs this the right to read the archive and to write the lake"
        )
    if isinstance(error, NotADirectoryError):
        return SetupError(
            f"{problem}: there is a file where a folder should be",
            fix="correct the root in eventlake.toml, or move the file away",
        )
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoSpaceError(problem, fix="make room on the disk, then run it again: nothing is lost")
    return TransientError(problem, fix="check the disk or the network, then run it again: nothing is lost")
