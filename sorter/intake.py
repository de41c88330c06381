"""Intake: takes in the changes of all tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ..actors import PooledActor, PooledRef, Timer
from ..actors.future import Ask
from ..codec.blocks import NOTHING, merge
from ..events import Block, Changes, Ts
from .admission import AdmissionControl, SorterActor
from .arrivals import WAKE, Arrivals, Uid, Wake
from .keyspace import SortKeyspace
from .run import SortRun, runs_of
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

Spill = Callable[[list[SortRun], PooledActor[Wake]], None]
"""Has the actor given, in its turn, send runs to disk."""


class Intake(SorterActor[Wake]):
    """Makes runs of the changes told to the Writers, puts them into the memory tier, and spills what exceeds
    its quota. It takes nothing while the disk or the Merger lags behind.

    A run holds the changes of several tables that spill together, in order.
    """

    def __init__(
        self,
        gate: AdmissionControl,
        tier: Tier,
        arrivals: Arrivals,
        merger: PooledRef[Wake],
        spill: Spill | None,
    ) -> None:
        super().__init__(gate)
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

    def _advance(self, advanced: dict[Uid, Ts]) -> None:
        """Resolve tables, after the changes that their Writers still hold."""
        for writer in list(self._gate.writers):
            table = writer.table
            if table.uid in advanced and not table.removed:
                writer.post(Changes(NOTHING, advanced.pop(table.uid)))
        self._hand_over([], advanced)

    def _take_in(self, asks: list[Ask]) -> None:
        groups, resolved = self._collect(asks)
        runs: list[SortRun] = []
        for tables, blocks in groups.values():
            merged = merge(blocks, [table.uid for table in tables])
            runs += runs_of(tuple(dict.fromkeys(tables)), merged, RUN_CHANGES, RUN_BYTES)
        self._hand_over(runs, resolved)

    def _hand_over(self, runs: list[SortRun], resolved: dict[Uid, Ts]) -> None:
        spilled = self._tier.add(runs) if runs else []
        if self._arrivals.post(runs, resolved):
            self.send(self._merger, WAKE)
        if spilled and self._spill is not None:
            self._spill(spilled, self)

    def _collect(
        self, asks: list[Ask]
    ) -> tuple[dict[Any, tuple[list[SortKeyspace], list[Block]]], dict[Uid, Ts]]:
        """Take the messages of about one turn. Returns tables and their blocks by spill group, and the
        resolved ts by table."""
        writers = self._gate.writers
        groups: dict[Any, tuple[list[SortKeyspace], list[Block]]] = {}
        resolved: dict[Uid, Ts] = {}
        room = TURN_CHANGES
        tables_left = TURN_CHANGES
        first: Writer | None = None
        receipts, now = self._arrivals.receipts, self.clock.now()
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
                    if not message.moves_only:
                        receipts.note(changes.first_ts, changes.last_ts, now, len(changes), changes.bytes)
                ts = message.resolved
                if ts > resolved.get(table.uid, 0):
                    resolved[table.uid] = ts
        return groups, resolved
