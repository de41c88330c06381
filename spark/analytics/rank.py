"""Which windows to compact first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ...events import Ts
from ...store.plan import VERSION, Plan, Step
from .report import WindowFigures

LEAST_SHARE: Final = 10
"""A window is left alone while less than one part in this many can be freed."""


def plan_of(windows: Iterable[WindowFigures], acknowledged: Ts) -> Plan:
    """The windows with something to free, those first that free most for each byte written anew."""
    worth = [one for one in windows if one.free_bytes * LEAST_SHARE >= one.bytes > 0]
    ranked = sorted(worth, key=lambda one: (-gain(one), -one.free_bytes, one.store, one.window))
    steps = [Step(one.store, one.window, one.free_bytes, one.bytes - one.free_bytes) for one in ranked]
    return Plan(VERSION, acknowledged, steps)


def gain(window: WindowFigures) -> float:
    """Bytes freed for each byte written."""
    live = window.bytes - window.free_bytes
    return window.free_bytes / live if live else float("inf")
