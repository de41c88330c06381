"""PD's GC safe point, and the services that hold it back."""

from __future__ import annotations

from msgspec import Struct

from ..events import Ts

GC_WORKER = b"gc_worker"
FOREVER = (1 << 63) - 1


class Hold(Struct, frozen=True):
    """The safe point of one service."""

    safe_point: Ts
    until_s: float
    """Time of expiry in Unix seconds."""


class SafePoints:
    """The service safe points of PD: `gc_worker` always exists and never expires."""

    def __init__(self) -> None:
        self.gc: Ts = 0
        """The GC safe point: versions that only older snapshots see may be collected."""
        self.holds: dict[bytes, Hold] = {GC_WORKER: Hold(0, float("inf"))}

    def least(self, now_s: float) -> tuple[bytes, Hold]:
        """Return the service with the lowest safe point; expired ones are removed."""
        self.holds = {name: hold for name, hold in self.holds.items() if hold.until_s > now_s}
        return min(self.holds.items(), key=lambda item: item[1].safe_point)

    def update(self, service: bytes, ttl_s: int, safe_point: Ts, now_s: float) -> tuple[bytes, Hold]:
        """Set a service's safe point unless it is below the minimum; return the minimum.

        A TTL of 0 or below removes the service. Raises ValueError if PD refuses: it checks the name and the
        TTL only when it would store them.
        """
        if ttl_s <= 0:
            if service == GC_WORKER:
                raise ValueError("cannot remove service safe point of gc_worker")
            self.holds.pop(service, None)
        elif safe_point >= self.least(now_s)[1].safe_point:
            self._check(service, ttl_s)
            self.holds[service] = Hold(safe_point, now_s + ttl_s)
        return self.least(now_s)

    @staticmethod
    def _check(service: bytes, ttl_s: int) -> None:
        if not service:
            raise ValueError("service id of service safepoint cannot be empty")
        if service == GC_WORKER and ttl_s != FOREVER:
            raise ValueError("TTL of gc_worker's service safe point must be infinity")
