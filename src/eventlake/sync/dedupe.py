"""Between the two jobs: which messages are loaded, which are copies, and what of the lake is written again."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from eventlake.errors import InternalError, InvalidSettingsError
from eventlake.lake import ids
from eventlake.lake.routes import Route
from eventlake.sync.discover import Found
from eventlake.sync.index import Index, Reindexed, with_index
from eventlake.sync.shares import dedupe_shares
from eventlake.sync.stage import Staged
from eventlake.sync.state import LakeState
from eventlake.sync.thinned import Thinned, without_messages
from eventlake.sync.work import Work
from eventlake.tasks import dedupe as task
from eventlake.tasks.counts import Count, added_up
from eventlake.tasks.dedupe import DedupeContext, DedupeResult
from eventlake.tasks.id_files import NewIds
from eventlake.tasks.scope import Mode, Scope


@dataclass
class Kept:
    """What all dedupe tasks decided."""

    files: dict[int, Count] = field(default_factory=dict)
    routes: dict[Route, Count] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)
    new_ids: list[NewIds] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)
    carried_routes: dict[Route, int] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)  # files with messages that leave the lake
    removed_routes: dict[Route, int] = field(default_factory=dict)
    thinned: Thinned = field(default_factory=Thinned)  # the index without them
    reindexed: Reindexed = field(default_factory=Reindexed)
    scope: Scope | None = None

    @property
    def messages(self) -> Count:
        """The messages of all routes."""
        whole = Count()
        for count in self.routes.values():
            whole = whole.plus(count)
        return whole

    @property
    def tables(self) -> dict[str, Count]:
        """The rows of each table. Outside of a replay's scope no row is written again."""
        tables: dict[str, Count] = {}
        for route, count in self.routes.items():
            for key in route:
                rows = count if self._is_in_scope(key) else count._replace(rewritten=0)
                tables[key] = tables.get(key, Count()).plus(rows)
        return tables

    @property
    def carried_tables(self) -> dict[str, int]:
        """How many rows of each table only the lake has."""
        return self._by_table(self.carried_routes)

    @property
    def removed_tables(self) -> dict[str, int]:
        """How many rows of each table leave the lake."""
        return self._by_table(self.removed_routes)

    def _by_table(self, routes: dict[Route, int]) -> dict[str, int]:
        tables: dict[str, int] = {}
        for route, messages in routes.items():
            for key in filter(self._is_in_scope, route):
                tables[key] = tables.get(key, 0) + messages
        return tables

    def _is_in_scope(self, table_key: str) -> bool:
        return self.scope is None or self.scope.has_table(table_key)

    @property
    def indexed(self) -> tuple[int, int]:
        """How many messages are new in the index, and their checksum."""
        checksum = ids.sum_checksums(part.checksum for part in self.new_ids)
        return sum(part.messages for part in self.new_ids), checksum


def dedupe(work: Work, state: LakeState, found: Found, staged: Staged) -> Kept:
    kept = with_index(
        work, state.index, state.data_files, lambda index, made: _decided(work, state, found, staged, index, made)
    )
    if kept.carried_routes and work.job.mode is Mode.REBUILD:
        raise InvalidSettingsError(
            f"{sum(kept.carried_tables.values())} rows are in the lake but no longer in the raw archive: "
            "writing all tables anew would lose them",
            fix="put the missing raw files back, or keep the settings as they are",
        )
    return kept


def _decided(work: Work, state: LakeState, found: Found, staged: Staged, index: Index, made: Reindexed) -> Kept:
    job = work.job
    if not staged.messages and not job.is_replay:
        return Kept(reindexed=made)
    sound = {file.path for file in index.sound}
    searched = [file.path for file in found.searched if file.path in sound]
    routes = job.connection.dialect.routes(frozenset(state.tables.keys() | staged.tables.keys()))
    is_about_tables = job.scope is not None and job.scope.table_keys is not None
    context = DedupeContext(
        folder=work.folder,
        storage=work.lake.storage,
        mode=job.mode,
        id_segments=tuple(staged.id_segments),
        staged_paths=tuple(staged.paths),
        index=(*searched, *(part.path for part in made.parts)),
        failed_files=staged.failed_files,
        scope=job.scope,
        routes=tuple(sorted(routes)) if is_about_tables else (),
        withheld=tuple(staged.withheld),
    )
    shares = ids.shares(dedupe_shares(staged.messages, work.runner.parallelism, work.sizes.shares))
    kept = combine(work.spread("dedupe", task.dedupe, context, shares), routes)
    kept.reindexed, kept.scope = made, job.scope
    if kept.removed and job.mode is Mode.REPLAY:  # a rebuild makes the whole index anew
        kept.thinned = without_messages(work, index, made, kept.removed)
    return kept


def combine(results: Sequence[DedupeResult], routes: Collection[Route]) -> Kept:
    """Join the results of dedupe tasks, which name routes by their hashes."""
    by_hash = {ids.route_hash(route): route for route in routes}
    kept, carried, removed = Kept(), Counter[int](), Counter[int]()
    for result in results:
        kept.dropped += [result.dropped] if result.dropped else []
        kept.new_ids += [result.new_ids] if result.new_ids else []
        kept.carried += [result.carried] if result.carried else []
        kept.removed += [result.removed] if result.removed else []
        carried.update(result.carried_routes)
        removed.update(result.removed_routes)
    kept.files = added_up(result.files for result in results)
    routes_counted = added_up(result.routes for result in results)
    for key in (*routes_counted, *carried, *removed):
        if key not in by_hash:
            problem = f"messages were counted on a route that neither the lake nor this run has: {key}"
            raise InternalError(problem, fix="run it again; if it happens twice, report it with this message")
    kept.routes = {by_hash[key]: count for key, count in routes_counted.items()}
    kept.carried_routes = {by_hash[key]: messages for key, messages in carried.items()}
    kept.removed_routes = {by_hash[key]: messages for key, messages in removed.items()}
    return kept
