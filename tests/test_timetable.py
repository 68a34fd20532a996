"""When syncs are due."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlake.timetable import DAY, SECOND, Timetable, Window, written, zone

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str, tz: ZoneInfo | None = None) -> int:
    """`2026-03-29 03:00`, in UTC or in a zone."""
    moment = datetime.fromisoformat(text)
    return round(moment.replace(tzinfo=tz or UTC).timestamp()) * SECOND


def slots(table: Timetable, start: int, stop: int) -> list[str]:
    """All slots of a period, in UTC, walking forward."""
    found, now = [], start - 1
    while (slot := table.following(now)) is not None and slot < stop:
        found.append(f"{datetime.fromtimestamp(slot / SECOND, UTC):%d %H:%M}")
        now = slot
    return found


def test_by_default_twelve_a_day_at_even_hours() -> None:
    day = at("2026-11-15 00:00")
    assert slots(Timetable(), day, day + DAY) == [f"15 {hour:02d}:00" for hour in range(0, 24, 2)]
    assert Timetable().latest(at("2026-11-15 13:59")) == at("2026-11-15 12:00")
    assert Timetable().latest(at("2026-11-15 14:00")) == at("2026-11-15 14:00")


@pytest.mark.parametrize(
    ("schedule", "start_at", "expected"),
    [
        ("every 6h", "00:00", ["00:00", "06:00", "12:00", "18:00"]),
        ("every 6h", "20:30", ["02:30", "08:30", "14:30", "20:30"]),  # both ways from the start, as RudderStack counts
        ("every 24h", "07:15", ["07:15"]),
        ("every 9h", "10:00", ["01:00", "10:00", "19:00"]),  # does not go into a day: each day anew
    ],
)
def test_intervals_count_from_their_start(schedule: str, start_at: str, expected: list[str]) -> None:
    table = Timetable(schedule, start_at=start_at)
    for day in ("2026-11-15", "2026-11-16"):
        start = at(f"{day} 00:00")
        assert slots(table, start, start + DAY) == [f"{day[-2:]} {time}" for time in expected]


def test_times_of_the_day_follow_the_clocks_of_their_zone() -> None:
    table = Timetable("at 02:30 12:00", "Europe/Berlin")
    # 2026-03-29: clocks go from 02:00 to 03:00, so there is no 02:30; what was due then is due when they are changed.
    assert slots(table, at("2026-03-28 12:00"), at("2026-03-30 12:00")) == [
        *("29 01:00", "29 10:00"),
        *("30 00:30", "30 10:00"),
    ]
    # 2026-10-25: 02:30 comes twice, and counts once.
    assert slots(table, at("2026-10-24 12:00"), at("2026-10-26 12:00")) == [
        *("25 00:30", "25 11:00"),
        *("26 01:30", "26 11:00"),
    ]
    assert Timetable("at 02:30", "Europe/Berlin").latest(at("2026-10-25 01:45")) == at("2026-10-25 00:30")


def test_cron_on_working_days() -> None:
    table = Timetable("cron 0 6 * * 1-5", "Europe/Berlin")
    assert slots(table, at("2026-11-13 00:00"), at("2026-11-17 00:00")) == ["13 05:00", "16 05:00"]


def test_manual_has_no_slot() -> None:
    assert Timetable("manual").latest(at("2026-11-13 00:00")) is None
    assert Timetable("manual").next_begin(at("2026-11-13 00:00")) is None


SCHEDULES = st.sampled_from(
    ["every 5m", "every 7m", "every 2h", "every 24h", "at 00:00 02:30 23:59", "cron */20 1-3 * * *", "cron 0 0 1 * *"]
)
ZONES = st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])


@given(
    SCHEDULES,
    ZONES,
    st.sampled_from(["00:00", "13:37"]),
    st.integers(at("2026-01-01 00:00"), at("2027-12-31 00:00")),
)
@example("cron */20 1-3 * * *", "Europe/Berlin", "00:00", at("2026-10-25 00:50"))
@example("at 00:00 02:30 23:59", "Europe/Berlin", "00:00", at("2026-03-29 01:00"))
@example("cron */20 1-3 * * *", "Europe/Berlin", "00:00", at("2026-10-25 01:10"))  # in the hour that comes twice
@example("cron */20 1-3 * * *", "Australia/Lord_Howe", "00:00", at("2026-04-04 15:20"))
def test_the_latest_slot_is_the_one_before_the_next(schedule: str, tz: str, start_at: str, now: int) -> None:
    table = Timetable(schedule, tz, start_at)
    latest, following = table.latest(now), table.following(now)
    assert latest is not None
    assert following is not None
    assert latest <= now < following
    assert table.latest(latest) == latest  # a slot is due at its own moment
    assert table.following(latest) == following  # and none lies in between
    assert table.latest(following - 1) == latest


@pytest.mark.parametrize(
    ("window", "inside", "outside"),
    [
        ("22:00-06:00", ["22:00", "23:59", "00:00", "05:59"], ["06:00", "21:59", "12:00"]),
        ("09:00-17:30", ["09:00", "17:29"], ["08:59", "17:30", "00:00"]),
    ],
)
def test_the_end_of_a_window_is_not_in_it(window: str, inside: list[str], outside: list[str]) -> None:
    table = Timetable(exclude_window=window, time_zone="Europe/Berlin")
    assert all(table.is_closed(at(f"2026-11-15 {time}", BERLIN)) for time in inside)
    assert not any(table.is_closed(at(f"2026-11-15 {time}", BERLIN)) for time in outside)


def test_what_is_due_in_the_window_begins_when_it_ends() -> None:
    table = Timetable("every 2h", exclude_window="22:00-05:30")
    assert table.next_begin(at("2026-11-15 21:00")) == at("2026-11-16 05:30")
    assert table.next_begin(at("2026-11-15 19:00")) == at("2026-11-15 20:00")
    assert table.opens(at("2026-11-15 23:10") + 30 * SECOND) == at("2026-11-16 05:30")


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("EVERY 2 hours", "every 2h"),
        ("every 120m", "every 2h"),
        ("every 90 min", "every 90m"),
        ("every 1 day", "every 24h"),
        (" at 18:30,6:00 ", "at 06:00 18:30"),
        ("cron  0  */2 * * 1-5", "cron 0 */2 * * 1-5"),
        ("Manual", "manual"),
    ],
)
def test_schedules_are_stored_in_one_way(text: str, stored: str) -> None:
    assert written(text) == stored
    assert written(stored) == stored


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("every 4m", "every 5m to every 24h"),
        ("every 25h", "every 5m to every 24h"),
        ("every 0h", "every 5m to every 24h"),
        ("at 24:00", "not a time of the day"),
        ("at noon", "not a time of the day"),
        ("at ,", "at which times of the day"),
        ("cron * * * *", "five fields"),
        ("cron * * * * * *", "five fields"),
        ("cron 61 * * * *", "not a cron expression"),
        ("cron 0 0 31 4 *", "not a cron expression"),  # April never has that day
        ("hourly", "use every 2h"),
        ("", "use every 2h"),
    ],
)
def test_what_is_no_schedule_is_refused_with_what_is_allowed(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("*", r"\*")):
        written(text)


@pytest.mark.parametrize("text", ["22:00", "22:00-25:00", "06:00-06:00", "x-y", ""])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Window.parse(text)


@pytest.mark.parametrize("name", ["Mars/Phobos", "", "../etc/passwd", "Europe"])
def test_what_is_no_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        zone(name)
