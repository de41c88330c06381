"""Runs of many seeds, and what they reached."""

from __future__ import annotations

import gc
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..disk import MEMORY_DISK
from .mutants.mutant import WorldSource
from .plan import PLANS, REACHED, Plan
from .shrink import shrink
from .world import Result, World


def run_plan(plan: Plan) -> Result:
    """Run a world in a directory of its own, in memory if possible."""
    parent = MEMORY_DISK if MEMORY_DISK.is_dir() else None
    gc.disable()  # finalizers would run at any time
    with warnings.catch_warnings():
        # The code of a dead machine submits work to its loop, which takes none.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        warnings.filterwarnings("ignore", "unclosed file", ResourceWarning)  # of dead machines
        try:
            with tempfile.TemporaryDirectory(prefix="tidemill-simulation-", dir=parent) as directory:
                return World(plan, Path(directory)).run()
        finally:
            gc.enable()
            gc.collect()


def run_seed(seed: int, source: WorldSource = "tikv") -> Result:
    return run_plan(PLANS[source](seed))


def shrunk(result: Result) -> Result:
    """Return the run of the smallest part of a failed run's plan that fails too."""
    smallest = result

    def fails(plan: Plan) -> bool:
        nonlocal smallest
        again = run_plan(plan)
        if again.violations:
            smallest = again
        return bool(again.violations)

    shrink(result.plan, fails)
    return smallest


@dataclass
class Tally:
    """Counts over many seeds."""

    source: WorldSource = "tikv"
    seeds: int = 0
    steps: int = 0
    seconds: float = 0.0
    """Virtual time."""
    kills: int = 0
    commits: int = 0
    changes: int = 0
    points: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    failed: list[Result] = field(default_factory=list)

    def add(self, result: Result) -> None:
        self.seeds += 1
        self.steps += result.steps
        self.seconds += result.seconds
        self.kills += result.kills
        self.commits += result.commits
        self.changes += result.changes
        self.points.update(result.points)
        self.faults.update(step.text.partition(":")[0] for step in result.plan.steps if step.is_fault)
        if result.violations:
            self.failed.append(result)

    @property
    def unreached(self) -> list[str]:
        """Failpoints on the feed's way that no seed has passed."""
        return [point for point in REACHED[self.source] if not self.points[point]]


def _freeze() -> None:
    """Exempt what is imported from the collections after each seed."""
    gc.collect()
    gc.freeze()


def run_seeds(
    seeds: Iterable[int], source: WorldSource = "tikv", show: Callable[[Result], object] | None = None
) -> Tally:
    """Run worlds; `show` gets the result of each."""
    tally = Tally(source)
    _freeze()
    for seed in seeds:
        result = run_seed(seed, source)
        tally.add(result)
        if show is not None:
            show(result)
    return tally


def first_failure(seeds: Iterable[int], source: WorldSource) -> Result | None:
    """Return the first run that fails; None if none does."""
    _freeze()
    return next((result for seed in seeds if (result := run_seed(seed, source)).violations), None)
