"""Failure and restart of actors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Never

from .backoff import pause_seconds

if TYPE_CHECKING:
    from .clock import Alarm
    from .ref import PooledRef


@dataclass(frozen=True, slots=True)
class Failed:
    """To the supervisor of an actor: handling `message` raised `error`."""

    ref: PooledRef[Never]
    name: str
    message: object
    """The message it was handling, which is not delivered again. For on_receive_batch the list of
    messages; None in on_start, on_stop and for a deadlock."""
    error: BaseException
    restart_seconds: float | None = None
    """Seconds until it is restarted; None if it has stopped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """Start a failed actor again, from the same arguments, after a pause that grows."""

    first_seconds: float = 0.1
    """The pause after the first failure."""
    factor: float = 2.0
    """Factor from one pause to the next."""
    max_seconds: float = 30.0
    """Longest pause."""
    max_restarts: int | None = None
    """Restarts in a row before the actor is stopped; None: no end."""
    healthy_seconds: float = 60.0
    """After running this long without a failure, the next failure counts as the first."""
    errors: tuple[type[BaseException], ...] = (Exception,)
    """Errors that a restart may cure; any other stops the actor."""

    def pause(self, failures: int, error: BaseException) -> float | None:
        """Seconds to pause after the n-th failure in a row; None to stop."""
        if not isinstance(error, self.errors):
            return None
        if self.max_restarts is not None and failures > self.max_restarts:
            return None
        return pause_seconds(failures, self.first_seconds, self.max_seconds, self.factor)


class Respawn:
    """Restarts one actor, and counts its failures in a row."""

    __slots__ = ("alarm", "failed_at", "make", "policy", "row")

    def __init__(self, policy: Restart, make: Callable[[], None]) -> None:
        self.policy = policy
        self.make = make
        self.row = 0
        self.failed_at = 0.0
        self.alarm: Alarm | None = None
        """Ends the pause."""

    def pause(self, error: BaseException, now: float) -> float | None:
        """Seconds until the next start; None to stop."""
        if now - self.failed_at >= self.policy.healthy_seconds:
            self.row = 0
        self.row += 1
        self.failed_at = now
        return self.policy.pause(self.row, error)
