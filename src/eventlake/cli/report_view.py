"""A sync report for people."""

from typing import Any

from rich.text import Text

from eventlake.cli import output


def show_report(name: str, lines: list[dict[str, Any]]) -> None:
    head, tables = lines[0], lines[1:]
    if head["status"] == "failed":
        output.talk.print(f"{name}: run {head['run_id']} failed ({head['error_code']})", style="bold red")
        output.talk.print(output.printable(head["error"]))
        return
    books = head["books"]
    what = {"sync": "sync", "replay": "replay", "rebuild": "rebuild"}[head["kind"]]
    output.out.print(
        Text.assemble((f"{name}: {what} finished", "bold"), f"  run {head['run_id']}, {head['finish_time'][:19]}")
    )
    others = ("duplicates", "suppressed", "blocked", "quarantined")
    sums = " + ".join(
        f"{books[word]:,} {word}" for word in others if books[word] or word in ("duplicates", "quarantined")
    )
    output.say(
        f"  {books['lines']:,} lines read = {books['loaded']:,} rows loaded + {sums}   ",
        (f"{head['files_read']:,} raw files → {head['data_files']:,} data files, {output.size(head['bytes'])}", "dim"),
    )
    if "rewritten" in head:
        output.out.print(
            f"  {head['rewritten']:,} rows written again, {head['carried_over']:,} carried over from the lake"
        )
    for notice in head.get("notices", ()):
        output.out.print(Text.assemble("  ", ("! ", "yellow"), notice))
    if tables:
        _show_tables(tables)


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
    output.table(None, columns, rows, numbers=columns[2:])
    if len(tables) > limit:
        output.say((f"  … and {len(tables) - limit} more tables; all of them: eventlake report --json", "dim"))
