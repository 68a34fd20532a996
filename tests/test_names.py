"""Names of columns, tables and databases."""

import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.schema import names
from strategies import keys

PATHS = st.lists(keys() | st.text(), min_size=1, max_size=40)
ANY_TEXT = keys() | st.text() | st.text(st.characters(categories=["Cs", "Lu", "Ll", "Nd"]))


def spelled_byte_by_byte(text: str) -> str:
    """Segment's snake case as its description goes: one character after the other, no regular expressions."""
    lower, upper, digits = string.ascii_lowercase, string.ascii_uppercase, string.digits
    at = 0
    small_in_word = False
    while at < len(text):
        if text[at] in lower + digits:
            small_in_word |= text[at] in lower
        elif text[at] == "_" and at and text[at + 1 : at + 2] and text[at + 1] in lower + digits:
            small_in_word = False
        else:
            break
        at += 1
    name = text[:at]
    goes_on = at < len(text) and text[at] in upper and not small_in_word
    while at < len(text):
        if text[at] not in lower + upper + digits:
            at += 1
            continue
        if name and not goes_on:
            name += "_"
        goes_on = False
        while at < len(text) and text[at] in upper + digits:
            name += text[at].lower()
            at += 1
        while at < len(text) and text[at] in lower + digits:
            name += text[at]
            at += 1
    return name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sampleText", "sample_text"),
        ("samPLE text", "sam_ple_text"),
        ("sample___text", "sample_text"),
        ("SAMPLE 2 TEXT", "sample_2_text"),
        ("___$$Base64Encode", "base64_encode"),
        ("FOO:BAR$BAZ", "foo_bar_baz"),
        ("something.com", "something_com"),
        ("$something%", "something"),
        ("CStringRef", "cstring_ref"),
        ("5test", "5test"),
        ("THE5r", "the5r"),
        ("5TEst", "5test"),
        ("_5TEst", "5test"),
        ("edf_6N", "edf_6n"),
        ("f_pX9", "f_p_x9"),
        ("p_z9Rg", "p_z9_rg"),
        ("2FA Enabled", "2fa_enabled"),
        ("Enabled 2FA", "enabled_2fa"),
        ("lk0B@bFmjrLQ_Z6YL", "lk0_b_b_fmjr_lq_z6yl"),
        ("inviteYourCustomersAddInvites", "invite_your_customers_add_invites"),
        ("userId", "user_id"),
        ("messageId", "message_id"),
        ("OrderID", "order_id"),
        ("iOS App Opened", "i_os_app_opened"),
        ("a__b", "a_b"),
        ("trailing_", "trailing"),
        ("_metadata", "metadata"),
        ("购买", ""),
        ("", ""),
    ],
)
def test_snake_case_is_that_of_segment(text: str, name: str) -> None:
    assert names.snake(text) == name


@given(ANY_TEXT | st.text("abAB01_ é", max_size=12))
def test_snake_case_is_the_one_that_goes_byte_by_byte(text: str) -> None:
    assert names.snake(text) == spelled_byte_by_byte(text)


@given(ANY_TEXT)
def test_a_name_in_snake_case_stays_as_it_is(text: str) -> None:
    assert names.snake(names.snake(text)) == names.snake(text)


@given(st.sets(ANY_TEXT, max_size=30))
def test_texts_without_ascii_letters_get_names_that_differ(texts: set[str]) -> None:
    bare = {text for text in texts if not names.snake(text)}
    for name_of in (names.key_name, names.event_name):
        assert len({name_of(text) for text in bare}) == len(bare)
        assert all(re.fullmatch(r"(key|event)_[0-9a-f]{8}", name_of(text)) for text in bare)


def test_fallback_names_never_change() -> None:
    assert names.key_name("") == "key_1271cf25"
    assert names.key_name("购买") == "key_5e387c47"
    assert names.event_name("🎉") == "event_ea752979"
    assert names.key_name("\ud800") == "key_38da57e7"


@given(ANY_TEXT)
def test_key_and_event_names_are_never_empty(text: str) -> None:
    assert names.key_name(text)
    assert names.event_name(text)


@given(PATHS | st.lists(ANY_TEXT, min_size=1, max_size=3))
@example(["_rescued_data"])
@example(["n" * 250])
@example(["n" * 251])
def test_any_path_gives_a_legal_column_name(path: list[str]) -> None:
    name = names.column_name(*path)
    assert re.fullmatch(r"[a-z0-9][a-z0-9_]*", name)
    assert len(name) <= names.MAX_COLUMN_LENGTH
    assert name == names.column_name(*path)


def test_a_column_name_of_just_the_limit_is_not_cut() -> None:
    assert names.column_name("n" * names.MAX_COLUMN_LENGTH) == "n" * names.MAX_COLUMN_LENGTH


@given(st.text("ab", min_size=2, max_size=20).map(lambda tail: "n" * 249 + tail), st.sampled_from("ab"))
def test_long_column_names_that_differ_only_at_the_end_stay_apart(long: str, last: str) -> None:
    cut, other = names.column_name(long), names.column_name(long + last)
    assert cut != other
    assert {len(cut), len(other)} == {names.MAX_COLUMN_LENGTH}
    assert cut.startswith("n" * 200)


def test_only_the_spelling_of_a_key_is_forgotten() -> None:
    spellings = ["productId", "product_id", "Product ID", "PRODUCT_ID", "productID", "product-id"]
    assert {names.column_name("properties", key) for key in spellings} == {"properties_product_id"}


@given(ANY_TEXT | st.text("aZ0-_. é", max_size=300))
@example("K")
@example("İstanbul")
@example("2024-web")
@example("---")
def test_any_slug_gives_a_legal_database_name(slug: str) -> None:
    name = names.database_name(slug)
    assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
    assert len(name) <= names.MAX_TABLE_LENGTH
    assert name == names.database_name(slug)


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        ("web", "web"),
        ("ios-prod", "ios_prod"),
        ("My Shop (EU)", "my_shop_eu"),
        ("--a--b--", "a_b"),
        ("a__b", "a__b"),
        ("XxX", "xxx"),
        ("2024-web", "s_2024_web"),
        ("---", "source_2aa05671"),
        ("购买", "source_5e387c47"),
        ("n" * 200, "n" * 200),
        ("n" * 201, "n" * 191 + "_3c153145"),
        ("2" * 199, "s_" + "2" * 189 + "_bf1f6a0f"),
    ],
)
def test_the_database_of_a_slug_never_changes(slug: str, name: str) -> None:
    assert names.database_name(slug) == name
