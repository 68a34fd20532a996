"""Clients of AWS, with the credentials that all AWS tools find, or with those of a role that is assumed with them."""

from typing import TYPE_CHECKING, Any, NamedTuple

from eventlake.errors import InvalidSettingsError, SetupError

if TYPE_CHECKING:  # nodes of a cluster, which act in an identity of their own, need not have it
    from pydantic import SecretStr

ROLE_SESSION = "eventlake"  # as which CloudTrail shows what was done
PATIENCE = {"connect_timeout": 10, "read_timeout": 60, "retries": {"mode": "standard", "max_attempts": 5}}


class AwsOptions(NamedTuple):
    """Who acts, and where. What is secret among them is shown to nobody."""

    region: str | None = None
    role_arn: str | None = None
    external_id: str | None = None
    profile: str | None = None  # of the files in which AWS tools keep access keys
    access_key_id: "SecretStr | None" = None
    secret_access_key: "SecretStr | None" = None


def client(service: str, options: AwsOptions, *, endpoint: str | None = None, **config: Any) -> Any:
    """A client of one service; `config` is botocore's. Endpoints may also be given as AWS tools take them."""
    try:
        from botocore.config import Config  # noqa: PLC0415 - only what runs on AWS needs it
    except ImportError as error:
        raise SetupError("the AWS library is not installed", fix="pip install 'eventlake[aws]'") from error
    from botocore.exceptions import NoRegionError  # noqa: PLC0415

    try:
        return session(options).client(service, endpoint_url=endpoint, config=Config(**PATIENCE | config))
    except NoRegionError as error:
        raise InvalidSettingsError(
            f"{service} needs a region", fix="set aws.region, or AWS_DEFAULT_REGION, or the region of your AWS profile"
        ) from error
    except ValueError as error:
        raise InvalidSettingsError(
            f"the endpoint of {service} is not valid: {error}", fix="give a whole URL: http://host:port"
        ) from error


def session(options: AwsOptions) -> Any:
    import boto3  # noqa: PLC0415
    import botocore.session  # noqa: PLC0415
    from botocore.credentials import CredentialResolver  # noqa: PLC0415
    from botocore.exceptions import ProfileNotFound  # noqa: PLC0415

    try:
        own = boto3.session.Session(profile_name=options.profile, region_name=options.region, **_keys(options))
    except ProfileNotFound as error:
        raise InvalidSettingsError(
            f"there is no AWS profile {options.profile!r}",
            fix="`aws configure --profile NAME` makes one; or correct aws.profile",
        ) from error
    if not options.role_arn:
        return own
    assumed = botocore.session.get_session()
    assumed.register_component("credential_provider", CredentialResolver([_AssumedRole(own, options)]))
    return boto3.session.Session(botocore_session=assumed, region_name=options.region)


def _keys(options: AwsOptions) -> dict[str, str]:
    given = {"aws_access_key_id": options.access_key_id, "aws_secret_access_key": options.secret_access_key}
    return {name: secret.get_secret_value() for name, secret in given.items() if secret}


class _AssumedRole:
    """Credentials of a role, assumed when they are first needed and again before they expire."""

    METHOD = "assume-role"
    CANONICAL_NAME = "eventlake"

    def __init__(self, own: Any, options: AwsOptions) -> None:
        self._own = own
        self._options = options

    def load(self) -> Any:
        from botocore.credentials import DeferredRefreshableCredentials  # noqa: PLC0415

        return DeferredRefreshableCredentials(refresh_using=self._assume, method=self.METHOD)

    def _assume(self) -> dict[str, str]:
        from botocore.config import Config  # noqa: PLC0415

        asked = {"RoleArn": self._options.role_arn, "RoleSessionName": ROLE_SESSION}
        if self._options.external_id:
            asked["ExternalId"] = self._options.external_id
        found = self._own.client("sts", config=Config(**PATIENCE)).assume_role(**asked)["Credentials"]
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }
