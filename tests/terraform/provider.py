"""A provider for Terraform that knows the schema of another and does nothing: enough for `validate`, and for mocks.

    provider.py SCHEMA …

Runs in an environment of its own, with the library `tf`; Terraform starts it (see `test_terraform.py`).
"""

import json
import sys
from pathlib import Path
from typing import Any

from tf import provider as tf_provider  # type: ignore[import-not-found]
from tf.gen import tfplugin_pb2 as pb  # type: ignore[import-not-found]
from tf.runner import run_provider  # type: ignore[import-not-found]

SCHEMA = json.loads(Path(sys.argv.pop(1)).read_text())
LIST = pb.Schema.NestedBlock.NestingMode.LIST


def block(told: dict[str, Any]) -> pb.Schema.Block:
    attributes = [
        pb.Schema.Attribute(
            name=name,
            type=json.dumps(what["type"]).encode(),
            required=what.get("required", False),
            optional=what.get("optional", False),
            computed=what.get("computed", False),
        )
        for name, what in told["attributes"].items()
    ]
    nested = [
        pb.Schema.NestedBlock(
            type_name=name,
            block=block(what["block"]),
            nesting=LIST,
            min_items=int(what["required"]),
            max_items=0 if what["many"] else 1,
        )
        for name, what in told["blocks"].items()
    ]
    return pb.Schema.Block(attributes=attributes, block_types=nested)


def schemas(kind: str) -> dict[str, pb.Schema]:
    return {name: pb.Schema(version=0, block=block(told)) for name, told in SCHEMA[kind].items()}


class OnlySchema(tf_provider.ProviderServicer):  # type: ignore[misc]
    def GetProviderSchema(self, request: Any, context: Any) -> pb.GetProviderSchema.Response:  # noqa: N802
        return pb.GetProviderSchema.Response(
            provider=pb.Schema(version=0, block=block(SCHEMA["provider"])),
            resource_schemas=schemas("resource"),
            data_source_schemas=schemas("data"),
        )

    def ValidateProviderConfig(self, request: Any, context: Any) -> pb.ValidateProviderConfig.Response:  # noqa: N802
        return pb.ValidateProviderConfig.Response()

    def ValidateResourceConfig(self, request: Any, context: Any) -> pb.ValidateResourceConfig.Response:  # noqa: N802
        return pb.ValidateResourceConfig.Response()

    def ValidateDataResourceConfig(  # noqa: N802
        self, request: Any, context: Any
    ) -> pb.ValidateDataResourceConfig.Response:
        return pb.ValidateDataResourceConfig.Response()


class Nothing:
    """What `run_provider` asks for; the schema is told above."""

    full_name = f"registry.terraform.io/{SCHEMA['source']}"

    def get_full_name(self) -> str:
        return self.full_name


if __name__ == "__main__":
    tf_provider.ProviderServicer = OnlySchema
    run_provider(Nothing())
