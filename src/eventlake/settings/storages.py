"""The storage that settings ask for. Most are folders: clients of others are loaded if needed."""

from eventlake.settings import Settings
from eventlake.settings.storage import GCS_ROOT, StorageSettings, container_of, is_on_azure
from eventlake.storage.base import Storage
from eventlake.storage.local import LocalStorage


def nearest(settings: Settings, address: str) -> StorageSettings:
    """Of a place whose address somebody gave: those of the annex around it, or of what is in the same container."""
    around = [one for one in settings.annexes.values() if f"{address}/".startswith(f"{one.address.rstrip('/')}/")]
    own = [one for one in (settings.archive, *settings.all_lakes.values()) if one]
    beside = [one for one in own if container_of(one.address) == container_of(address)]
    return max(around, key=lambda one: len(one.address), default=None) or (beside or own)[0]


def storage_of(settings: StorageSettings, root: str) -> Storage:
    """What `settings` tell of, at its `root` as it is written everywhere else."""
    if "://" not in root:
        return LocalStorage(root, timeout=settings.timeout)
    if is_on_azure(root):
        from eventlake.storage.adls import AzureStorage  # noqa: PLC0415

        return AzureStorage(root, settings.azure.options, timeout=settings.timeout)
    if GCS_ROOT.fullmatch(root):
        from eventlake.storage.gcs import GcsOptions, GcsStorage  # noqa: PLC0415

        return GcsStorage(root, GcsOptions(*(value for _, value in settings.gcs)), timeout=settings.timeout)
    from eventlake.storage.s3 import S3Options, S3Storage  # noqa: PLC0415

    options = S3Options(**settings.s3.model_dump(), aws=settings.aws.options)
    return S3Storage(root, options, timeout=settings.timeout)
