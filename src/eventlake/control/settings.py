"""The settings of a connection: how the events of a source become tables of a lake."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from eventlake.errors import InvalidSettingsError
from eventlake.lake.dialects import TableNaming
from eventlake.lake.layout import DatePartition
from eventlake.schema import declared
from eventlake.schema.declared import TypeRules

_NAME = r"^[a-z][a-z0-9_]*$"


def _words(value: Any) -> Any:
    return {"unlimited": None, "none": None, "": None}.get(value.lower(), value) if isinstance(value, str) else value


class ConnectionSettings(BaseModel):
    """Every field can be given to `eventlake connection set`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    database: str = Field(pattern=_NAME, max_length=200, description="Database that holds the source's tables.")
    table_prefix: str = Field(
        "",
        pattern=r"^([a-z][a-z0-9_]*)?$",
        max_length=50,
        description="Put before every table name, with an underscore.",
    )
    date_partition: DatePartition = Field(
        DatePartition.DAY_HOUR,
        description="Folders by time of receipt: day_hour, year_month_day_hour, year_month_day or day.",
    )
    partition_by_slug: bool = Field(False, description="Name the source's folder by its slug instead of its id.")
    table_naming: TableNaming = Field(
        TableNaming.PREFIXED, description="prefixed: track_order_completed; plain: order_completed."
    )
    lookback_days: Annotated[int | None, BeforeValidator(_words)] = Field(
        7,
        ge=1,
        le=36500,
        description="How many days of synced data are searched for duplicates; or unlimited.",
    )
    column_limit: int = Field(2000, ge=20, le=10_000, description="Most columns a table may have; the rest is rescued.")
    table_limit: int = Field(10_000, ge=1, le=200_000, description="Most tables the source may have.")
    new_tables_per_run: int = Field(
        200,
        ge=1,
        le=200_000,
        description="Most tables that one sync may add, so that made-up names cannot soon fill table_limit.",
    )
    rescue_rounded: bool = Field(
        True,
        description="Keep the original of numbers rounded to six decimals and of times cut to microseconds.",
    )
    types: str = Field(
        "",
        max_length=100_000,
        description="Types of columns to come: properties.total=decimal, properties.*_id=string, page:name_2=string.",
    )
    numbers: Literal["inferred", "decimal"] = Field(
        "inferred", description="decimal: new columns of numbers are decimal(38,6), also if all are whole so far."
    )

    @field_validator("types")
    @classmethod
    def _written_alike(cls, text: str) -> str:
        return declared.written(declared.parse(text))

    @property
    def type_rules(self) -> TypeRules:
        return TypeRules(declared.parse(self.types), self.numbers == "decimal")


# Changing one of these would leave tables in two layouts, or orphans under the old name.
FIXED_ONCE_LOADED = ("database", "table_prefix", "date_partition", "partition_by_slug", "table_naming")


def changed(current: ConnectionSettings, changes: dict[str, str]) -> ConnectionSettings:
    """The settings with some values replaced. Raises InvalidSettingsError that says what is allowed."""
    try:
        return ConnectionSettings.model_validate({**current.model_dump(), **changes})
    except ValidationError as error:
        raise _explained(error) from error


def _explained(error: ValidationError) -> InvalidSettingsError:
    problems = []
    for detail in error.errors():
        name = str(detail["loc"][0])
        if detail["type"] == "extra_forbidden":
            return InvalidSettingsError(
                f"there is no setting {name!r}", fix=f"use one of {', '.join(ConnectionSettings.model_fields)}"
            )
        description = ConnectionSettings.model_fields[name].description
        what = detail["msg"].removeprefix("Value error, ")
        problems.append(f"{name}={detail['input']!r} is not allowed: {what} ({description})")
    return InvalidSettingsError("; ".join(problems), fix="choose an allowed value")
