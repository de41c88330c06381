"""Inbox for compaction plans of a running feed: a plan and its result, as files in the data directory."""

from __future__ import annotations

from contextlib import suppress
from math import inf
from pathlib import Path
from threading import Event
from typing import Final

import msgspec

from ..errors import ConfigError
from ..store.disk import replace
from ..store.plan import CompactionPlan, StepOutcome, decode_plan, encode_plan
from .status import RUNNING, StatusFile

LOOK_SECONDS: Final = 0.25


class PlanInbox:
    """Takes one plan at a time; the sender waits for the result."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._plan = directory / "compact.plan"
        self._outcomes = directory / "compact.outcomes"

    def hand_over(self, plan: CompactionPlan, patience_seconds: float = inf) -> list[StepOutcome]:
        """Send a plan and return its result once the feed has run it.

        Raises ConfigError if the feed isn't running or the timeout expires, and CheckpointError if no feed
        has run there.
        """
        self._check_runs()
        self._outcomes.unlink(missing_ok=True)
        replace(self._plan, encode_plan(plan).encode())
        try:
            while not self._outcomes.exists():
                self._check_runs()
                if patience_seconds <= 0:
                    raise ConfigError(f"the feed in {self._directory} doesn't answer")
                Event().wait(LOOK_SECONDS)
                patience_seconds -= LOOK_SECONDS
        except BaseException:  # no sender waits for it any more
            self._plan.unlink(missing_ok=True)
            raise
        outcomes = msgspec.json.decode(self._outcomes.read_bytes(), type=list[StepOutcome])
        self._outcomes.unlink()
        return outcomes

    def _check_runs(self) -> None:
        state = StatusFile(self._directory).load().state
        if state not in RUNNING:
            raise ConfigError(f"the feed in {self._directory} is {state}: only a running one carries it out")

    def take(self) -> CompactionPlan | None:
        """Return the waiting plan, if any; called by the feed. Raises ConfigError for an invalid plan."""
        with suppress(FileNotFoundError):
            text = self._plan.read_bytes()
            self._plan.unlink()
            return decode_plan(text, str(self._plan))
        return None

    def answer(self, outcomes: list[StepOutcome]) -> None:
        """Write the plan's result; called by the feed."""
        replace(self._outcomes, msgspec.json.encode(outcomes))
