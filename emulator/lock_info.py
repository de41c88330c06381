"""Locks as TiKV describes them: kvrpcpb.LockInfo."""

from __future__ import annotations

from collections.abc import Sequence

from ..codec.proto import kvrpcpb
from .shard import LOCK, PESSIMISTIC, SHARED, SHARED_PESSIMISTIC, Lock

_PLAIN = {SHARED: LOCK, SHARED_PESSIMISTIC: PESSIMISTIC}
"""Types of the locks inside a shared one."""


def lock_info(key: bytes, lock: Lock) -> kvrpcpb.LockInfo:
    """Return the kvrpcpb.LockInfo of a lock."""
    attempt = lock.attempt
    return kvrpcpb.LockInfo(
        primary_lock=attempt.primary,
        lock_version=attempt.start_ts,
        key=key,
        lock_ttl=attempt.ttl_ms,
        txn_size=attempt.size,
        lock_type=_PLAIN.get(lock.op, lock.op),
        lock_for_update_ts=attempt.for_update_ts,
        use_async_commit=attempt.async_commit,
        min_commit_ts=attempt.min_commit_ts,
        secondaries=attempt.secondaries if key == attempt.primary else (),
    )


def lock_info_on(key: bytes, locks: Sequence[Lock]) -> kvrpcpb.LockInfo:
    """Return the kvrpcpb.LockInfo of all locks of a key: shared locks are wrapped in one without a
    transaction."""
    if not locks[0].shared:
        return lock_info(key, locks[0])
    inner = [lock_info(key, lock) for lock in locks]
    return kvrpcpb.LockInfo(key=key, lock_type=SHARED, shared_lock_infos=inner)
