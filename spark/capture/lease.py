"""The lease of a capture's buffer by one query at a time."""

from __future__ import annotations

from threading import Lock

from msgspec import Struct

from ...actors import Clock
from ...errors import Retryable


class LeaseStatistics(Struct, frozen=True):
    lease: str
    """The owner; empty: none."""
    seconds_left: float


class Lease:
    """Has one owner at a time, until `seconds` after its last use.

    Not kept over a restart: the first query to ask then gets it, and another one reads from the source,
    which only takes longer.
    """

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        self._owner = ""
        self._until = 0.0

    def use(self, owner: str) -> None:
        """Take or renew the lease. Raises Retryable while another query owns it."""
        with self._lock:
            now = self._clock.now()
            if self._owner not in ("", owner) and now < self._until:
                left = self._until - now
                raise Retryable(
                    f"the changes are leased to the query {self._owner} for another {left:.0f} s", left
                )
            self._owner, self._until = owner, now + self._seconds

    def statistics(self) -> LeaseStatistics:
        with self._lock:
            left = self._until - self._clock.now()
            return LeaseStatistics(self._owner if left > 0 else "", max(0.0, left))
