"""Lock resolution of a read at a timestamp."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ....actors import Backoff
from ....codec.proto import kvrpcpb
from ....errors import Retryable
from ....events import Ts

if TYPE_CHECKING:
    from .kv import Kv


class LockWait:
    """The locks met by one read: it skips those of transactions that can't commit at or below its `ts`.

    Each lock's transaction is checked once. If it has ended, its lock is resolved; a living one is pushed to
    commit above `ts` and then ignored, or waited for.
    """

    def __init__(self, kv: Kv, backoff: Backoff, ts: Ts, before: LockWait | None = None) -> None:
        self._kv = kv
        self._backoff = backoff
        self._harmless: set[Ts] = before._harmless if before is not None else set()
        self.ts = ts

    def context(self) -> kvrpcpb.Context:
        """Return the kvrpcpb.Context for a request of this read."""
        return kvrpcpb.Context(resolved_locks=sorted(self._harmless))

    async def pass_by(self, lock: kvrpcpb.LockInfo) -> None:
        """Resolve a lock (kvrpcpb.LockInfo), or wait; return when the read may be retried.

        Raises Retryable after the last wait of this read.
        """
        status = await self._kv.transaction_status(lock, caller_start_ts=self.ts)
        if status.ended:
            await self._kv.resolve_lock(lock.key, lock.lock_version, status.commit_ts, [lock.key])
        elif status.pushed:
            self._harmless.add(lock.lock_version)
        else:
            await self._wait(lock)

    async def _wait(self, lock: kvrpcpb.LockInfo) -> None:
        pause = self._backoff.next()
        if pause is None:
            raise Retryable(
                f"a read at {self.ts} waits for the transaction {lock.lock_version}, "
                f"whose lock on {lock.key.hex()} (primary {lock.primary_lock.hex()}) stays"
            )
        await asyncio.sleep(pause)
