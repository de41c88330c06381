"""PD's GC safe point, and the services that hold it back."""

from __future__ import annotations

from msgspec import Struct

from ..events import Ts

GC_WORKER = b"gc_worker"
FOREVER = (1 << 63) - 1


class Hold(Struct, frozen=True):
    """What one service needs."""

    safe_point: Ts
    until_s: float
    """Unix seconds."""


class SafePoints:
    """As PD keeps them: `gc_worker` is always there and never expires."""

    def __init__(self) -> None:
        self.gc: Ts = 0
        """Versions that only older snapshots see may be gone."""
        self.holds: dict[bytes, Hold] = {GC_WORKER: Hold(0, float("inf"))}

    def least(self, now_s: float) -> tuple[bytes, Hold]:
        """The service that holds back the most; expired ones are forgotten."""
        self.holds = {name: hold for name, hold in self.holds.items() if hold.until_s > now_s}
        return min(self.holds.items(), key=lambda item: item[1].safe_point)

    def update(self, service: bytes, ttl_s: int, safe_point: Ts, now_s: float) -> tuple[bytes, Hold]:
        """Set a service's safe point, unless it lies below the least; the least one then.

        A TTL of 0 or below removes the service. Raises ValueError where PD refuses: it looks at the name
        and the TTL only where it has something to write down.
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
