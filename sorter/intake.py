"""Intake: takes in the changes of all tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, count, repeat
from typing import Any, Final

from ..actors import PooledActor, PooledRef, Timer
from ..actors.future import Ask
from ..events import Changes, KvChange, Ts
from .admission import AdmissionControl, SorterActor
from .arrivals import WAKE, Arrivals, Wake
from .cut import cut_sorted, make_runs
from .order import follow_each_other
from .run import Run
from .size import estimate, measure
from .table import Table
from .tier import Tier
from .writer import Writer

TURN_CHANGES: Final = 16384
"""Changes taken in one turn, about: enough that small lists of many tables become one large run."""

ROUND_CHANGES: Final = 1024
"""Changes after which a turn ends with the round over all tables: changes of one round are likely to be
resolved together, and leave in whole runs."""

RUN_CHANGES: Final = 2500
"""Maximum number of changes in a run."""
RUN_BYTES: Final = 1 << 20
"""Maximum bytes of a run, about: the Merger opens runs as a whole."""

Spill = Callable[[list[Run], PooledActor[Wake]], None]
"""Has the actor given, in its turn, send runs to disk."""


class Intake(SorterActor[Wake]):
    """Makes runs of the changes told to the Writers, puts them into the memory tier, and spills what exceeds
    its quota. It takes nothing while the disk or the Merger lags behind.

    A run holds the unsorted changes of several tables that spill together: the Merger sorts them once,
    with everything that leaves with them. Runs of an ordered table have its changes alone, and stay as they
    are.
    """

    def __init__(
        self,
        gate: AdmissionControl,
        writers: Mapping[int, Writer],
        tier: Tier,
        arrivals: Arrivals,
        merger: PooledRef[Wake],
        spill: Spill | None,
    ) -> None:
        super().__init__(gate)
        self._writers = writers
        self._tier = tier
        self._arrivals = arrivals
        self._merger = merger
        self._spill = spill
        self._timer: Timer | None = None

    def on_receive_batch(self, _messages: Sequence[Wake]) -> None:
        gate = self._gate
        if gate.is_closed:
            return
        if advanced := gate.advanced():
            self._advance(advanced)
        if gate.shut_if_needed():
            # Looks again then, as nobody else does while the Merger is stuck.
            self._timer = self._timer or self.every(gate.stuck_seconds, WAKE)
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        asks: list[Ask] = []
        try:
            self._take_in(asks)
        except BaseException as error:
            for ask in asks:
                ask.fail(error)
            raise
        for ask in asks:
            ask.answer(None)
        if not gate.rest():
            self.send(self.actor_ref, WAKE)

    def _advance(self, advanced: dict[int, Ts]) -> None:
        """Resolve tables, after the changes that their Writers still hold."""
        resolved: dict[Table, Ts] = {}
        writers = self._writers
        for table_id, ts in advanced.items():
            writer = writers.get(table_id)
            if writer is None:
                continue
            if writer.messages:
                writer.post(Changes([], ts))
            else:
                resolved[writer.table] = ts
        self._hand_over([], resolved)

    def _take_in(self, asks: list[Ask]) -> None:
        groups, resolved = self._collect(asks)
        runs = []
        while groups:  # taken out: what goes to disk is freed once it is encoded, if nobody else has it
            runs += self._runs(*groups.popitem()[1])
        self._hand_over(runs, resolved)

    def _hand_over(self, runs: list[Run], resolved: dict[Table, Ts]) -> None:
        spilled = self._tier.add(runs) if runs else []
        if self._arrivals.post(runs, resolved, self.clock.now()):
            self.send(self._merger, WAKE)
        if spilled and self._spill is not None:
            self._spill(spilled, self)

    def _collect(
        self, asks: list[Ask]
    ) -> tuple[dict[Any, tuple[list[Table], list[list[KvChange]]]], dict[Table, Ts]]:
        """Take the messages of about one turn. Returns tables and lists of changes by spill group, and the
        resolved ts by table."""
        writers = self._gate.writers
        groups: dict[Any, tuple[list[Table], list[list[KvChange]]]] = {}
        resolved: dict[Table, Ts] = {}
        room = TURN_CHANGES
        tables_left = TURN_CHANGES
        first: Writer | None = None
        while writers and room > 0 and tables_left > 0:
            if writers[0] is first and room <= TURN_CHANGES - ROUND_CHANGES:
                break
            writer = writers.popleft()
            first = first or writer
            tables_left -= 1
            table = writer.table
            messages: list[Changes] = writer.drain()
            if writer.marks:
                messages = writer.open(messages, asks)
            if table.removed:
                continue
            for message in messages:
                changes = message.changes
                if changes:
                    group = groups.get(table.group)
                    if group is None:
                        group = groups[table.group] = [], []
                    group[0].append(table)
                    group[1].append(changes)
                    room -= len(changes)
                ts = message.resolved
                if ts > table.resolved and ts > resolved.get(table, 0):
                    resolved[table] = ts
        return groups, resolved

    def _runs(self, tables: list[Table], lists: list[list[KvChange]]) -> list[Run]:
        size_of = measure if self._tier.is_filling else estimate
        owners = None
        changes = lists[0]
        if len(lists) > 1:
            changes = list(chain.from_iterable(lists))
            if tables.count(tables[0]) < len(tables):
                owners = list(chain.from_iterable(map(repeat, count(), map(len, lists))))
        if owners is None:
            tables = tables[:1]
            if tables[0].is_ordered and follow_each_other(lists):
                return cut_sorted(tables, None, changes, size_of(changes), RUN_CHANGES, RUN_BYTES)
        return make_runs(tables, owners, changes, RUN_CHANGES, RUN_BYTES, size_of)
