"""Which columns the values of an event have in RudderStack's tables."""

from typing import Any

import pytest

from eventlake.lake.layout import DAY, HOUR, TimeWindow
from eventlake.lake.routes import Sent
from eventlake.lake.rudderstack import RudderStackDialect
from eventlake.schema.claims import NOWHERE, Claim
from eventlake.schema.rudder_columns import LEFT_OUT, RudderColumns, TableKind
from eventlake.schema.types import ColumnType

DIALECT = RudderStackDialect("src1", "default", "web")


def columns(kind: TableKind, **options: Any) -> RudderColumns:
    return RudderColumns(kind, **options)


def names(claims: Any) -> list[str]:
    return [claim.column for claim in claims]


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        (TableKind.TRACKS, "messageId", ["id"]),
        (TableKind.TRACKS, "timestamp", ["_timestamp"]),
        (TableKind.TRACKS, "originalTimestamp", ["original_timestamp"]),
        (TableKind.TRACKS, "event", ["event_text", "event"]),
        (TableKind.TRACKS, "properties.total", []),
        (TableKind.TRACKS, "userProperties.total", []),
        (TableKind.TRACKS, "recordId", ["record_id"]),
        (TableKind.TRACKS, "context.device.adTrackingEnabled", ["context_device_ad_tracking_enabled"]),
        (TableKind.TRACKS, "context.ip", ["context_ip", "context_passed_ip"]),
        (TableKind.TRACKS, "request_ip", ["context_request_ip", "context_ip"]),
        (TableKind.TRACKS, "integrations.All", []),
        (TableKind.EVENT, "properties.Order Total", ["order_total"]),
        (TableKind.EVENT, "properties.user.order", ["user_order"]),
        (TableKind.EVENT, "userProperties.plan", ["plan"]),
        (TableKind.EVENT, "properties.name", ["name"]),
        (TableKind.IDENTIFIES, "userId", ["user_id"]),
        (TableKind.IDENTIFIES, "traits.email", ["email"]),
        (TableKind.IDENTIFIES, "context.traits.email", ["context_traits_email"]),
        (TableKind.USERS, "userId", ["id"]),
        (TableKind.USERS, "messageId", ["_message_id"]),
        (TableKind.USERS, "traits.email", ["email"]),
        (TableKind.PAGES, "name", ["name"]),
        (TableKind.PAGES, "properties.name", ["name"]),
        (TableKind.SCREENS, "properties.url", ["url"]),
        (TableKind.GROUPS, "groupId", ["group_id"]),
        (TableKind.GROUPS, "traits.plan", ["plan"]),
        (TableKind.ALIASES, "previousId", ["previous_id"]),
        (TableKind.EXTRACT, "recordId", ["id"]),
        (TableKind.EXTRACT, "event", ["event_text", "event"]),
        (TableKind.EXTRACT, "messageId", ["_message_id", "id"]),
    ],
)
def test_the_columns_of_a_place(kind: TableKind, path: str, expected: list[str]) -> None:
    found = columns(kind).claims(tuple(path.split(".")))
    assert not isinstance(found, str), found
    assert names(found) == expected


@pytest.mark.parametrize(
    ("kind", "path", "reason"),
    [
        (TableKind.EVENT, "properties.id", "the column id is for /messageId"),
        (TableKind.EVENT, "properties.timestamp", "the column _timestamp is for /timestamp"),
        (TableKind.EVENT, "properties.received_at", "the column received_at is for /receivedAt"),
        (TableKind.EVENT, "properties.uuid_ts", "the column uuid_ts is for eventlake"),
        (TableKind.EVENT, "properties._message_id", "the column _message_id is for eventlake"),
        (TableKind.EVENT, "properties.context_ip", "the column context_ip is for /context/ip"),
        (TableKind.EVENT, "properties.event text", "the column event_text is for /event"),
        (TableKind.EVENT, "properties", "properties is not an object"),
        (TableKind.IDENTIFIES, "traits.userId", "the column user_id is for /userId"),
        (TableKind.USERS, "traits.user_id", "the column user_id is for /userId"),
        (TableKind.USERS, "traits.id", "the column id is for /userId"),
        (TableKind.TRACKS, "context.sourceId", "the column context_source_id is for eventlake"),
        (TableKind.TRACKS, "context", "the context is not an object"),
        (TableKind.TRACKS, "userId.x", "userId is an object, and its column is for one value"),
        (TableKind.PAGES, "event", "RudderStack's tables have no column for event"),
        (TableKind.IDENTIFIES, "recordId", "RudderStack's tables have no column for recordId"),
        (TableKind.USERS, "traits.anonymousId", "the column anonymous_id is for /anonymousId"),
        (TableKind.USERS, "traits.sent_at", "the column sent_at is for /sentAt"),
        (TableKind.USERS, "traits.timestamp", "the column _timestamp is for /timestamp"),
        (TableKind.EVENT, "properties._timestamp", "the column _timestamp is for /timestamp"),
        (TableKind.TRACKS, "somethingElse", "RudderStack's tables have no column for somethingElse"),
        (TableKind.EVENT, "properties._rescued_data", "the column _rescued_data is eventlake's own"),
    ],
)
def test_why_a_value_has_no_column(kind: TableKind, path: str, reason: str) -> None:
    assert columns(kind).claims(tuple(path.split("."))) == reason


