"""The order in which generations are compacted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...events import Ts
from ...store.plan import VERSION, CompactionPlan, Step
from .report import WindowFigures

LEAST_SHARE: Final = 10
"""A generation is skipped while less than 1/10 of it can be freed."""
LEAST_BYTES: Final = 16 << 20
"""A plan that frees less than this has no generation of which more is rewritten than freed."""


def plan_of(windows: Iterable[WindowFigures], acknowledged: Ts) -> CompactionPlan:
    """Return a plan of the generations worth compacting, by bytes freed per byte rewritten."""
    worth = [one for one in windows if one.free_bytes * LEAST_SHARE >= one.bytes > 0]
    if sum(one.free_bytes for one in worth) < LEAST_BYTES:
        worth = [one for one in worth if gain(one) >= 1]
    ranked = sorted(worth, key=lambda one: (-gain(one), -one.free_bytes, one.store, one.window))
    steps = [Step(one.store, one.window, one.free_bytes, one.bytes - one.free_bytes) for one in ranked]
    return CompactionPlan(VERSION, acknowledged, steps)


def gain(window: WindowFigures) -> float:
    """Return the bytes freed per byte rewritten."""
    live = window.bytes - window.free_bytes
    return window.free_bytes / live if live else float("inf")
