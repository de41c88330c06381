"""Counts of values by size."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

BATCH_ROWS: Final = (1, 10, 100, 1_000, 10_000, 100_000)
"""Bounds of a histogram of batches by their rows."""


class HistogramCounts(Struct, frozen=True):
    """A histogram at one moment."""

    counts: tuple[int, ...]
    """Number of values up to each bound and above the one before it; the last one: above all bounds."""
    total: float
    """Sum of the values."""


class Histogram:
    """Counts values by bounds. Written in one thread at a time; any thread may read it."""

    __slots__ = ("_bounds", "_counts", "_total")

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` are ascending."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    @property
    def counts(self) -> HistogramCounts:
        return HistogramCounts(tuple(self._counts), self._total)
