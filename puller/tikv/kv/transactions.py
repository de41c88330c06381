"""The status of a transaction, from a store's answer."""

from __future__ import annotations

from msgspec import Struct

from ....codec.proto import kvrpcpb
from ....errors import Retryable
from ....events import Ts
from .key_error import sentence


class TxnStatus(Struct, frozen=True, gc=False):
    """The status of a transaction: alive if `lock` is set, otherwise committed at `commit_ts`, or rolled back
    if that is 0."""

    commit_ts: Ts = 0
    lock: kvrpcpb.LockInfo | None = None
    """kvrpcpb.LockInfo of its primary key."""
    pushed: bool = False
    """True if it is alive and will commit above the caller's start ts: the caller may ignore its lock."""

    @property
    def ended(self) -> bool:
        return self.lock is None


class PrimaryMismatch(Retryable):
    """The key that a lock names as its primary is locked by the transaction, but as a secondary key."""


class SecondaryLocks(Struct, frozen=True, gc=False):
    """The answer for some keys of an async-commit transaction: all are locked, or it has ended."""

    locks: list[kvrpcpb.LockInfo]
    """kvrpcpb.LockInfo of each key; meaningless after it has ended."""
    ended: bool
    commit_ts: Ts
    """0 if it was rolled back."""


def status_of(answer: kvrpcpb.CheckTxnStatusResponse, primary: bytes, start_ts: Ts) -> TxnStatus | None:
    """Read a kvrpcpb.CheckTxnStatusResponse; None if the store doesn't know the transaction.

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


def _check_unknown(error: kvrpcpb.KeyError) -> None:
    """Raise Retryable for a KeyError other than "transaction not found"."""
    if error.HasField("primary_mismatch"):
        lock = error.primary_mismatch.lock_info
        raise PrimaryMismatch(
            f"KvCheckTxnStatus: primary_mismatch: a lock of transaction {lock.lock_version} names "
            f"{lock.key.hex()} as its primary, but the lock there names {lock.primary_lock.hex()}"
        )
    if not error.HasField("txn_not_found"):
        raise Retryable(f"KvCheckTxnStatus: {sentence(error)}")
