"""How a read at a timestamp gets past the locks in its way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ....actors import Backoff
from ....codec.proto import kvrpcpb
from ....errors import Retryable
from ....events import Ts

if TYPE_CHECKING:
    from .kv import Kv


class LockWait:
    """One read's view of other transactions: those that can't have committed at or below its `ts`.

    Each lock is looked into once it is met. What its transaction has ended as is written in its place; a
    living one is pushed to commit above `ts` and then ignored, or waited for.
    """

    def __init__(self, kv: Kv, backoff: Backoff, ts: Ts, before: LockWait | None = None) -> None:
        self._kv = kv
        self._backoff = backoff
        self._harmless: set[Ts] = before._harmless if before is not None else set()
        self.ts = ts

    def context(self) -> Any:
        """The kvrpcpb.Context that a request of this read starts from."""
        return kvrpcpb.Context(resolved_locks=sorted(self._harmless))

    async def pass_by(self, lock: Any) -> None:
        """Return when the read may be tried again; `lock` is a kvrpcpb.LockInfo.

        Raises Retryable once the waits of this read are over.
        """
        status = await self._kv.transaction_status(lock, caller_start_ts=self.ts)
        if status.ended:
            await self._kv.resolve_lock(lock.key, lock.lock_version, status.commit_ts, [lock.key])
        elif status.pushed:
            self._harmless.add(lock.lock_version)
        else:
            await self._wait(lock)

    async def _wait(self, lock: Any) -> None:
        pause = self._backoff.next()
        if pause is None:
            raise Retryable(
                f"a read at {self.ts} waits for the transaction {lock.lock_version}, "
                f"whose lock on {lock.key.hex()} (primary {lock.primary_lock.hex()}) stays"
            )
        await asyncio.sleep(pause)
