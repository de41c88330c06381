"""How much of a store's stream is read ahead."""

from __future__ import annotations

import asyncio
from threading import Thread

from tidemill.puller.tikv.feed.backlog import MOST_BYTES, Backlog


async def test_what_comes_waits_while_too_much_is_unhandled():
    backlog = Backlog()
    await backlog.add(MOST_BYTES - 1)
    await backlog.add(6 << 20)  # there was room
    third = asyncio.ensure_future(backlog.add(1))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not third.done()
    handler = Thread(target=backlog.done, args=(6 << 20,))
    handler.start()
    await third
    handler.join()


async def test_a_message_larger_than_all_goes_in_alone():
    backlog = Backlog()
    await backlog.add(10 * MOST_BYTES)
    second = asyncio.ensure_future(backlog.add(1))
    await asyncio.sleep(0)
    assert not second.done()
    backlog.done(10 * MOST_BYTES)
    await second
