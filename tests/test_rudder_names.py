"""Names as RudderStack makes them, case by case, and what holds for all of them."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.schema import rudder_names as names
from eventlake.schema.rudder_names import NameRules

DIVIDED = NameRules(divide_numbers=True)
UNESCAPED = NameRules(keep_reserved=True)


@pytest.mark.parametrize(
    ("raw", "default", "divided"),
    [
        ("Product Added v2", "product_added_v2", "product_added_v_2"),
        ("&4yasdfa(84224_fs9##_____*3q", "_4yasdfa_84224_fs9_3q", "_4_yasdfa_84224_fs_9_3_q"),
        ("9mega________-________90", "_9mega_90", "_9_mega_90"),
        ("Cízǔ", "c_z", "c_z"),
        ("path to $1,00,000", "path_to_1_00_000", "path_to_1_00_000"),
        ("sha256Hash", "sha256_hash", "sha_256_hash"),
        ("OAuth2Token", "o_auth2_token", "o_auth_2_token"),
        ("B2BLead", "b2_b_lead", "b_2_b_lead"),
        ("abc123def456", "abc123_def456", "abc_123_def_456"),
        ("CamelCase123Key", "camel_case123_key", "camel_case_123_key"),
        ("i18n", "i18_n", "i_18_n"),
        ("9mega", "_9mega", "_9_mega"),
        ("the5r", "the5_r", "the_5_r"),
        ("CStringRef", "c_string_ref", "c_string_ref"),
        ("XMLHttp", "xml_http", "xml_http"),
        ("1st and 3rd", "_1st_and_3rd", "_1st_and_3rd"),
        ("__x", "__x", "__x"),
        ("user's", "user_s", "user_s"),
        ("@#$%", "", ""),
        ("注文完了", "", ""),
        ("", "", ""),
        ("___", "", ""),
    ],
)
def test_a_name_is_cut_into_words(raw: str, default: str, divided: str) -> None:
    assert (names.plain(raw), names.plain(raw, DIVIDED)) == (default, divided)


@pytest.mark.parametrize(
    ("path", "column"),
    [
        (("timestamp",), "_timestamp"),
        (("Order",), "_order"),
        (("user", "order"), "user_order"),  # reserved words are looked for in the whole
        (("_id", "__v"), "_id_v"),  # only the first keeps its underscores
        (("a", "1st"), "a_1st"),
        (("1", "a"), "_1_a"),
    ],
)
def test_keys_are_joined_before_they_become_a_column(path: tuple[str, ...], column: str) -> None:
    assert names.column_name(*path) == column


def test_an_event_may_ask_for_reserved_words_as_they_are() -> None:
    assert names.column_name("order", rules=UNESCAPED) == "order"
    assert names.table_name("Order", UNESCAPED) == "order"
    assert names.table_name("Accounts") == "_accounts"
    assert names.table_name("Accounts", UNESCAPED) == "accounts"


@pytest.mark.parametrize(
    "table", ["users", "identifies", "tracks", "pages", "screens", "aliases", "groups", "rudder_discards"]
)
def test_no_event_has_the_table_of_another_call(table: str) -> None:
    assert names.table_name(table) == names.table_name(table, UNESCAPED) == f"_{table}"


def test_what_has_no_letter_left_keeps_a_name_of_its_own() -> None:
    """Theirs has no table for such an event, and no column for such a key: what they hold is lost."""
    assert re.fullmatch("event_[a-p]{8}", names.table_name("注文完了"))
    assert names.table_name("注文完了") != names.table_name("注文")
    assert re.fullmatch("key_[0-9a-f]{8}", names.column_name("价格"))


@pytest.mark.parametrize(
    ("source", "namespace"),
    [
        ("k3_ns", "k_3_ns"),
        ("omega v2 ", "omega_v_2"),
        ("2024 web", "_2024_web"),
        ("user", "_user"),
        ("", "stringempty"),
        ("…", "stringempty"),
        ("x" * 200, "x" * 127),
        ("_Web_", "web"),
    ],
)
def test_the_namespace_of_a_source(source: str, namespace: str) -> None:
    assert names.namespace(source) == namespace


def test_names_are_as_long_as_databases_bear() -> None:
    long = names.table_name("a" * 5000)
    assert len(long) == names.MAX_LENGTH
    assert long != names.table_name("a" * 5001)
    assert names.table_name("a" * names.MAX_LENGTH) == "a" * names.MAX_LENGTH
    assert len(names.column_name("b" * 5000)) == names.MAX_LENGTH


@given(st.text(), st.sampled_from([names.DEFAULT, DIVIDED]))
@example("1STx", names.DEFAULT)
@example("注", names.DEFAULT)
def test_what_was_named_once_keeps_its_name(text: str, rules: NameRules) -> None:
    """Rows that only the lake has are named again when a replay carries them over."""
    event = names.event_name(text, rules)
    assert re.fullmatch("[a-z0-9_]+", event)
    assert names.event_name(event, rules) == event
    assert not names.table_name(text, rules)[0].isdigit()


def test_the_page_has_all_reserved_words_and_each_gets_an_underscore() -> None:
    page = (Path(__file__).parent.parent / "docs" / "coming-from-rudderstack.md").read_text()
    words = page.partition("<!-- reserved -->")[2].partition("<!-- /reserved -->")[0].strip().rstrip(".")
    named = [word.strip() for word in words.split(",")]
    assert (len(named), set(named)) == (137, set(names.RESERVED))
    assert [names.escaped(word) for word in named] == [f"_{word}" for word in named]
