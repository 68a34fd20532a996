"""The settings of a connection: how the events of a source become tables of a lake. Each dialect has its own."""

from abc import abstractmethod
from difflib import get_close_matches
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from eventlake.control import segment_names
from eventlake.control.policy_settings import PolicySettings
from eventlake.control.schedule_settings import ScheduleSettings
from eventlake.errors import InvalidSettingsError
from eventlake.lake.dialects import Dialect
from eventlake.lake.layout import PLAIN_WINDOW, DatePartition, TimeWindow
from eventlake.lake.rudderstack import RudderStackDialect
from eventlake.lake.segment import SegmentDialect, TableNaming
from eventlake.schema import declared, rudder_names
from eventlake.schema.declared import TypeRules
from eventlake.schema.names import database_name
from eventlake.schema.rudder_columns import STANDARD_COLUMNS
from eventlake.settings.runners import CLUSTER_ID
from eventlake.settings.words import in_words, matching

_A_NAME = "a name of a-z, 0-9 and _ that begins with a letter"
Name = Annotated[str, matching(r"[a-z][a-z0-9_]*", _A_NAME)]
NameOrNone = Annotated[str, matching(r"([a-z][a-z0-9_]*)?", f"{_A_NAME}, or empty")]


def _words(value: Any) -> Any:
    return {"unlimited": None, "none": None, "": None}.get(value.lower(), value) if isinstance(value, str) else value


