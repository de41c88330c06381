"""The order that keys require: a unit waits for the units before it that touch a key of its own.

Not thread-safe; the pool calls it under its lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Final

from .unit import Unit


class Causality:
    """Units that aren't durable yet, from `add` until all before them are committed, too."""

    def __init__(self) -> None:
        self.units: Final[deque[Unit]] = deque()
        """In commit order; the first one isn't done."""
        self.rows = 0
        """Number of rows of the units that aren't done."""
        self.prefix: Unit | None = None
        """The last unit before which, itself included, all are done."""
        self._writers: dict[int, Unit] = {}
        self._readers: dict[int, set[Unit]] = {}
        self._ready: list[tuple[int, Unit]] = []
        self._late = count(1 << 60)

    @property
    def ready(self) -> int:
        """Number of units that could be taken now."""
        return len(self._ready)

    def add(self, unit: Unit, *, done: bool = False) -> None:
        """Add a unit after all others; with `done` nothing is left to apply for it."""
        self.units.append(unit)
        if done:
            unit.state = "done"
            self._advance()
            return
        self.rows += unit.rows
        before = self._before(unit)
        unit.waits = len(before)
        for other in before:
            other.dependents.append(unit)
        if not before:
            self._make_ready(unit)

    def _before(self, unit: Unit) -> set[Unit]:
        """Return the units it must wait for, and note its keys."""
        units: set[Unit] = set()
        writers, readers = self._writers, self._readers
        for key in unit.writes:
            if (writer := writers.get(key)) is not None:
                units.add(writer)
            if key in readers:
                units |= readers.pop(key)
            writers[key] = unit
        for key in unit.reads:
            if (writer := writers.get(key)) is not None:
                units.add(writer)
            readers.setdefault(key, set()).add(unit)
        return units

    def take(self, max_ready: int, max_units: int, max_rows: int) -> list[Unit]:
        """Return units for one SQL transaction, in the order in which it must apply them.

        `max_ready` of them may be units that other workers could take, too; the others depend on earlier ones
        of the list. One with more rows than `max_rows` is alone.
        """
        taken: list[Unit] = []
        ready = self._ready
        inner: list[tuple[int, Unit]] = []  # ready inside of this SQL transaction only
        left: dict[Unit, int] = {}
        rows = 0
        while len(taken) < max_units:
            shared = ready if max_ready else []
            source = inner if not shared or (inner and inner[0] < shared[0]) else shared
            if not source:
                break
            unit = source[0][1]
            if taken and (unit.is_alone or rows + unit.rows > max_rows):
                break
            heappop(source)
            max_ready -= source is ready
            unit.state = "taken"
            taken.append(unit)
            rows += unit.rows
            if unit.is_alone:
                break
            for other in unit.dependents:
                left[other] = waits = left.get(other, other.waits) - 1
                if not waits and not (other.is_alone or other.is_held):
                    heappush(inner, (other.order, other))
        return taken

    def commit(self, units: Sequence[Unit]) -> None:
        """Note that taken units are durable; units that waited for them may become ready."""
        for unit in units:
            unit.state = "done"
            self.rows -= unit.rows
            self._forget(unit)
            for other in unit.dependents:
                other.waits -= 1
                self._make_ready(other)
            unit.dependents.clear()
        self._advance()

    def give_back(self, units: Iterable[Unit], *, hold: bool = False) -> None:
        """Put taken units back, each for a SQL transaction of its own.

        One that was alone already is tried again after the others. With `hold` each waits for all units
        before it.
        """
        for unit in units:
            if unit.is_alone:
                unit.order = next(self._late)
            unit.is_alone = True
            unit.is_held = unit.is_held or hold
            unit.state = "waiting"
            self._make_ready(unit)

    def put_back(self, units: Iterable[Unit]) -> None:
        """Put taken units back as they were."""
        for unit in units:
            unit.state = "waiting"
            self._make_ready(unit)

    def prefix_with(self, taken: Iterable[Unit]) -> Unit | None:
        """Return what `prefix` would be with these units committed."""
        own = set(taken)
        prefix = self.prefix
        for unit in self.units:
            if unit.state != "done" and unit not in own:
                break
            prefix = unit
        return prefix

    def _make_ready(self, unit: Unit) -> None:
        if unit.state == "waiting" and not unit.waits and not (unit.is_held and self.units[0] is not unit):
            unit.state = "ready"
            heappush(self._ready, (unit.order, unit))

    def _forget(self, unit: Unit) -> None:
        writers, readers = self._writers, self._readers
        for key in unit.writes:
            if writers.get(key) is unit:
                del writers[key]
        for key in unit.reads:
            if (reading := readers.get(key)) is not None:
                reading.discard(unit)
                if not reading:
                    del readers[key]

    def _advance(self) -> None:
        units = self.units
        while units and units[0].state == "done":
            self.prefix = units.popleft()
        if units and units[0].is_held:
            self._make_ready(units[0])
