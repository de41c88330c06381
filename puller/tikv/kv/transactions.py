"""What became of a transaction."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ....codec.proto import kvrpcpb
from ....errors import Retryable
from ....events import Ts


class TxnStatus(Struct, frozen=True, gc=False):
    """Alive with a `lock`; else ended: committed at `commit_ts`, or rolled back if that is 0."""

    commit_ts: Ts = 0
    lock: Any = None
    """kvrpcpb.LockInfo of its primary key."""
    pushed: bool = False
    """It is alive and will commit above the caller's start ts, who may read as if it weren't there."""

    @property
    def ended(self) -> bool:
        return self.lock is None


def status_of(answer: Any, primary: bytes, start_ts: Ts) -> TxnStatus | None:
    """Of a kvrpcpb.CheckTxnStatusResponse; None if the store knows of no such transaction."""
    if answer.HasField("error"):
        _check_unknown(answer.error)
        return None
    if not answer.lock_ttl:
        return TxnStatus(commit_ts=answer.commit_version)
    lock = kvrpcpb.LockInfo(primary_lock=primary, key=primary, lock_version=start_ts)
    lock.MergeFrom(answer.lock_info)
    lock.lock_ttl = answer.lock_ttl
    return TxnStatus(lock=lock, pushed=answer.action == kvrpcpb.Action.MinCommitTSPushed)


def _check_unknown(error: Any) -> None:
    """Raises Retryable for a KeyError that says anything but that the transaction isn't found."""
    if not error.HasField("txn_not_found"):
        raise Retryable(f"KvCheckTxnStatus: {error.retryable or error.abort or error}")
