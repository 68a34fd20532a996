"""The settings of a connection that tell when it is synced."""

from pydantic import BaseModel, Field, field_validator

from eventlake import timetable
from eventlake.timetable import TimeOfDay, Timetable, Window


class ScheduleSettings(BaseModel):
    schedule: str = Field(
        "every 2h",
        max_length=500,
        description="When `eventlake serve` syncs: every 2h, at 06:00 18:30, cron 0 */2 * * 1-5, or manual.",
    )
    time_zone: str = Field("UTC", max_length=100, description="Of the schedule and the window, as Europe/Berlin.")
    start_at: str = Field("00:00", description="Time of the day (UTC) from which `every …` counts.")
    exclude_window: str = Field(
        "", max_length=20, description="Part of the day in which no scheduled sync begins, as 22:00-06:00."
    )

    @field_validator("schedule")
    @classmethod
    def _is_a_schedule(cls, text: str) -> str:
        return timetable.written(text)

    @field_validator("time_zone")
    @classmethod
    def _is_a_zone(cls, name: str) -> str:
        return timetable.zone(name).key

    @field_validator("start_at")
    @classmethod
    def _is_a_time(cls, text: str) -> str:
        return str(TimeOfDay.parse(text))

    @field_validator("exclude_window")
    @classmethod
    def _is_a_window(cls, text: str) -> str:
        return str(Window.parse(text)) if text.strip() else ""

    @property
    def timetable(self) -> Timetable:
        return Timetable(self.schedule, self.time_zone, self.start_at, self.exclude_window)
