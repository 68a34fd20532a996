"""How many changes are carried out on a catalog that is a server: several at once, and those that can be."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from eventlake.catalog.base import TableChange
from eventlake.errors import CatalogLimitError

MOST = 10  # tables that are told of; the rest is counted

Item = TypeVar("Item")
Result = TypeVar("Result")


def within_limits(
    changes: Sequence[TableChange], apply: Callable[[TableChange], None], catalog: str, *, threads: int
) -> list[str]:
    """Change tables; returns what the catalog did not take, which must not keep other tables out."""

    def tried(change: TableChange) -> str | None:
        try:
            apply(change)
        except CatalogLimitError as error:
            return f"{change.database}.{change.table} is not as it should be in {catalog}: {error.problem}"
        return None

    refused = [told for told in at_once(tried, changes, threads) if told]
    rest = [f"{len(refused) - MOST} more tables are not as they should be in {catalog}"] if refused[MOST:] else []
    return [*refused[:MOST], *rest]


def at_once(do: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """Do something with each item, with several at a time; what came of it, in their order."""
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(do, items))


def in_parts(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
