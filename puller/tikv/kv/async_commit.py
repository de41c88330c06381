"""How a transaction ended that committed asynchronously and lost its client.

Such a transaction is committed from the moment at which all its keys are locked, without its primary key
saying so (TiDB's async commit design). Each key is asked by KvCheckTxnStatus as if it were a primary:
one that isn't locked is then closed to the transaction for good, so the answer can't change afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ....events import Ts
from .transactions import TxnStatus

if TYPE_CHECKING:
    from .kv import Kv

_NEVER_EXPIRED: Ts = 0
"""As the current ts: a lock that commits in the ordinary way is left to its primary."""


async def outcome(kv: Kv, primary: Any, current_ts: Ts) -> TxnStatus:
    """The end of the transaction whose primary lock (kvrpcpb.LockInfo) is over its time at `current_ts`.

    The commit ts is the greatest that any of its locks asks for. Raises Retryable.
    """
    start_ts, commit_ts = primary.lock_version, primary.min_commit_ts
    for key in primary.secondaries:
        status = await kv.check_txn_status(
            key, start_ts, current_ts=_NEVER_EXPIRED, rollback_if_not_exist=True
        )
        if status is None or status.ended:
            return status or TxnStatus()
        if not status.lock.use_async_commit:
            return await _ordinary(kv, primary, current_ts)
        commit_ts = max(commit_ts, status.lock.min_commit_ts)
    return TxnStatus(commit_ts=commit_ts)


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
