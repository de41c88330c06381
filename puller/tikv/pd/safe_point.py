"""The GC safe point of a feed: keeps the versions that it still has to read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from ....actors import Clock
from ....errors import Retryable, SourceError
from ....events import Ts, compose_ts, physical_ms
from ..options import TikvOptions
from .pd import PdClient

log = logging.getLogger("tidemill.puller")

REMOVAL: Final = (1 << 64) - 1
"""The safe point sent with a time to live of 0, as TiCDC does."""


class Collected(SourceError):
    """The versions from which a feed begins may be gone."""


class SafePoint:
    """One feed's service safe point in PD, just below the changes that the feed has yet to read.

    It stays for `gc_ttl_seconds` after the feed ends: a feed that restarts in time finds all versions it
    needs.
    """

    def __init__(
        self,
        options: TikvOptions,
        pd: PdClient,
        clock: Clock,
        service_id: str,
        checkpoint: Callable[[], Ts],
        *,
        margin_seconds: float = 0.0,
    ) -> None:
        """`checkpoint` returns the ts up to which the feed's targets are complete; called in the loop's
        thread. Versions of `margin_seconds` before it are kept too, as long as they are still there."""
        self._options = options
        self._pd = pd
        self._clock = clock
        self._service_id = service_id
        self._checkpoint = checkpoint
        self._margin = compose_ts(round(margin_seconds * 1000))
        self._renewed = clock.now()
        self._collected: Ts = 0

    def hours_left(self, ts: Ts) -> float:
        """Return the hours until versions after `ts` may be collected: the distance to the GC safe point, or
        the rest of this safe point's time to live. Any thread."""
        ttl = self._options.gc_ttl_seconds - (self._clock.now() - self._renewed)
        distance = physical_ms(ts) / 1000 - physical_ms(self._collected) / 1000 if self._collected else 0.0
        return max(0.0, ttl, distance) / 3600

    async def start(self, start_ts: Ts) -> None:
        """Set the safe point for a feed that begins after `start_ts`.

        Raises Collected if these versions may be gone, Retryable if PD doesn't answer.
        """
        least = await self._hold(start_ts)
        if least >= start_ts:
            raise Collected(
                f"start ts {start_ts} ({_time(start_ts)}) is below the GC safe point {least} "
                f"({_time(least)}): the changes after it may be gone; start again from a later ts, "
                "with a snapshot (a longer tidb_gc_life_time keeps them longer)"
            )

    async def run(self) -> None:
        """Renew the safe point until cancelled. Raises SourceError when the feed's versions may be gone."""
        while True:
            await asyncio.sleep(self._options.gc_interval_seconds)
            await self.renew()

    async def renew(self) -> None:
        ts = self._checkpoint()
        try:
            least = await self._hold(ts)
        except Retryable as error:
            silent = self._clock.now() - self._renewed
            if silent >= self._options.gc_ttl_seconds:
                raise SourceError(
                    f"the GC safe point could not be renewed for {silent:.0f} s and has expired: {error}"
                ) from error
            log.warning("the GC safe point %s at %d could not be renewed: %s", self._service_id, ts, error)
            return
        if least >= ts:
            raise SourceError(
                f"the feed has come to ts {ts} ({_time(ts)}), but the GC safe point is at {least} "
                f"({_time(least)}): the changes in between may be gone; start again with a new snapshot"
            )

    async def remove(self) -> None:
        """Remove the safe point of a feed that won't be resumed."""
        await self._pd.update_service_gc_safe_point(self._service_id, 0, REMOVAL)

    async def _hold(self, ts: Ts) -> Ts:
        """Set the safe point to ts - 1, so that `ts` itself can be read, or to the margin before; return the
        ts up to which versions may be gone nevertheless."""
        ttl_seconds = self._options.gc_ttl_seconds
        wanted = max(0, ts - 1 - self._margin)
        least = await self._pd.update_service_gc_safe_point(self._service_id, ttl_seconds, wanted)
        if wanted < least <= ts - 1:  # PD keeps only a safe point that isn't too late
            least = await self._pd.update_service_gc_safe_point(self._service_id, ttl_seconds, ts - 1)
        collected = await self._pd.gc_safe_point()  # read afterwards: it can't pass the point just set
        self._renewed, self._collected = self._clock.now(), collected
        return max(least, collected)


def _time(ts: Ts) -> str:
    return datetime.fromtimestamp(physical_ms(ts) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
