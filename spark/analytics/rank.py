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
    """The windows with dead bytes, those first that free most for each byte that has to be written."""
    worth = [window for window in windows if window.dead_bytes * LEAST_SHARE >= window.bytes > 0]
    ranked = sorted(
        worth, key=lambda window: (-gain(window), -window.dead_bytes, window.store, window.window)
    )
    steps = [
        Step(window.store, window.window, window.dead_bytes, window.bytes - window.dead_bytes)
        for window in ranked
    ]
    return Plan(VERSION, acknowledged, steps)


def gain(window: WindowFigures) -> float:
    """Bytes freed for each byte written."""
    live = window.bytes - window.free_bytes
    return window.free_bytes / live if live else float("inf")
