"""The outcome of an async-commit transaction whose client has died.

Such a transaction is committed as soon as all its keys are locked, without a record of that in its primary
key (TiDB's async commit design). KvCheckSecondaryLocks returns the locks of all other keys, and prevents the
transaction from ever locking one that isn't prewritten, so the answer can't change afterwards.
KvCheckTxnStatus would leave a pessimistic lock in place, and a later prewrite over it could still succeed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....codec.proto import kvrpcpb
from ....events import Ts
from .transactions import TxnStatus

if TYPE_CHECKING:
    from .kv import Kv


async def outcome(kv: Kv, primary: kvrpcpb.LockInfo, current_ts: Ts) -> TxnStatus:
    """Return the outcome of the transaction whose primary lock (kvrpcpb.LockInfo) has expired at
    `current_ts`.

    The commit ts is the maximum of its locks' min_commit_ts. Raises Retryable.
    """
    secondaries = await kv.check_secondary_locks(primary.secondaries, primary.lock_version)
    if secondaries.ended:
        return TxnStatus(commit_ts=secondaries.commit_ts)
    if not all(lock.use_async_commit for lock in secondaries.locks):
        return await _ordinary(kv, primary, current_ts)
    return TxnStatus(
        commit_ts=max([primary.min_commit_ts, *(lock.min_commit_ts for lock in secondaries.locks)])
    )


async def _ordinary(kv: Kv, primary: kvrpcpb.LockInfo, current_ts: Ts) -> TxnStatus:
    """Return the outcome of a transaction that fell back to two-phase commit: its primary key decides."""
    status = await kv.check_txn_status(
        primary.key,
        primary.lock_version,
        current_ts=current_ts,
        rollback_if_not_exist=True,
        force_sync_commit=True,
    )
    return status or TxnStatus()
