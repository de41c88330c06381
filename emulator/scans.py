"""The incremental scans of a store: a limited number at once, the others queue."""

from __future__ import annotations

import asyncio
from collections import deque

from .event_bytes import rows_event
from .options import Options
from .scan import Snapshot, chunks
from .shard import Shard
from .subscription import Subscription, SubscriptionState

NOTHING = Shard()
"""The shard of a region that was never written to."""


class Scans:
    """Runs incremental scans. To be used in the loop's thread only."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.held: int | None = None
        """Number of batches after which each scan stops; 0: none begins; None: none stops."""
        self.standing = 0
        """Number of scans that stopped there."""
        self._freed = asyncio.Event()
        self._waiting: deque[Subscription] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """Number of scans that wait to begin."""
        return len(self._waiting)

    def add(self, subscription: Subscription) -> None:
        """Scan a subscription's region; then its state is NORMAL, unless it was stopped meanwhile."""
        self._waiting.append(subscription)
        self._begin()

    def hold(self, pieces: int | None) -> None:
        """Stop every scan after `pieces` batches; None releases them."""
        self.held = pieces
        self._freed.set()
        self._freed = asyncio.Event()
        self._begin()

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self) -> None:
        while self._waiting and self.held != 0 and len(self._tasks) < self._options.scans:
            task = asyncio.ensure_future(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _work(self) -> None:
        try:
            while self._waiting and self.held != 0:
                subscription = self._waiting.popleft()
                if subscription.state is SubscriptionState.WAITING:
                    await self._scan(subscription)
        finally:  # immediately, not in a callback of the task: a scan added in between would wait for ever
            self._tasks -= {asyncio.current_task()}

    async def _scan(self, subscription: Subscription) -> None:
        region, connection, options = subscription.region, subscription.connection, self._options
        subscription.state = SubscriptionState.SCANNING
        snapshot = Snapshot(NOTHING if region.empty else region.shard)
        wanted = subscription.wanted if options.filter_span else None
        rows = snapshot.rows(subscription.checkpoint_ts, wanted)
        for number, chunk in enumerate(chunks(rows, options.scan_rows, options.scan_bytes)):
            await self._go_on(number)
            await connection.room()
            if subscription.state is not SubscriptionState.SCANNING:
                return
            event = rows_event(region.id, chunk, old_values=subscription.old_value)
            connection.put(event, subscription.request_id)
            await asyncio.sleep(0)
        if subscription.state is SubscriptionState.SCANNING:
            subscription.state = SubscriptionState.NORMAL
            connection.enter(subscription)

    async def _go_on(self, number: int) -> None:
        """Wait before batch `number` while scans are held there."""
        while self.held is not None and number >= self.held:
            self.standing += 1
            try:
                await self._freed.wait()
            finally:
                self.standing -= 1
