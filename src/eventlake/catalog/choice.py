"""The catalog that shows a lake's tables to others, as its settings ask for it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from eventlake.errors import SetupError
from eventlake.lake.layout import Folders
from eventlake.settings import LakeSettings

if TYPE_CHECKING:
    from eventlake.catalog.glue import GlueCatalog
    from eventlake.catalog.hive import HiveCatalog

Databases = Callable[[], Mapping[str, str]]


def shown_in(
    settings: LakeSettings, root: str, databases: Databases, folders: Folders
) -> "GlueCatalog | HiveCatalog | None":
    """Glue, a Hive metastore, or none; `root` is where the lake is."""
    chosen = settings.catalog
    if chosen.kind == "glue":
        from eventlake.catalog.glue import GlueCatalog  # noqa: PLC0415 - only lakes on AWS have one

        return GlueCatalog(settings.aws.options, root, databases, catalog_id=chosen.catalog_id, folders=folders)
    if chosen.kind == "hive":
        try:
            from eventlake.catalog.hive import HiveCatalog  # noqa: PLC0415
            from eventlake.catalog.hive_client import Metastore  # noqa: PLC0415
        except ImportError as error:
            raise SetupError(
                "the client of Hive metastores is not installed", fix="pip install 'eventlake[hive]'"
            ) from error
        metastore = Metastore(chosen.uris, timeout=settings.timeout)
        address = root if "://" in root else f"file://{root}"
        return HiveCatalog(metastore, address, databases, folders=folders, scheme=chosen.location_scheme)
    return None
