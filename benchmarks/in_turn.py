"""Works measured in turn, so that drift of the machine affects all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from statistics import median
from typing import NamedTuple, TypeVar

Name = TypeVar("Name", bound=Hashable)


class Taken(NamedTuple):
    """Seconds of a work."""

    clock: float
    cpu: float
    """CPU time of this process."""

    @classmethod
    def now(cls) -> Taken:
        return cls(time.perf_counter(), time.process_time())

    def since(self, before: Taken) -> Taken:
        return Taken(self.clock - before.clock, self.cpu - before.cpu)


def taken(work: Callable[[], object]) -> Taken:
    begun = Taken.now()
    work()
    return Taken.now().since(begun)


def seconds_of(work: Callable[[], object]) -> float:
    return taken(work).clock


def medians(
    works: Mapping[Name, Callable[[], float]], rounds: int, *, warm_ups: int = 0
) -> dict[Name, float]:
    """Return the median of what each work returns; rounds of warm-up don't count."""
    values: dict[Name, list[float]] = {name: [] for name in works}
    for number in range(warm_ups + rounds):
        for name, work in works.items():
            value = work()
            if number >= warm_ups:
                values[name].append(value)
    return {name: median(several) for name, several in values.items()}


def median_pairs(
    pairs: Mapping[str, tuple[Callable[[], float], Callable[[], float]]], rounds: int, *, warm_ups: int = 0
) -> dict[str, tuple[float, float]]:
    """Return the same of each pair of ours and a yardstick."""
    works = {(name, place): work for name, pair in pairs.items() for place, work in enumerate(pair)}
    values = medians(works, rounds, warm_ups=warm_ups)
    return {name: (values[name, 0], values[name, 1]) for name in pairs}


class Measured(NamedTuple):
    """Figures by name, and those of the yardstick by the same names.

    Names that end in _seconds, _bytes or _ms are costs; others are rates.
    """

    figures: dict[str, float]
    yardstick: dict[str, float]
