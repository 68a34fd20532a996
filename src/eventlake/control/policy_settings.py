"""The settings of a connection that tell what of its events the lake is to have."""

from pydantic import BaseModel, Field, field_validator

from eventlake.schema import selection
from eventlake.schema.selection import Selection


class PolicySettings(BaseModel):
    select: str = Field(
        "",
        max_length=100_000,
        description="What the lake is to have, or not: page, track_order_*, -track_debug_*, -properties.pin.",
    )
    honour_integrations: bool = Field(
        False, description="Leave out events in which `integrations` has false under the name of the lake."
    )

    @field_validator("select")
    @classmethod
    def _selection_written_alike(cls, text: str) -> str:
        return selection.written(selection.parse(text))

    @property
    def selection(self) -> Selection:
        return selection.parse(self.select)
