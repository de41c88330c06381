"""The status of a transaction by its primary or secondary keys, with TiKV's side effects."""

from __future__ import annotations

from collections.abc import Sequence

from ..codec.proto import kvrpcpb
from ..events import LOGICAL_BITS, Ts
from .lock_info import lock_info
from .oracle import MAX_TS
from .percolator import Rejected, Rows, committed, rollback
from .shard import Lock, Shard


def check_txn_status(
    shard: Shard, request: kvrpcpb.CheckTxnStatusRequest, rows: Rows
) -> kvrpcpb.CheckTxnStatusResponse:
    """Answer a kvrpcpb.CheckTxnStatusRequest; an expired lock is rolled back.

    That of an async commit is not, unless it is forced. Raises Rejected.
    """
    key, start_ts = request.primary_key, request.lock_ts
    lock = shard.lock_of(key, start_ts)
    if lock is None:
        return _missing(shard, request, rows)
    if request.verify_is_primary and lock.attempt.primary != key:
        if lock.pessimistic and not request.resolving_pessimistic_lock:
            answer = _missing(shard, request, rows)
            if shard.lock_of(key, start_ts) is not None:
                shard.release(key, start_ts)
            return answer
        raise Rejected([kvrpcpb.KeyError(primary_mismatch={"lock_info": lock_info(key, lock)})])
    answer = kvrpcpb.CheckTxnStatusResponse()
    if not lock.attempt.async_commit or request.force_sync_commit:
        if (start_ts >> LOGICAL_BITS) + lock.attempt.ttl_ms < request.current_ts >> LOGICAL_BITS:
            answer.action = _expire(shard, lock, request, rows)
            return answer
        _push(lock, request, answer)
    answer.lock_ttl = lock.attempt.ttl_ms
    answer.lock_info.CopyFrom(lock_info(key, lock))
    return answer


def _missing(
    shard: Shard, request: kvrpcpb.CheckTxnStatusRequest, rows: Rows
) -> kvrpcpb.CheckTxnStatusResponse:
    """Return the answer for a key without a lock of the transaction, or without an effective one."""
    answer = kvrpcpb.CheckTxnStatusResponse()
    key, start_ts = request.primary_key, request.lock_ts
    write = committed(shard, key, start_ts)
    if write is not None:
        answer.commit_version = write.commit_ts
    elif start_ts not in shard.rollbacks.get(key, ()):
        if not request.rollback_if_not_exist:
            missing = kvrpcpb.TxnNotFound(start_ts=start_ts, primary_key=key)
            raise Rejected([kvrpcpb.KeyError(txn_not_found=missing)])
        if request.resolving_pessimistic_lock:
            answer.action = kvrpcpb.Action.LockNotExistDoNothing
        else:
            rollback(shard, start_ts, [key], rows)
            answer.action = kvrpcpb.Action.LockNotExistRollback
    return answer


def _expire(shard: Shard, lock: Lock, request: kvrpcpb.CheckTxnStatusRequest, rows: Rows) -> int:
    """End a transaction whose primary lock has expired; return the kvrpcpb.Action taken."""
    key, start_ts = request.primary_key, request.lock_ts
    if lock.pessimistic and request.resolving_pessimistic_lock:
        shard.release(key, start_ts)
        return int(kvrpcpb.Action.TTLExpirePessimisticRollback)
    rollback(shard, start_ts, [key], rows)
    return int(kvrpcpb.Action.TTLExpireRollback)


def _push(lock: Lock, request: kvrpcpb.CheckTxnStatusRequest, answer: kvrpcpb.CheckTxnStatusResponse) -> None:
    """Push min_commit_ts above the waiting reader, if the lock supports it."""
    attempt, caller = lock.attempt, request.caller_start_ts
    if attempt.min_commit_ts and attempt.min_commit_ts <= caller < MAX_TS:
        attempt.min_commit_ts = max(caller + 1, request.current_ts)
    if caller and (caller == MAX_TS or attempt.min_commit_ts > caller):
        answer.action = kvrpcpb.Action.MinCommitTSPushed


def check_secondary_locks(
    shard: Shard, keys: Sequence[bytes], start_ts: Ts, rows: Rows
) -> kvrpcpb.CheckSecondaryLocksResponse:
    """Return a kvrpcpb.CheckSecondaryLocksResponse: all the locks, or the commit ts (0: rolled back).

    The first key that isn't prewritten decides. The transaction can't lock it any more, and a pessimistic
    lock on it is removed.
    """
    answer = kvrpcpb.CheckSecondaryLocksResponse()
    for key in keys:
        lock = shard.lock_of(key, start_ts)
        if lock is not None and not lock.pessimistic:
            answer.locks.append(lock_info(key, lock))
            continue
        write = committed(shard, key, start_ts)
        if write is None:
            rollback(shard, start_ts, [key], rows)
            return kvrpcpb.CheckSecondaryLocksResponse()
        return kvrpcpb.CheckSecondaryLocksResponse(commit_ts=write.commit_ts)
    return answer
