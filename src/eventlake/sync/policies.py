"""What tasks need to know of who and what may get in, put down where they, and whoever restores a lake, find it."""

from eventlake.errors import InvalidSettingsError
from eventlake.lake.policy_files import RULES, folder_of, number_of
from eventlake.policies.rules import without_its_key, without_keys
from eventlake.sync.work import Work


def suppressed_file(work: Work) -> str | None:
    """The file with those whose events are left out of a source, as of now; None if there is nobody.

    It is made anew when the list has changed, and holds hashes only.
    """
    lake, source_id = work.lake, work.job.connection.source.id
    version = lake.workspace.suppressions.version()
    if not version:
        return None
    folder = folder_of(lake.folders, source_id)
    path = f"{folder}/suppressed-{version}"
    there = [file.path for file in lake.storage.files(folder)]
    if path not in there:
        lake.storage.write(path, lake.workspace.suppressions.of_source(source_id).packed())
    if work.job.is_replay:  # beside which syncs go on
        own = f"{lake.folders.of_run(work.run_id)}/suppressed"
        lake.storage.write(own, lake.storage.read(path))
        return own
    for old in there:
        if number_of(old) < version:
            lake.storage.delete(old)
    return path


def rules_for(work: Work) -> bytes:
    """The plan of a source, how it is enforced, and its transformations; nothing if it has none of them.

    What the lake keeps of it is without the keys of hashes.
    """
    lake, source = work.lake, work.job.connection.source
    document = lake.workspace.plans.rules_of(source)
    if lost := without_its_key(document):
        raise InvalidSettingsError(
            f"the transformation {lost!r} of {source.slug} hashes by a key that was lost with the database",
            fix=f"`eventlake transform add {source.slug} FILE` with its key, or remove it; nothing is loaded before, "
            "for what is to be hashed would get in as it was sent",
        )
    path = f"{folder_of(lake.folders, source.id)}/{RULES}"
    try:
        kept = lake.storage.read(path)
    except FileNotFoundError:
        kept = b""
    shown = b"" if document.is_empty else without_keys(document).packed()
    if shown and shown != kept:
        lake.storage.write(path, shown)
    elif kept and not shown:
        lake.storage.delete(path)
    return b"" if document.is_empty else document.packed()
