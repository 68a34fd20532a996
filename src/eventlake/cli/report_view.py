"""A sync report for people."""

from typing import Any

from rich.text import Text

from eventlake.cli import output
from eventlake.reports.words import count, size


def show_report(name: str, lines: list[dict[str, Any]]) -> None:
    head, tables = lines[0], lines[1:]
    if head["status"] == "failed":
        output.talk.print(f"{name}: run {head['run_id']} failed ({head['error_code']})", style="bold red")
        output.talk.print(output.printable(head["error"]))
        if "fix" in head:  # not in reports of earlier versions
            output.talk.print(output.printable(f"Fix: {head['fix']}"))
        return
    retyped = [
        f"{table['table_name']}.{column} is {kind} now"
        for table in tables
        for column, kind in table.get("retyped", {}).items()
    ]
    what = "retype" if retyped else head["kind"]
    output.out.print(
        Text.assemble((f"{name}: {what} finished", "bold"), f"  run {head['run_id']}, {head['finish_time'][:19]}")
    )
    for words in retyped:
        output.say(f"  {words}")
    is_replay = head["kind"] == "replay"
    if head["kind"] == "rebuild":
        output.say(f"  all tables written anew: {count(head['row_count'], 'row')}")
    if is_replay:
        output.say(
            f"  {count(head['rewritten'], 'row')} written again from the archive, "
            f"{head['carried_over']:,} carried over from the lake, {head['row_count']:,} added"
        )
    output.say(
        f"  {_sum_of_lines(head['books'], tables, again=is_replay)}   ",
        (
            f"{count(head['files_read'], 'raw file')} → {count(head['data_files'], 'data file')}, "
            f"{size(head['bytes'])}",
            "dim",
        ),
    )
    for notice in head.get("notices", ()):
        output.out.print(Text.assemble("  ", ("! ", "yellow"), output.printable(notice)))
    if tables:
        _show_tables(tables)


def _sum_of_lines(books: dict[str, Any], tables: list[dict[str, Any]], *, again: bool) -> str:
    """The books as a sum. In a replay, what is in the lake already is a duplicate by the books."""
    # Where events have rows in several tables, they are not the same.
    one = "event" if sum(table["row_count"] for table in tables) > books["loaded"] else "row"
    told = {
        "duplicates": f"{books['duplicates']:,} in the lake already"
        if again
        else count(books["duplicates"], "duplicate"),
        **{word: f"{books[word]:,} {word}" for word in ("suppressed", "blocked", "quarantined")},
    }
    others = [words for word, words in told.items() if books[word] or word in ("duplicates", "quarantined")]
    added = count(books["loaded"], f"new {one}") if again else f"{count(books['loaded'], one)} loaded"
    return f"{count(books['lines'], 'line')} read = {' + '.join([added, *others])}"


def _show_tables(tables: list[dict[str, Any]], limit: int = 15) -> None:
    most = max(table["row_count"] for table in tables) or 1
    shown = sorted(tables, key=lambda table: -table["row_count"])[:limit]
    rows = [
        (
            f"  {table['table_name']}",
            output.bar(table["row_count"] / most, width=12),
            table["row_count"],
            table["books"]["duplicates"] or None,
            sum(table.get("rescued", {}).values()) or None,
            len(table.get("partitions", ())) or None,
            "new table" if table["is_new"] else len(table.get("new_columns", ())) or None,
        )
        for table in shown
    ]
    columns = ("  table", "", "rows", "duplicates", "rescued", "partitions", "new columns")
    output.table(None, columns, rows, numbers=columns[2:], spare=("", "partitions"))
    if len(tables) > limit:
        output.say((f"  … and {count(len(tables) - limit, 'more table')}; all of them: eventlake report --json", "dim"))
