"""What became of a transaction, by a store's answer."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ....codec.proto import kvrpcpb
from ....errors import Retryable
from ....events import Ts
from .key_error import sentence


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


class PrimaryMismatch(Retryable):
    """The key that a lock names as its primary is locked by the transaction, but not as its primary."""


class SecondaryLocks(Struct, frozen=True, gc=False):
    """Of some keys of a transaction that commits asynchronously: all are locked, or it has ended."""

    locks: list[Any]
    """kvrpcpb.LockInfo of each key; meaningless once it has ended."""
    ended: bool
    commit_ts: Ts
    """0 if it was rolled back."""


def status_of(answer: Any, primary: bytes, start_ts: Ts) -> TxnStatus | None:
    """Of a kvrpcpb.CheckTxnStatusResponse; None if the store knows of no such transaction.

    Raises PrimaryMismatch, and Retryable for other errors.
    """
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
    if error.HasField("primary_mismatch"):
        found = error.primary_mismatch.lock_info
        raise PrimaryMismatch(
            f"KvCheckTxnStatus: primary_mismatch: a lock of transaction {found.lock_version} names "
            f"{found.key.hex()} as its primary, but the lock there names {found.primary_lock.hex()}"
        )
    if not error.HasField("txn_not_found"):
        raise Retryable(f"KvCheckTxnStatus: {sentence(error)}")
