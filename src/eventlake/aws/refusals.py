"""What an answer of AWS that refuses means, and who must act."""

from eventlake import errors
from eventlake.aws.session import AwsOptions
from eventlake.errors import (
    CatalogLimitError,
    EventLakeError,
    ExternalIdMissingError,
    ExternalIdWrongError,
    InvalidSettingsError,
    PermissionMissingError,
    SignInDeniedError,
    TransientError,
)

_ENDED = {"ExpiredToken", "ExpiredTokenException", "RequestExpired"}
_UNKNOWN = {"InvalidAccessKeyId", "InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException"}
_SKEWED = "RequestTimeTooSkewed"
_NOT_ALLOWED = {"403", "AccessDenied", "AccessDeniedException", _SKEWED, *_ENDED, *_UNKNOWN}
_TOO_MANY = {"Throttling", "ThrottlingException", "TooManyRequestsException", "RequestLimitExceeded", "SlowDown"}
PAST_A_LIMIT = "ResourceNumberLimitExceededException"
NOT_TAKEN = (PAST_A_LIMIT, "InvalidInputException", "ValidationException")  # of what a catalog is asked to hold
_WRONG = {"ParamValidationError", "ProfileNotFound", "ConfigParseError", "InvalidRegionError"}
_NO_CREDENTIALS = {"NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"}
_LIBRARIES = ("botocore", "boto3", "s3transfer", "urllib3")

# The right that an operation needs, and the error that says it is missing.
_RIGHTS: dict[str, tuple[str, type[PermissionMissingError]]] = {
    "ListObjectsV2": ("s3:ListBucket", errors.ListDeniedError),
    "GetObject": ("s3:GetObject", errors.DownloadDeniedError),
    "HeadObject": ("s3:GetObject", errors.DownloadDeniedError),
    "PutObject": ("s3:PutObject", errors.UploadDeniedError),
    "CopyObject": ("s3:GetObject and s3:PutObject", errors.UploadDeniedError),
    "CreateMultipartUpload": ("s3:PutObject", errors.UploadDeniedError),
    "UploadPart": ("s3:PutObject", errors.UploadDeniedError),
    "DeleteObject": ("s3:DeleteObject", errors.DeleteDeniedError),
    "DeleteObjects": ("s3:DeleteObject", errors.DeleteDeniedError),
    "GetBucketLifecycleConfiguration": ("s3:GetLifecycleConfiguration", PermissionMissingError),
    "PutBucketLifecycleConfiguration": ("s3:PutLifecycleConfiguration", PermissionMissingError),
    "GetTable": ("glue:GetTable", errors.CatalogReadDeniedError),
    "GetTables": ("glue:GetTables", errors.CatalogReadDeniedError),
    "GetTableVersions": ("glue:GetTableVersions", errors.CatalogReadDeniedError),
    "GetPartitions": ("glue:GetPartitions", errors.CatalogReadDeniedError),
    "CreateDatabase": ("glue:CreateDatabase", errors.CatalogWriteDeniedError),
    "CreateTable": ("glue:CreateTable", errors.CatalogWriteDeniedError),
    "UpdateTable": ("glue:UpdateTable", errors.CatalogWriteDeniedError),
    "BatchCreatePartition": ("glue:BatchCreatePartition", errors.CatalogWriteDeniedError),
    "BatchUpdatePartition": ("glue:BatchUpdatePartition", errors.CatalogWriteDeniedError),
    "DeleteTable": ("glue:DeleteTable", errors.CatalogDeleteDeniedError),
    "BatchDeletePartition": ("glue:BatchDeletePartition", errors.CatalogDeleteDeniedError),
    "DeleteTableVersion": ("glue:DeleteTableVersion", errors.CatalogDeleteDeniedError),
    "CancelSteps": ("elasticmapreduce:CancelSteps", errors.SubmitDeniedError),
    "TerminateJobFlows": ("elasticmapreduce:TerminateJobFlows", errors.SubmitDeniedError),
    "ListInstanceGroups": ("elasticmapreduce:ListInstanceGroups", errors.JobStatusDeniedError),
    "ListInstanceFleets": ("elasticmapreduce:ListInstanceFleets", errors.JobStatusDeniedError),
    "ListBootstrapActions": ("elasticmapreduce:ListBootstrapActions", errors.JobStatusDeniedError),
    "GetManagedScalingPolicy": ("elasticmapreduce:GetManagedScalingPolicy", errors.JobStatusDeniedError),
    "GetApplication": ("emr-serverless:GetApplication", errors.JobStatusDeniedError),
    "CancelJobRun": ("emr-serverless:CancelJobRun", errors.SubmitDeniedError),
    "AddJobFlowSteps": ("elasticmapreduce:AddJobFlowSteps", errors.SubmitDeniedError),
    "RunJobFlow": ("elasticmapreduce:RunJobFlow and iam:PassRole", errors.SubmitDeniedError),
    "StartJobRun": ("emr-serverless:StartJobRun and iam:PassRole", errors.SubmitDeniedError),
    "DescribeStep": ("elasticmapreduce:DescribeStep", errors.JobStatusDeniedError),
    "DescribeCluster": ("elasticmapreduce:DescribeCluster", errors.JobStatusDeniedError),
    "StartQueryExecution": ("athena:StartQueryExecution", PermissionMissingError),
    "GetQueryExecution": ("athena:GetQueryExecution", PermissionMissingError),
    "GetQueryResults": ("athena:GetQueryResults", PermissionMissingError),
    "StopQueryExecution": ("athena:StopQueryExecution", PermissionMissingError),
    "GetJobRun": ("emr-serverless:GetJobRun", errors.JobStatusDeniedError),
}


