"""Reclaiming a store's space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock
from typing import Final, assert_never

from msgspec import Struct

from ... import failpoint
from ...actors import Timer
from ...events import Ts
from ...store.generation import Generation
from ...store.plan import CompactionPlan, Kept, StepOutcome, apply_plan, move
from ...store.store import Store
from ..admission import AdmissionControl, SorterActor
from ..run import BlockLocation, SortRun
from ..tier import Tier

LIVE_SHARE: Final = 4
"""A generation is compacted once less than 1/4 of it is still to be read."""

WINDOW_SECONDS: Final = 1.0
"""Length of a generation while there are acknowledgements: creating and dropping one takes RocksDB 5 ms."""


class Unneeded(Struct, frozen=True):
    """To a Compactor: nothing at or below `ts` will be needed again."""

    ts: Ts


class CarryOut(Struct, frozen=True):
    """To a Compactor: the steps of a plan for its store; `done` is called with their outcomes."""

    plan: CompactionPlan
    done: Callable[[list[StepOutcome]], object]


class PlanOutcomes:
    """Collects the outcomes of all Compactors for one plan. Any thread."""

    def __init__(self, missing: int, done: Callable[[list[StepOutcome]], object]) -> None:
        self._missing = missing
        self._done = done
        self._lock = Lock()  # guards the rest
        self._outcomes: list[StepOutcome] = []

    def add(self, outcomes: list[StepOutcome]) -> None:
        with self._lock:
            self._outcomes += outcomes
            self._missing -= 1
            complete = not self._missing
        if complete:
            self._done(self._outcomes)


class EndWindow(Struct, frozen=True):
    """To itself: begin a new generation."""


class Compactor(SorterActor[Unneeded | CarryOut | EndWindow]):
    """Drops the generations of one store: those fully acknowledged, and those nearly all read, after moving
    what is left of them. Raises StoreError."""

    def __init__(self, gate: AdmissionControl, store: Store, tier: Tier) -> None:
        super().__init__(gate)
        self._store = store
        self._tier = tier
        self._acknowledged: Ts = 0
        self._timer: Timer | None = None

    def on_receive_batch(self, messages: Sequence[Unneeded | CarryOut | EndWindow]) -> None:
        for message in messages:
            match message:
                case Unneeded(ts):
                    self._acknowledged = max(self._acknowledged, ts)
                    if self._timer is None and self._store.bytes:
                        self._timer = self.after(WINDOW_SECONDS, EndWindow())
                case CarryOut(plan, done):
                    done(apply_plan(plan, self._store, self._needed))
                case EndWindow():
                    self._timer = None
                    self._store.end_window()
                case _:
                    assert_never(message)
        for window in self._store.ended():
            if window.newest <= self._acknowledged or self._compact(window):
                failpoint.reach("store.compacting")
                self._store.drop(window)

    def _compact(self, window: Generation) -> bool:
        """Move the unread rest if it is small; True if the generation can be dropped."""
        if self._tier.live_bytes(window) * LIVE_SHARE > window.bytes:
            return False
        for kept in self._needed(window):
            kept.moved(move(kept, self._store, window))
        return True

    def _needed(self, window: Generation) -> list[Kept]:
        """Return the ranges of a generation that are still to be read."""
        return [
            Kept(place.lower, place.upper, place.bytes, run.newest, partial(self._moved, run, place))
            for run, place in self._tier.runs_in(window)
        ]

    def _moved(self, run: SortRun, place: BlockLocation, target: Generation) -> None:
        self._tier.moved(run, BlockLocation(target, place.lower, place.upper, place.keys, place.bytes))
