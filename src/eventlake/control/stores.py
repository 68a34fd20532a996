"""The workspace database, and what it holds of the workspace as a whole."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from eventlake.azure.vault import revealed
from eventlake.clock import Clock
from eventlake.control import database
from eventlake.control.alerts import Alerts
from eventlake.control.audit_log import AuditLog
from eventlake.control.collected import Collected
from eventlake.control.orders import Orders
from eventlake.control.presence import Presence
from eventlake.control.runs import History
from eventlake.settings import Settings

if TYPE_CHECKING:
    from eventlake.control.people import People
    from eventlake.control.plans import Plans
    from eventlake.control.suppressions import Suppressions


class Stores:
    """Each is opened when it is asked for."""

    has_folder = True  # of its own, in which a collector may keep what came in; else paths only begin there

    def __init__(self, folder: Path, settings: Settings, clock: Clock) -> None:
        self.folder = folder
        self.settings = settings
        self.clock = clock

    def close(self) -> None:
        """Let go of the database. Whoever asks for it afterwards opens it anew."""
        if (engine := self.__dict__.get("engine")) is not None:  # else nothing asked for it
            engine.dispose()

    @cached_property
    def engine(self) -> sa.Engine:
        return database.connect(revealed(self.settings.database), self.folder)

    @cached_property
    def runs(self) -> History:
        """The runs of all lakes."""
        return History(self.engine)

    @cached_property
    def orders(self) -> Orders:
        return Orders(self.engine, self.clock.now)

    @cached_property
    def presence(self) -> Presence:
        return Presence(self.engine)

    @cached_property
    def people(self) -> "People":
        from eventlake.control.people import People  # noqa: PLC0415 - hashing passwords takes its time to load

        return People(self.engine, self.clock.now)

    @cached_property
    def audit_log(self) -> AuditLog:
        return AuditLog(self.engine, self.clock.now)

    @cached_property
    def alerts(self) -> Alerts:
        return Alerts(self.engine, self.clock.now, self.settings.channels)

    @cached_property
    def collected(self) -> Collected:
        return Collected(self.engine)

    @cached_property
    def suppressions(self) -> "Suppressions":
        from eventlake.control.suppressions import Suppressions  # noqa: PLC0415 - numpy takes its time to load

        return Suppressions(self.engine, self.clock.now)

    @cached_property
    def plans(self) -> "Plans":
        from eventlake.control.plans import Plans  # noqa: PLC0415

        return Plans(self.engine, self.clock.now)
