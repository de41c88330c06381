"""Waiting in the loop's thread on the injected clock, so that jumps of a test's clock take effect."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ...actors import Clock


async def sleep(clock: Clock, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not woken.done():
            woken.set_result(None)

    def ring() -> None:
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(wake)

    alarm = clock.call_at(clock.now() + seconds, ring)
    try:
        await woken
    finally:
        alarm.cancel()
