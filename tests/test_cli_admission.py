"""`describe --set`, `drop` and `allow` as people and scripts meet them."""

import re
from pathlib import Path

import pytest

from conftest import InProcess, Lake, track
from test_cli import ESCAPES, Folder


class Shop(Folder):
    """A workspace with a shop's events, some junk, and a table for which there was no room."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        lake = self.lake = Lake(path, InProcess())
        lake.put(*(track("Order", f"o{n}", properties={"total": n + 0.5, "n": n}) for n in range(9)))
        lake.put(track("Order", "odd", properties={"total": f"n/a {ESCAPES}"}))
        lake.put(*(track("Junk", f"j{n}", properties={"n": n or "none"}) for n in range(4)))
        lake.sync()
        lake.workspace.connections.change("web", {"table_limit": "2"})
        lake.sync_of(track("Order Refunded", "r1"))
        lake.workspace.engine.dispose()

    def types(self) -> str:
        types: str = self.ask("source", "list", "--json").value[0]["settings"]["types"]
        return types


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "workspace")


# Types


def test_describe_says_why_a_column_is_text(shop: Shop) -> None:
    told = shop.ask("describe", "web.track_order", "--json").value
    reasons = {column["name"]: column["reason"] for column in told["columns"] if "reason" in column}
    assert set(reasons) == {"properties_total"}
    assert reasons["properties_total"].startswith("text because 1 of 10 values is not a number: n/a ")
    screen = shop.ask("describe", "web.track_order").out
    assert "text because 1 of 10 values is not a number: n/a \\x1b" in screen
    assert "\x1b" not in screen


def test_a_type_can_be_declared_for_a_column_to_come(shop: Shop) -> None:
    shop.ask("source", "set", "web", "types=properties.*_id=string")
    told = shop.ask("describe", "web.track_order", "--set", "properties.tax=decimal", "--set", "coupon=string")
    declared = "track_order:properties_tax=decimal(38,6), track_order:coupon=string, properties_*_id=string"
    assert f"declared for new columns: {declared}" in told.out
    assert shop.types() == declared
    shop.ask("describe", "web.track_order", "--set", "properties.tax=string", "--json")
    assert shop.types().split(", ")[0] == "track_order:properties_tax=string"
    assert shop.types().count("properties_tax") == 1
    assert "properties_tax" not in shop.ask("describe", "web.track_junk").out


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("properties.total=decimal", '`eventlake retype web.track_order properties_total "decimal(38,6)"`'),
        ("properties.tax=money", "use one of bigint, boolean, decimal(38,6), string, timestamp"),
        ("properties.tax", "PLACE=TYPE"),
        ("", "PLACE=TYPE"),
        ("properties..tax=decimal", "empty part"),
        ("received_at=string", "received_at is of the envelope"),
        ("a=string, b=string", "repeat --set"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(shop: Shop, text: str, told: str) -> None:
    assert told in shop.refused("describe", "web.track_order", "--set", text)
    assert shop.types() == ""


def test_nothing_can_be_declared_for_tables_that_are_not_events(shop: Shop) -> None:
    assert "types" in shop.refused("describe", "__segment_datalake.quarantine", "--set", "line=string")
    assert "types=" in shop.refused("describe", "web.track_new", "--set", "properties.a=string")


# Tables


def test_dropping_asks_first(shop: Shop) -> None:
    answer = shop.run("drop", "web.track_junk", typed="n\n")
    assert answer.code == 1
    assert "web.track_junk has 4 rows" in answer.err
    assert len(shop.ask("tables", "--json").value) == 2
    answer = shop.run("drop", "web.track_junk", typed="y\n")
    assert answer.code == 0
    assert "drop finished" in answer.out
    assert "4 rows of track_junk dropped" in answer.out
    assert [table["table"] for table in shop.ask("tables", "--json").value] == ["track_order"]


def test_what_was_dropped_and_refused_is_listed_and_can_be_let_in(shop: Shop) -> None:
    assert [line["kind"] for line in shop.ask("drop", "web.track_junk", "--yes", "--json").lines[:1]] == ["drop"]
    junk, refunds = shop.ask("drop", "--list", "--json").value
    assert (junk["table"], junk["state"], junk["rows"]) == ("track_junk", "dropped", 4)
    assert (refunds["table"], refunds["state"], refunds["lines"]) == ("track_order_refunded", "refused", 1)
    assert "track_order_refunded" in shop.ask("drop", "--list").out
    shop.ask("source", "set", "web", "table_limit=3")
    head, *_ = shop("allow", "web", "Junk", "web.track_order_refunded", "--json").lines
    assert head["books"]["loaded"] == 5
    assert shop.ask("drop", "--list", "--json").value == []
    assert "none was refused" in shop.ask("drop", "--list").err


def test_what_was_refused_and_then_dropped_stays_out_until_it_is_named(shop: Shop) -> None:
    shop.ask("source", "set", "web", "table_limit=3")
    shop.lake.sync_of(track("Order Refunded", "r2"))
    shop.ask("drop", "web.track_order_refunded", "--yes")
    assert [entry["state"] for entry in shop.ask("drop", "--list", "--json").value] == ["dropped", "refused"]
    assert "no table of web was refused" in shop.refused("allow", "web", "--refused")


def test_all_that_was_refused_can_be_let_in_but_not_what_was_dropped(shop: Shop) -> None:
    shop.ask("drop", "web.track_junk", "--yes")
    told = shop("allow", "web", "--refused").out
    assert re.search(r"track_order_refunded .* 1 ", told)
    assert [table["table"] for table in shop.ask("tables", "--json").value] == ["track_order", "track_order_refunded"]
    assert "no table of web was refused" in shop.refused("allow", "web", "--refused")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("drop", "needs a table, or --list"),
        ("drop web.track_junk --list", "needs a table, or --list"),
        ("drop web.track_nothing --yes", "there is no table 'web.track_nothing'"),
        ("drop __segment_datalake.quarantine --yes", "there is no table"),
        ("allow web", "needs names, or --refused"),
        ("allow web Junk --refused", "needs names, or --refused"),
        ("allow web Junk", "no table 'Junk' of web was dropped or refused"),
        ("allow ios --refused", "there is no source 'ios'"),
    ],
)
def test_a_drop_or_allowance_that_makes_no_sense_is_refused(shop: Shop, words: str, told: str) -> None:
    assert told in shop.refused(*words.split())