def code_of(error: Exception) -> str:
    """The code of an answer that refuses; empty if it is something else."""
    response = getattr(error, "response", None) or {}
    return str(response.get("Error", {}).get("Code", "")) if isinstance(response, dict) else ""


def explained(error: Exception, what: str, options: AwsOptions) -> EventLakeError | None:
    """The error to raise instead; None if this one does not come from AWS or its library."""
    name = type(error).__name__
    operation = getattr(error, "operation_name", "")
    if operation == "AssumeRole" and code_of(error) in _NOT_ALLOWED:
        return _role_refused(error, what, options)
    if code_of(error) in _NOT_ALLOWED or name in _NO_CREDENTIALS:
        return refused(operation, code_of(error), str(error), what)
    if code_of(error) in NOT_TAKEN:
        return CatalogLimitError(f"could not {what}: {error}", fix="make room, or ask AWS for a higher limit")
    if name in _WRONG:
        return InvalidSettingsError(f"could not {what}: {error}", fix="correct the settings of aws and s3")
    if (busy := too_many(code_of(error), what, str(error))) is not None:
        return busy
    if type(error).__module__.startswith(_LIBRARIES):
        return TransientError(f"could not {what}: {error}", fix="check the network, then run it again")
    return None


def too_many(code: str, what: str, answer: str) -> TransientError | None:
    """The error for an answer that says that there are too many requests; None if it says something else."""
    if code not in _TOO_MANY:
        return None
    return TransientError(
        f"could not {what}: {answer}",
        fix="run it again in some minutes: AWS takes no more requests now; if it goes on, let fewer syncs run at "
        "once, or ask AWS for a higher rate",
    )


def is_refusal(code: str) -> bool:
    """Whether an answer with this code says that something may not be done."""
    return code in _NOT_ALLOWED


def refused(operation: str, code: str, answer: str, what: str) -> PermissionMissingError:
    """The error for an operation that may not be done; it names the right that is missing, if one is."""
    if code in _ENDED:
        return SignInDeniedError(
            f"may not {what}, because the session has ended: {answer}",
            fix="sign in again, for example with `aws sso login`, then run it again: nothing is lost. For long runs, "
            "set aws.role_arn: eventlake assumes the role again before its session ends",
        )
    if code == _SKEWED:
        return SignInDeniedError(
            f"may not {what}, because the clock of this machine is wrong: {answer}",
            fix="set the clock, or let NTP do it, then run it again: nothing is lost",
        )
    if code in _UNKNOWN:
        return SignInDeniedError(
            f"may not {what}, because AWS does not know who this is: {answer}",
            fix="check the access key and its secret, or aws.profile; `aws sts get-caller-identity` tries them",
        )
    right, kind = _RIGHTS.get(operation, ("", PermissionMissingError))
    fix = "give the user or role that runs this the rights that docs/aws.md lists"
    return kind(f"may not {what}: {answer}", fix=f"grant {right}; {fix}" if right else fix)


def _role_refused(error: Exception, what: str, options: AwsOptions) -> EventLakeError:
    problem = f"may not {what}: {options.role_arn} may not be assumed"
    if options.external_id:
        return ExternalIdWrongError(
            f"{problem} with the external id {options.external_id!r}: {error}",
            fix="compare aws.external_id with sts:ExternalId in the role's trust policy, which must also name who runs "
            "this; see `aws sts get-caller-identity`",
        )
    return ExternalIdMissingError(
        f"{problem}, and no external id is set: {error}",
        fix="set aws.external_id to what the role's trust policy asks for; if it asks for none, let it name who runs "
        "this; see `aws sts get-caller-identity`",
    )
