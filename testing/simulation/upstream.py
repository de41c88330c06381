"""The source of a simulated world: a database, its writers, its faults, and how a feed reads it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Protocol

from msgspec import Struct

from ...actors import Clock
from ...engine.options import FeedOptions
from ...events import Checkpoint, Ts
from ...sources.source import Source
from .machine import Machine
from .network import Network
from .plan import Plan, Step
from .scheduler import Host, Scheduler
from .truth import Truth
from .writers import Writers


class Surroundings(Struct, frozen=True):
    """The world around a source."""

    plan: Plan
    scheduler: Scheduler
    network: Network
    host: Host
    truth: Truth
    note: Callable[[str, str], None]


class Upstream(Protocol):
    """Made, and used, in fibers of the world."""

    writers: Writers

    def create(self, random: Random) -> None:
        """Create the tables, with rows."""

    def options(self) -> dict[str, Any]:
        """Return the section `source` of the feed's options, without the tables."""
        ...

    def open_on(self, machine: Machine, options: FeedOptions, clock: Clock) -> Source:
        """Return the source of a feed on a machine, not connected yet."""
        ...

    def perform(self, step: Step) -> None:
        """Begin a fault, and end it after a while."""

    def calm(self) -> None:
        """End all faults."""

    def as_of(self, checkpoint: Checkpoint) -> Ts:
        """Return the ts of the truth up to which a target has everything at a checkpoint."""
        ...

    def end(self) -> None:
        """Forget everything; outside of fibers."""
