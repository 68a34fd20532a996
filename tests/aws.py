"""An AWS account for tests: moto's server in this process, made stricter where the real services are.

What moto lets pass, AWS does not, and eventlake relies on: a role's trust policy, the version under which a table is
written, the sizes of batches, the lengths of names.
"""

import contextlib
import json
import logging
import uuid
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

import boto3
from moto.core.authorization import enable_iam_authentication
from moto.core.exceptions import AccessDeniedError
from moto.glue.exceptions import GlueClientError
from moto.glue.responses import GlueResponse
from moto.iam.models import iam_backends
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
from moto.sts.models import STSBackend

from servers import AwsUser

REGION = "us-east-1"
ACCOUNT = "123456789012"
LONGEST_NAME = 255


class Aws(NamedTuple):
    endpoint: str

    def client(self, service: str, **options: Any) -> Any:
        return boto3.client(service, endpoint_url=self.endpoint, region_name=REGION, **options)

    def role(
        self,
        *,
        only: Sequence[str] = ("*",),
        without: Sequence[str] = (),
        below: str = "*",
        external_id: str | None = None,
    ) -> str:
        """The ARN of a new role that may do these things but not those.

        Whoever knows its external id may assume it.
        """
        iam, name = self.client("iam"), f"role-{uuid.uuid4().hex}"
        condition = {"Condition": {"StringEquals": {"sts:ExternalId": external_id}}} if external_id else {}
        trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole", **condition}
        arn: str = iam.create_role(RoleName=name, AssumeRolePolicyDocument=_policy(trust))["Role"]["Arn"]
        rights: list[dict[str, Any]] = [{"Effect": "Allow", "Action": list(only), "Resource": "*"}]
        if without:
            rights.append({"Effect": "Deny", "Action": list(without), "Resource": below})
        iam.put_role_policy(RoleName=name, PolicyName="rights", PolicyDocument=_policy(*rights))
        return arn

    def user(self) -> AwsUser:
        """A new user who may do everything, also while rights are checked."""
        iam, name = self.client("iam"), f"user-{uuid.uuid4().hex}"
        iam.create_user(UserName=name)
        everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        iam.put_user_policy(UserName=name, PolicyName="rights", PolicyDocument=_policy(everything))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return AwsUser(key["AccessKeyId"], key["SecretAccessKey"])


rights_checked = enable_iam_authentication


def _policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


@contextlib.contextmanager
def aws_account() -> Iterator[Aws]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line for each request would hide what failed
    with contextlib.ExitStack() as stack:
        for owner, name, check in (
            (STSBackend, "assume_role", _check_trust),
            (GlueResponse, "update_table", _check_version),
            (GlueResponse, "update_table", _check_names),
            (GlueResponse, "create_table", _check_names),
            (GlueResponse, "batch_create_partition", _check_batch),
        ):
            stack.enter_context(mock.patch.object(owner, name, _after(check, getattr(owner, name))))
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        stack.callback(server.stop)
        host, port = server.get_host_and_port()
        yield Aws(f"http://{host}:{port}")


def _after(check: Any, method: Any) -> Any:
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        check(self, *args, **kwargs)
        return method(self, *args, **kwargs)

    return checked


def _check_trust(_: Any, *, role_arn: str, external_id: str | None = None, **__: Any) -> None:
    for role in iam_backends[ACCOUNT]["aws"].roles.values():
        if role.arn == role_arn:
            trust = json.loads(role.assume_role_policy_document)["Statement"][0]
            asked = trust.get("Condition", {}).get("StringEquals", {}).get("sts:ExternalId")
            if asked in (None, external_id):
                return
    raise AccessDeniedError("somebody", "sts:AssumeRole")


def _check_version(self: Any) -> None:
    given = self.parameters.get("VersionId")
    name = self.parameters["TableInput"]["Name"]
    current = self.glue_backend.get_table(self.parameters["DatabaseName"], name).as_dict()["VersionId"]
    if given is not None and given != current:
        raise GlueClientError("ConcurrentModificationException", "Update table failed due to concurrent modifications.")


def _check_names(self: Any) -> None:
    table = self.parameters["TableInput"]
    columns = (column["Name"] for column in table.get("StorageDescriptor", {}).get("Columns", ()))
    if any(len(name) > LONGEST_NAME for name in (table["Name"], *columns)):
        raise GlueClientError(
            "ValidationException",
            "1 validation error detected: Value at 'table.name' failed to satisfy constraint: Member must have length "
            f"less than or equal to {LONGEST_NAME}",
        )


def _check_batch(self: Any) -> None:
    if len(self.parameters["PartitionInputList"]) > 100:
        raise GlueClientError("InvalidInputException", "too many partitions")
