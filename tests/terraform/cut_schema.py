"""Cut the schema of a provider to what a module uses, from the bindings that are made of it.

    npm pack @cdktf/provider-aws@21.22.1 && tar xzf cdktf-provider-aws-*.tgz package/.jsii
    python tests/terraform/cut_schema.py package/.jsii deploy/terraform/aws > tests/terraform/schemas/aws.json

The same for `deploy/terraform/azure` with azurerm@14.23.1, azuread@14.3.1, databricks@15.16.1 and random@12.0.1. The
bindings tell names, types, what is required, and which blocks there are and how often. They do not tell lists from
sets, nor which optional arguments are computed.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

Json = dict[str, Any]
_LINK = re.compile(
    r"providers/(?P<source>[\w-]+/[\w-]+)/(?P<version>[\d.]+)/docs(?:/(?:resources|data-sources)/\w+)?#(?P<name>\w+) "
)


class Bindings:
    def __init__(self, provider: str, types: Json) -> None:
        self._package = f"@cdktf/provider-{provider}"
        self._types = types
        self.source = self.version = ""

    def of(self, module: str, name: str) -> Json:
        """A resource or data source: its arguments, and what it tells besides."""
        found = self.block(f"{self._package}.{module}.{name}Config")
        if name.startswith("Data"):  # tells what it is not asked for
            found["attributes"] |= {
                key: what | {"computed": True} for key, what in found["attributes"].items() if what["optional"]
            }
        for told in self._types[f"{self._package}.{module}.{name}"]["properties"]:
            plain = re.sub(r"(?<!^)(?=[A-Z])", "_", told["name"]).lower()
            kind = self._type(told["type"])
            known = plain in found["attributes"] or plain in found["blocks"]
            if kind and not known and not told.get("static") and not plain.endswith("_input"):
                found["attributes"][plain] = {"type": kind, "computed": True}
        found["attributes"]["id"] = {"type": "string", "optional": True, "computed": True}
        return found

    def block(self, fqn: str) -> Json:
        attributes, blocks = {}, {}
        for told in self._types[fqn].get("properties", ()):
            text = json.dumps(told.get("docs", {}))
            link = _LINK.search(text)
            if not link:
                continue  # not the provider's: count, depends_on, …
            self.source, self.version = link["source"], link["version"]
            name, needed = link["name"], not told.get("optional", False)
            below = self._struct(told["type"])
            if below and " block." in told["docs"].get("summary", ""):
                fqn_below, many = below
                blocks[name] = {"many": many, "required": needed, "block": self.block(fqn_below)}
            else:
                kind = self._type(told["type"]) or "dynamic"
                attributes[name] = {"type": kind, "required": needed, "optional": not needed}
        return {"attributes": attributes, "blocks": blocks}

    def _struct(self, kind: Json) -> tuple[str, bool] | None:
        for one in kind.get("union", {}).get("types", [kind]):
            many = one.get("collection", {}).get("kind") == "array"
            fqn = one["collection"]["elementtype"].get("fqn", "") if many else one.get("fqn", "")
            if fqn.startswith(f"{self._package}."):
                return fqn, many
        return None

    def _type(self, kind: Json) -> Any:
        for one in kind.get("union", {}).get("types", [kind]):
            if one.get("primitive") in ("string", "number", "boolean"):
                return {"boolean": "bool"}.get(one["primitive"], one["primitive"])
            if "collection" in one:
                below = self._type(one["collection"]["elementtype"])
                return ["map" if one["collection"]["kind"] == "map" else "list", below] if below else None
        return None


def main() -> None:
    package = json.loads(Path(sys.argv[1]).read_text())
    provider, types = package["name"].removeprefix("@cdktf/provider-"), package["types"]
    text = "".join(file.read_text() for file in sorted(Path(sys.argv[2]).rglob("*.tf")))
    # A module is called like the resource, and so is its class, at times with an A to tell it from another.
    classes = [name.removesuffix("Config").split(".")[1:] for name in types if name.endswith("Config")]
    modules = {
        module.lower(): (module, name)
        for module, name in classes
        if name.lower() in (module.lower(), f"{module}a".lower())
    }
    bindings = Bindings(provider, types)
    cut: Json = {"resource": {}, "data": {}}
    for kind, name in sorted(set(re.findall(rf'^(resource|data) "({provider}_\w+)"', text, re.MULTILINE))):
        plain = (f"data{provider}" if kind == "data" else "") + name.removeprefix(f"{provider}_").replace("_", "")
        cut[kind][name] = bindings.of(*modules[plain])
    cut["provider"] = {"attributes": {}, "blocks": {}}
    if re.search(rf'^provider "{provider}"', text, re.MULTILINE):
        cut["provider"] = bindings.block(f"@cdktf/provider-{provider}.provider.{provider.title()}ProviderConfig")
    cut |= {"source": bindings.source, "version": bindings.version}
    json.dump(cut, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
