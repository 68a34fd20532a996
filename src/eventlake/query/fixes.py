"""What to do about a query that fails, in the words of where it was asked."""

from typing import NamedTuple


class Fixes(NamedTuple):
    empty: str
    refused: str
    too_long: str
    names: str  # where those of tables and columns are


ON_THE_COMMAND_LINE = Fixes(
    empty='for example `eventlake query "select 1"`',
    refused="`--output FILE` saves the rows of a query as CSV, Parquet or JSON; `--unrestricted` lets it do "
    "whatever the user who runs it may do",
    too_long="give it more time with --timeout, or ask for less",
    names="see `eventlake tables` and `eventlake describe TABLE` for the names",
)
OVER_HTTP = Fixes(
    empty="for example: select count(*) from web.page",
    refused="ask with SELECT; rows can be had as CSV or JSON",
    too_long="ask for fewer days, tables or columns at once",
    names="the names of tables and columns are in the list of tables, and proposed while one writes",
)
