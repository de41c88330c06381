"""Pauses between attempts to run a feed."""

from __future__ import annotations

from typing import Final

from .. import actors

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 30.0


def pause_seconds(failures: int) -> float:
    """Return the pause after the n-th failure in a row."""
    return actors.pause_seconds(failures, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