def test_what_has_no_column_is_kept_beside_one_row_of_the_message() -> None:
    for path in (("somethingElse",), ("context",), ("context", "sourceId")):
        assert columns(TableKind.EVENT, is_first=False).claims(path) == NOWHERE
    assert isinstance(columns(TableKind.EVENT, is_first=False).claims(("properties", "id")), str)


def test_of_two_values_for_one_column_it_is_settled_which_wins() -> None:
    def rank(kind: TableKind, path: str, **options: Any) -> int:
        claims = columns(kind, **options).claims(tuple(path.split(".")))
        assert not isinstance(claims, str)
        return next(claim.rank for claim in claims if claim.column in ("x", "name", "context_ip", "category"))

    assert rank(TableKind.PAGES, "name") < rank(TableKind.PAGES, "properties.name")
    assert rank(TableKind.PAGES, "properties.category") < rank(TableKind.PAGES, "category")
    assert rank(TableKind.EVENT, "userProperties.x") < rank(TableKind.EVENT, "properties.x")
    assert rank(TableKind.EVENT, "context.ip") < rank(TableKind.EVENT, "request_ip")
    traits = [f"{where}.x" for where in ("traits", "context.traits", "userProperties")]
    ranks = [rank(TableKind.IDENTIFIES, path, context_traits_too=True) for path in traits]
    assert ranks == sorted(set(ranks))


def test_traits_of_the_context_also_have_columns_without_prefix_if_that_is_allowed() -> None:
    path = ("context", "traits", "plan")
    for kind in (TableKind.IDENTIFIES, TableKind.USERS):
        assert names(columns(kind, context_traits_too=True).claims(path)) == ["context_traits_plan", "plan"]
        taken = columns(kind, context_traits_too=True).claims(("context", "traits", "id"))
        assert taken == (Claim("context_traits_id"),)
    assert names(columns(TableKind.TRACKS, context_traits_too=True).claims(path)) == ["context_traits_plan"]


def test_a_property_with_the_name_of_a_partition_has_no_column() -> None:
    table = columns(TableKind.EVENT, partition_keys=frozenset({"year"}))
    assert table.claims(("properties", "Year")) == "year is the name of a partition"
    assert names(columns(TableKind.EVENT).claims(("properties", "Year"))) == ["year"]


@pytest.mark.parametrize("kind", TableKind)
def test_every_table_has_the_columns_that_rows_are_known_by(kind: TableKind) -> None:
    table = columns(kind)
    assert {table.message_column, "received_at", "uuid_ts", "context_destination_type"} <= table.always.keys()
    assert all(table.fixed[name] in (ColumnType.STRING, ColumnType.TIMESTAMP) for name in table.always)
    assert table.fixed["received_at"] is table.fixed["uuid_ts"] is ColumnType.TIMESTAMP
    assert names(table.claims(("messageId",)))[0] == table.message_column
    assert all(table.claims((field,)) == NOWHERE for field in LEFT_OUT)


# Routes


@pytest.mark.parametrize(
    ("sent", "route"),
    [
        (Sent("track", "Order Completed"), ("tracks", "order_completed")),
        (Sent("track", "Users"), ("tracks", "_users")),
        (Sent("track", "A", options=frozenset({"skipTracksTable"})), ("a",)),
        (Sent("track", "order", options=frozenset({"skipReservedKeywordsEscaping"})), ("tracks", "order")),
        (Sent("identify"), ("identifies", "users")),
        (Sent("identify", has_user=False), ("identifies",)),
        (Sent("identify", options=frozenset({"skipUsersTable"})), ("identifies",)),
        (Sent("page"), ("pages",)),
        (Sent("screen"), ("screens",)),
        (Sent("group"), ("groups",)),
        (Sent("alias"), ("aliases",)),
    ],
)
def test_the_tables_of_an_event(sent: Sent, route: tuple[str, ...]) -> None:
    dialect = RudderStackDialect("src1", "default", "web", skip_users_table=False)
    assert dialect.route(sent) == route
    assert route in dialect.routes(frozenset(route))


