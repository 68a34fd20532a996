"""Events that another source is to hear of, put into its raw archive."""

from eventlake.archive import layout as archive
from eventlake.sync.stage import Staged
from eventlake.sync.work import Work


def forward(work: Work, staged: Staged) -> None:
    """Give other sources what was forwarded to them; their next syncs load it.

    A run that fails after this forwards the same messages again when it is repeated; copies of messages are no rows.
    """
    known = {source.id for source in work.lake.workspace.sources.all()}
    for number, (source_id, path) in enumerate(staged.forwarded):
        if source_id in known:
            name = f"{archive.FORWARDED}{work.run_id}-{number}.gz"
            target = archive.path(source_id, work.lake.clock.now(), name)
            with work.lake.storage.open_stream(path) as source, work.lake.archive.open_output(target) as sink:
                while block := source.read(8 << 20):
                    sink.write(block)
