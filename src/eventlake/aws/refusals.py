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
    SetupError,
    TransientError,
)

_NOT_ALLOWED = {
    "403",
    "AccessDenied",
    "AccessDeniedException",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
}
PAST_A_LIMIT = "ResourceNumberLimitExceededException"
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
        return refused(operation, str(error), what)
    if code_of(error) == PAST_A_LIMIT:
        return CatalogLimitError(f"could not {what}: {error}", fix="ask AWS for a higher limit, or make room")
    if code_of(error) == "InvalidInputException":
        return SetupError(f"could not {what}: {error}", fix="see the limits of the account, and what is asked for")
    if name in _WRONG:
        return InvalidSettingsError(f"could not {what}: {error}", fix="correct the settings of aws and s3")
    if type(error).__module__.startswith(_LIBRARIES):
        return TransientError(f"could not {what}: {error}", fix="check the network, then run it again")
    return None


def is_refusal(code: str) -> bool:
    """Whether an answer with this code says that something may not be done."""
    return code in _NOT_ALLOWED


def refused(operation: str, answer: str, what: str) -> PermissionMissingError:
    """The error for an operation that may not be done; it names the right that is missing."""
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