class ConnectionSettings(ScheduleSettings, PolicySettings):
    """What connections of all dialects have. Every field can be given to `eventlake connection set`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dialect_name: ClassVar[str]
    declarations: ClassVar[declared.Dialect]
    names_database: ClassVar[str]  # the setting that does
    names_layout: ClassVar[str]
    has_prefix: ClassVar[bool] = False  # whether names of tables may have one
    # Changing one of these would leave tables in two layouts, or orphans under the old name.
    fixed_once_loaded: ClassVar[tuple[str, ...]]
    of_table_keys: ClassVar[tuple[str, ...]]  # the settings that the keys of tables depend on

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
    emr_cluster_id: Annotated[str, matching(rf"({CLUSTER_ID})?", "the id of an EMR cluster, or empty")] = Field(
        "", description="EMR cluster that takes the steps of this source; empty: that of the lake."
    )
    types: str = Field(
        "",
        max_length=100_000,
        description="Types of columns to come: properties.total=decimal, properties.*_id=string, page:name_2=string.",
    )

    @field_validator("types")
    @classmethod
    def _written_alike(cls, text: str) -> str:
        return declared.written(declared.parse(text, cls.declarations))

    @property
    def type_rules(self) -> TypeRules:
        return TypeRules(declared.parse(self.types, self.declarations))

    @property
    def prefix(self) -> str:
        """What the names of all tables begin with."""
        return ""

    @property
    def warehouse(self) -> str:
        """The database of views with the tables of a warehouse; empty if there is none."""
        return ""

    @property
    @abstractmethod
    def layout(self) -> str:
        """How folders are laid out by time, as people write it."""

    @abstractmethod
    def dialect(self, source_id: str, slug: str, lake: str) -> Dialect:
        """How events of a source become tables of a lake."""


class _SegmentNames(BaseModel):
    database: Name = Field(max_length=200, description="Database that holds the source's tables.")
    table_prefix: NameOrNone = Field(
        "",
        max_length=50,
        description="Put before every table name, with an underscore.",
    )
    date_partition: DatePartition = Field(
        DatePartition.DAY_HOUR,
        description="Folders by time of receipt: day_hour, year_month_day_hour, year_month_day or day.",
    )
    partition_by_slug: bool = Field(False, description="Name the source's folder by its slug instead of its id.")
    table_naming: TableNaming = Field(
        TableNaming.PREFIXED,
        description="prefixed: track_order_completed; plain: order_completed; plural: tracks_order_completed, pages.",
    )

    @field_validator("table_prefix", mode="before")
    @classmethod
    def _in_small_letters(cls, text: Any) -> Any:
        return text.lower() if isinstance(text, str) else text


class SegmentSettings(ConnectionSettings, _SegmentNames):
    dialect_name = "segment"
    declarations = declared.SEGMENT
    names_database = "database"
    names_layout = "date_partition"
    has_prefix = True
    fixed_once_loaded = tuple(_SegmentNames.model_fields)
    of_table_keys = ("table_naming",)

    numbers: Literal["inferred", "decimal"] = Field(
        "inferred", description="decimal: new columns of numbers are decimal(38,6), also if all are whole so far."
    )
    casts: Literal["best_effort", "exact"] = Field(
        "best_effort", description="best_effort: a value of another kind than its column is read as plainly meant."
    )
    warehouse_database: NameOrNone = Field(
        "",
        max_length=200,
        description="Database with views like the tables of Segment's warehouses: tracks, users, …; empty: none.",
    )

    @property
    def type_rules(self) -> TypeRules:
        return TypeRules(declared.parse(self.types), whole_numbers_too=self.numbers == "decimal")

    @property
    def prefix(self) -> str:
        return self.table_prefix

    @property
    def warehouse(self) -> str:
        return self.warehouse_database

    @property
    def layout(self) -> str:
        return str(self.date_partition.value)

    def dialect(self, source_id: str, slug: str, lake: str) -> SegmentDialect:
        del lake
        return SegmentDialect(
            source_folder=slug if self.partition_by_slug else source_id,
            database=self.database,
            table_prefix=self.table_prefix,
            date_partition=self.date_partition,
            naming=self.table_naming,
            exact_casts=self.casts == "exact",
        )


Namespace = Annotated[str, matching(r"[a-z_][a-z0-9_]*", "a name of a-z, 0-9 and _ that begins with a letter or _")]


class _RudderStackNames(BaseModel):
    namespace: Namespace = Field(
        max_length=rudder_names.MAX_NAMESPACE_LENGTH,
        description="Database and folder of the source's tables; in RudderStack's form, not beginning with pg_.",
    )
    time_window_layout: str = Field(
        PLAIN_WINDOW,
        max_length=200,
        description="Folders by time of receipt: 2006/01/02/15, dt=2006-01-02, year=2006/month=01/day=02/hour=15…",
    )
    skip_tracks_table: bool = Field(False, description="Write no rows of track calls to `tracks`.")
    skip_users_table: bool = Field(True, description="Write no rows of identify calls to `users`.")
    underscore_divide_numbers: bool = Field(
        False, description="Digits are words of their own, as in destinations from before 2024: product_added_v_2."
    )
    allow_users_context_traits: bool = Field(
        False, description="Traits in the context of an identify call also get columns without context_traits_."
    )
    source_category: Literal["event", "cloud"] = Field(
        "event", description="cloud: the source sends records of a cloud application, `extract` calls among them."
    )

    @field_validator("namespace", mode="before")
    @classmethod
    def _as_they_write_it(cls, value: Any) -> Any:
        made = rudder_names.namespace(value) if isinstance(value, str) else value
        if isinstance(made, str) and made.startswith("pg_"):
            raise ValueError("a namespace does not begin with pg_")
        return made

    @field_validator("time_window_layout")
    @classmethod
    def _of_hours_or_days(cls, layout: str) -> str:
        window = TimeWindow(layout)
        problem = window.problem()
        if problem:
            raise ValueError(problem)
        taken = [key for key in window.keys if key in STANDARD_COLUMNS or key.startswith("context_")]
        if taken:
            raise ValueError(f"{taken[0]} is the name of a column that tables have")
        return layout


class RudderStackSettings(ConnectionSettings, _RudderStackNames):
    dialect_name = "rudderstack"
    declarations = declared.RUDDERSTACK
    names_database = "namespace"
    names_layout = "time_window_layout"
    fixed_once_loaded = ("namespace", "time_window_layout", "underscore_divide_numbers", "source_category")
    of_table_keys = ("underscore_divide_numbers",)

    @property
    def layout(self) -> str:
        return self.time_window_layout

    def dialect(self, source_id: str, slug: str, lake: str) -> RudderStackDialect:
        del slug
        return RudderStackDialect(
            source_id=source_id,
            lake=lake,
            namespace=self.namespace,
            date_partition=TimeWindow(self.time_window_layout),
            skip_tracks_table=self.skip_tracks_table,
            skip_users_table=self.skip_users_table,
            underscore_divide_numbers=self.underscore_divide_numbers,
            allow_users_context_traits=self.allow_users_context_traits,
            is_cloud=self.source_category == "cloud",
        )


DIALECTS: dict[str, type[Dialect]] = {"segment": SegmentDialect, "rudderstack": RudderStackDialect}
_SETTINGS: dict[str, type[ConnectionSettings]] = {
    settings.dialect_name: settings for settings in (SegmentSettings, RudderStackSettings)
}


def settings_of(dialect: str) -> type[ConnectionSettings]:
    """The settings that connections of a dialect have."""
    return _SETTINGS[dialect]


def default_settings(dialect: str, slug: str, name: str) -> ConnectionSettings:
    """The settings of a new connection of a source."""
    namespace = rudder_names.namespace(name)
    namespace = rudder_names.namespace(f"source_{namespace}") if namespace.startswith("pg_") else namespace
    database = database_name(slug) if dialect == "segment" else namespace
    return settings_of(dialect).model_validate({settings_of(dialect).names_database: database})


def as_stored(values: dict[str, Any]) -> ConnectionSettings:
    """Settings that were written down, of whichever dialect they are."""
    kind = RudderStackSettings if RudderStackSettings.names_database in values else SegmentSettings
    return kind.model_validate(values)


def changed(current: ConnectionSettings, changes: dict[str, str]) -> ConnectionSettings:
    """The settings with some values replaced. Raises InvalidSettingsError that says what is allowed."""
    if isinstance(current, SegmentSettings):
        changes = segment_names.translated(changes)
    try:
        return type(current).model_validate({**current.model_dump(), **changes})
    except ValidationError as error:
        raise _explained(error, type(current)) from error


def _explained(error: ValidationError, kind: type[ConnectionSettings]) -> InvalidSettingsError:
    problems, meanings, fields = [], [], {}
    for detail in error.errors():
        name = str(detail["loc"][0])
        if detail["type"] == "extra_forbidden":
            near = get_close_matches(name, list(kind.model_fields), 1)
            return InvalidSettingsError(
                f"there is no setting {name!r}{f'; perhaps {near[0]}' if near else ''}",
                fix=f"use one of {', '.join(kind.model_fields)}",
                fields={name: "there is no such setting"},
            )
        what = in_words(detail["type"], detail.get("ctx", {}), detail["msg"])
        problems.append(f"{name}={detail['input']!r} is not allowed: {what}")
        meanings.append(f"{name} is: {kind.model_fields[name].description}")
        fields[name] = what
    return InvalidSettingsError("; ".join(problems), fix=f"give another value. {' '.join(meanings)}", fields=fields)
