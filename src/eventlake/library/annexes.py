"""Reading raw files where they are: archives that Segment or RudderStack wrote, or any folder of raw files."""

from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from eventlake.archive import annexes, layout
from eventlake.archive.annexes import Note
from eventlake.archive.importer import refuse_other_than_json
from eventlake.errors import InvalidSettingsError, NotFoundError
from eventlake.settings.mistakes import mistakes
from eventlake.settings.storage import is_in_a_cloud
from eventlake.storage.base import Storage
from eventlake.workspace import Workspace

_ARCHIVES = ("segment-logs", "rudder-logs")  # the folders of archives that hold one folder for each source


class Found(NamedTuple):
    """What there is to be read at an address."""

    address: str
    files: int
    bytes: int


def add_annex(workspace: Workspace, source: str, address: str, *, follow: bool) -> Found:
    """Let syncs load the raw files at an address, which stay there; with `follow` also those that come later."""
    source_id = workspace.sources.get(source).id
    storage = _of_source(workspace, address, source_id)
    _refuse_own(workspace, storage)
    files = tuple(annexes.files_of(storage))
    if not files and not follow:
        raise NotFoundError(
            f"there are no raw files in {storage.root}",
            fix="name the folder that holds them; or give --follow, if they are still to come",
        )
    if files:
        first = files[0].path
        with storage.open_stream(first.removeprefix(f"{storage.root}/")) as raw:
            refuse_other_than_json(raw, first)
    annexes.keep(workspace.archive, source_id, Note(storage.root, None if follow else files))
    return Found(storage.root, len(files), sum(file.size for file in files))


def notes_of(workspace: Workspace, source: str) -> list[Note]:
    return annexes.notes(workspace.archive, workspace.sources.get(source).id)


def forget_annex(workspace: Workspace, source: str, address: str) -> Note:
    """Let syncs read no more files from an address; what is in the lake stays."""
    known = {note.address: note for note in notes_of(workspace, source)}
    note = known.get(_storage_at(workspace, address).root) or known.get(address)
    if note is None:
        there = f": {', '.join(sorted(known))}" if known else ", nor any other"
        raise NotFoundError(f"nothing of {source} is read in {address}", fix=f"name one of its places{there}")
    annexes.forget(workspace.archive, workspace.sources.get(source).id, note.address)
    return note


def _storage_at(workspace: Workspace, address: str) -> Storage:
    if "://" not in address:
        return workspace.storage_at(str(Path(address).expanduser().resolve()))
    address = address.rstrip("/")
    if not is_in_a_cloud(address):
        raise InvalidSettingsError(
            f"{address} is no address of raw files",
            fix="give a folder, s3://bucket/prefix, gs://bucket/prefix, or abfss://container@account.dfs.core.windows.net/…",
        )
    try:
        return workspace.storage_at(address)
    except ValidationError as error:
        raise InvalidSettingsError(f"{address}: {mistakes(error)}", fix="correct the address") from error


def _of_source(workspace: Workspace, address: str, source_id: str) -> Storage:
    """The storage at an address; of an archive with folders for several sources, that of this one."""
    storage = _storage_at(workspace, address)
    for name in _ARCHIVES:
        if storage.root.rpartition("/")[2] == name:
            return _below(workspace, storage, source_id)
        if name in storage.folders(""):
            return _below(workspace, workspace.storage_at(storage.full(name)), source_id)
    return storage


def _below(workspace: Workspace, archive: Storage, source_id: str) -> Storage:
    there = [name for name in archive.folders("") if not layout.is_hidden(name)]
    if source_id not in there:
        seen = f"those that are there: {', '.join(there[:10])}" if there else "which holds none"
        raise NotFoundError(
            f"there is no folder {source_id} in {archive.root}",
            fix=f"name the source's folder, {archive.root}/ID, {seen}; or give the source that id when it is added",
        )
    return workspace.storage_at(archive.full(source_id))


def _refuse_own(workspace: Workspace, annex: Storage) -> None:
    """What eventlake writes is raw files already, or none."""
    own = [workspace.archive.full(layout.ROOT)]
    for lake in workspace.lakes.values():
        own += [lake.storage.full(top) for top in lake.folders.tops]
    for folder in own:
        if f"{annex.root}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{annex.root}/"):
            raise InvalidSettingsError(
                f"{annex.root} and {folder}, which eventlake writes, are one in the other",
                fix="nothing is to be done for raw files of the archive: every sync finds them",
            )
