"""What tasks need to know of who may get in, put down where they find it."""

from eventlake.lake.policy_files import folder_of, number_of
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
    for old in there:
        if number_of(old) < version:  # another run may have a newer one
            lake.storage.delete(old)
    return path
