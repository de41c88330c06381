"""How a transaction ended that committed asynchronously and lost its client.

Such a transaction is committed from the moment at which all its keys are locked, without its primary key
saying so (TiDB's async commit design). KvCheckSecondaryLocks asks for the locks of all other keys, and closes
one that isn't prewritten to the transaction for good, so the answer can't change afterwards. KvCheckTxnStatus
would leave a pessimistic lock where it is, and the prewrite that follows it could still succeed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....events import Ts
from .transactions import TxnStatus

if TYPE_CHECKING:
    from .kv import Kv


async def outcome(kv: Kv, primary: Any, current_ts: Ts) -> TxnStatus:
    """The end of the transaction whose primary lock (kvrpcpb.LockInfo) is over its time at `current_ts`.

    The commit ts is the greatest that any of its locks asks for. Raises Retryable.
    """
    found = await kv.check_secondary_locks(primary.secondaries, primary.lock_version)
    if found.ended:
        return TxnStatus(commit_ts=found.commit_ts)
    if not all(lock.use_async_commit for lock in found.locks):
        return await _ordinary(kv, primary, current_ts)
    return TxnStatus(commit_ts=max([primary.min_commit_ts, *(lock.min_commit_ts for lock in found.locks)]))


async def _ordinary(kv: Kv, primary: Any, current_ts: Ts) -> TxnStatus:
    """Of one that went back to committing by its primary on the way: that decides."""
    status = await kv.check_txn_status(
        primary.key,
        primary.lock_version,
        current_ts=current_ts,
        rollback_if_not_exist=True,
        force_sync_commit=True,
    )
    return status or TxnStatus()
