"""`eventlake query`: what asks the lake in SQL."""

import sys
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from eventlake import query as engine
from eventlake.cli import output, state
from eventlake.cli.rows_view import Layout, show_rows
from eventlake.cli.state import JsonFlag, LakeOption
from eventlake.errors import InvalidSettingsError
from eventlake.reports.words import count, size
from eventlake.settings import DEFAULT_LAKE
from eventlake.workspace import Lake


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A query; - reads it from standard input.")],
    as_json: JsonFlag = False,
    limit: Annotated[int, typer.Option(min=0, help="Rows to show; --json and --output give all.")] = 100,
    records: Annotated[bool, typer.Option("--records", help="Show each row as a list of names and values.")] = False,
    wide: Annotated[bool, typer.Option("--wide", help="Show all columns, however long the lines.")] = False,
    target: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Save the rows: FILE.csv, .parquet, .json or .ndjson."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(min=0.001, metavar="SECONDS", help="Give up after this time.")
    ] = None,
    unrestricted: Annotated[
        bool,
        typer.Option(
            "--unrestricted", help="Let the query do what you may: files, network, extensions, other databases."
        ),
    ] = False,
    on_athena: Annotated[
        bool, typer.Option("--athena", help="Let Athena carry it out, in its SQL, over the tables in Glue.")
    ] = False,
    workgroup: Annotated[str, typer.Option(metavar="NAME", help="With --athena: the workgroup.")] = "primary",
    results: Annotated[
        str | None,
        typer.Option(metavar="s3://…", help="With --athena: where results go, if the workgroup does not say."),
    ] = None,
    name: LakeOption = DEFAULT_LAKE,
) -> None:
    """Ask the lake in SQL (DuckDB, or Athena). Tables are called <database>.<table>.

    A query reads the lake's tables and works in memory; it reaches no other file unless it is --unrestricted.

    Example: eventlake query "select day, count(*) from web.page group by day order by day"
    """
    if records and wide:
        raise InvalidSettingsError("--records and --wide exclude each other", fix="give one of them")
    lake = state.lake(name)
    text = sys.stdin.read() if sql == "-" else sql

    def asked() -> pa.Table:
        if on_athena:
            return _asked(lake, text, workgroup, results, timeout)
        return engine.query(lake, text, unrestricted=unrestricted, timeout=timeout)

    if target is not None:
        output.talk.print(f"{count(engine.save(lake, asked, target), 'row')} written to {target}")
        return
    found = asked()
    if as_json:
        for batch in found.to_batches(max_chunksize=1000):
            for row in batch.to_pylist():
                output.print_json(row)
        return
    if not found.num_columns:
        output.talk.print("Done; there are no rows to show.")
        return
    show_rows(found.slice(0, limit), Layout.RECORDS if records else Layout.WIDE if wide else Layout.FITTING)
    if found.num_rows > limit:
        output.talk.print(f"{limit} of {count(found.num_rows, 'row')}; more with --limit, all with --json or --output")


def _asked(lake: Lake, sql: str, workgroup: str, results: str | None, timeout: float | None) -> pa.Table:
    """The rows that Athena gives, and a word on what it read for them."""
    from eventlake.query import athena  # noqa: PLC0415 - only lakes on AWS have it

    with output.talk.status("asking Athena…") as status:
        answer = athena.ask(
            lake,
            sql,
            athena.Athena(workgroup, results),
            timeout=timeout,
            progress=lambda state, read: status.update(f"Athena: {state}, {size(read)} read…"),
        )
    output.talk.print(
        f"Athena read {size(answer.read_bytes)} in {answer.seconds:.1f} s, about ${answer.dollars:.5f} "
        f"(query {answer.query_id})"
    )
    return answer.rows