def test_tables_that_a_connection_does_not_want_are_left_out() -> None:
    assert DIALECT.route(Sent("identify")) == ("identifies",), "users is off unless it is asked for"
    assert RudderStackDialect("s", "l", "w", skip_tracks_table=True).route(Sent("track", "A")) == ("a",)


@pytest.mark.parametrize(
    ("event", "sent"),
    [
        ({"type": "Track", "event": "A"}, Sent("track", "A", has_user=False)),
        ({"type": "IDENTIFY", "userId": " "}, Sent("identify", has_user=False)),
        ({"type": "identify", "userId": 0}, Sent("identify")),
        ({"type": "identify", "userId": []}, Sent("identify", has_user=False)),
        ({"type": "page", "event": "ignored", "userId": "u"}, Sent("page")),
        ({"type": "extract", "event": "A"}, "type_not_known"),
        ({"type": "merge"}, "type_not_known"),
        ({"type": "track"}, "event_not_defined"),
        ({"type": 5}, "type_not_known"),
        ([], "not_an_object"),
        (
            {"type": "page", "integrations": {"S3_DATALAKE": {"options": {"skipTracksTable": True}}}},
            Sent("page", has_user=False, options=frozenset({"skipTracksTable"})),
        ),
        (
            {"type": "page", "integrations": {"DATA_WAREHOUSE": {"options": {"skipUsersTable": "yes", "x": True}}}},
            Sent("page", has_user=False),
        ),
        ({"type": "page", "integrations": {"DATA_WAREHOUSE": {"options": []}}}, Sent("page", has_user=False)),
        ({"type": "page", "integrations": True}, Sent("page", has_user=False)),
    ],
)
def test_what_an_event_says_of_where_it_goes(event: Any, sent: Any) -> None:
    assert DIALECT.sent(event) == sent


def test_records_of_cloud_applications_are_for_sources_that_send_such() -> None:
    cloud = RudderStackDialect("src1", "default", "web", is_cloud=True)
    sent = cloud.sent({"type": "extract", "event": "Contacts", "recordId": 7})
    assert sent == Sent("extract", "Contacts", has_user=False)
    assert cloud.route(sent) == ("contacts",)
    assert cloud.columns("contacts").message_column == "_message_id"
    assert cloud.sent({"type": "extract"}) == "event_not_defined"
    nothing: list[Any] = [None, "", " ", {}, []]
    for odd in nothing:
        assert cloud.sent({"type": "extract", "event": "A", "recordId": odd}) == "record_id_not_defined"


# Folders


@pytest.mark.parametrize(
    ("layout", "keys", "width", "folder", "values"),
    [
        ("2006/01/02/15", (), HOUR, "2026/01/31/08", ()),
        ("dt=2006-01-02", ("dt",), DAY, "dt=2026-01-31", ("2026-01-31",)),
        ("year=2006", ("year",), DAY, "year=2026", ("2026",)),
        ("year=2006/month=01", ("year", "month"), DAY, "year=2026/month=01", ("2026", "01")),
        (
            "year=2006/month=01/day=02/hour=15",
            ("year", "month", "day", "hour"),
            HOUR,
            "year=2026/month=01/day=31/hour=08",
            ("2026", "01", "31", "08"),
        ),
        ("d=2006_01_02/h=15", ("d", "h"), HOUR, "d=2026_01_31/h=08", ("2026_01_31", "08")),
        ("hour15=2006/01", None, 0, "", ()),
        ("15/2006", None, 0, "", ()),
        ("2006/../01", None, 0, "", ()),
        ("a=2006/a=01", None, 0, "", ()),
        ("year=2006/01", None, 0, "", ()),
        ("", None, 0, "", ()),
        ("Year=2006", None, 0, "", ()),
    ],
)
def test_folders_by_time(layout: str, keys: Any, width: int, folder: str, values: tuple[str, ...]) -> None:
    window = TimeWindow(layout)
    if keys is None:
        assert window.problem()
        return
    assert (window.problem(), window.keys, window.width) == (None, keys, width)
    number = 1769846400_000_000 // width  # 2026-01-31 08:00
    assert (window.folder(number), window.values(number)) == (folder, values)


def test_a_table_whose_name_no_file_system_bears_has_another_folder() -> None:
    long, longer = (RudderStackDialect("s", "l", "w").location("a" * size) for size in (200, 201))
    assert long == f"rudder-datalake/w/{'a' * 200}"
    assert len(longer.rpartition("/")[2]) == 200
    assert RudderStackDialect("s", "l", "w").table_name("a" * 201) == "a" * 201
