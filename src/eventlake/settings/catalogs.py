"""What a lake's tables are shown in."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Tag, model_validator

from eventlake.settings.section import Section, by_kind
from eventlake.settings.words import matching

_METASTORE = re.compile(r"thrift://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):(\d{1,5})")


def _metastores(uri: str) -> str:
    for one in uri.split(","):
        found = _METASTORE.fullmatch(one.strip())
        if not found or not 0 < int(found[2]) < 65536:
            raise ValueError("not thrift://host:9083, nor several of them with commas between them")
    return uri


Account = Annotated[str, matching(r"\d{12}", "the 12 digits of an AWS account")]
MetastoreUri = Annotated[str, AfterValidator(_metastores)]
S3Scheme = Literal["s3", "s3a"]
_URI = "The Hive metastore: thrift://host:9083; several with commas between them are tried in turn."
_SCHEME = "How a Hive metastore is told of places in buckets: s3, as EMR and Trino know it, or s3a, as Hadoop does."


class EmbeddedCatalogSettings(Section):
    kind: Literal["embedded"] = "embedded"


class GlueCatalogSettings(Section):
    kind: Literal["glue"] = "glue"
    catalog_id: Account | None = Field(
        None, description="Account of the Glue catalog; by default the one that is used."
    )


class HiveCatalogSettings(Section):
    kind: Literal["hive"] = "hive"
    uri: MetastoreUri = Field(description=_URI)
    location_scheme: S3Scheme = Field("s3", description=_SCHEME)

    @property
    def uris(self) -> list[str]:
        return [one.strip() for one in self.uri.split(",")]


CatalogSettings = Annotated[
    Annotated[EmbeddedCatalogSettings, Tag("embedded")]
    | Annotated[GlueCatalogSettings, Tag("glue")]
    | Annotated[HiveCatalogSettings, Tag("hive")],
    by_kind("embedded"),
]


class CatalogSection(Section):
    """The catalog of the default lake."""

    kind: Literal["embedded", "glue", "hive"] = Field(
        "embedded", description="glue, hive: tables are registered there as well."
    )
    glue_catalog_id: Account | None = Field(
        None, description="Account of the Glue catalog; by default the one that is used."
    )

    uri: MetastoreUri | None = Field(None, description=_URI)
    location_scheme: S3Scheme = Field("s3", description=_SCHEME)

    @model_validator(mode="after")
    def _reachable(self) -> "CatalogSection":
        if self.kind == "hive" and self.uri is None:
            raise ValueError("kind = hive needs uri = thrift://host:9083")
        return self

    @property
    def settings(self) -> CatalogSettings:
        if self.kind == "hive" and self.uri is not None:
            return HiveCatalogSettings(uri=self.uri, location_scheme=self.location_scheme)
        if self.kind == "glue":
            return GlueCatalogSettings(catalog_id=self.glue_catalog_id)
        return EmbeddedCatalogSettings()
