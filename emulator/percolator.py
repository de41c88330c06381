"""Percolator's steps on one region's shard, with TiKV's answers.

A step that changes something says so in `rows`, as the change feed tells it; None if nobody listens.
Refusals are `Rejected`, which carries the kvrpcpb.KeyErrors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from ..codec.proto import cdcpb, kvrpcpb
from ..events import LOGICAL_BITS, Ts
from .shard import CHECK_NOT_EXISTS, DELETE, INSERT, LOCK, PESSIMISTIC, PUT, Attempt, Lock, Shard, Write

PREWRITE: int = cdcpb.Event.LogType.PREWRITE
COMMIT: int = cdcpb.Event.LogType.COMMIT
ROLLBACK: int = cdcpb.Event.LogType.ROLLBACK
COMMITTED: int = cdcpb.Event.LogType.COMMITTED
INITIALIZED: int = cdcpb.Event.LogType.INITIALIZED

SHORT_VALUE_BYTES = 255
"""TiKV keeps a value of up to this many bytes beside its write record, so COMMIT rows carry it again."""


class Row(Struct, gc=False):
    """One cdcpb.Event.Row to be. `op` is PUT or DELETE of the shard; ROLLBACK and INITIALIZED have none."""

    type: int
    key: bytes
    start_ts: Ts
    commit_ts: Ts = 0
    op: int = -1
    value: bytes = b""
    old_value: bytes = b""
    generation: int = 0


Rows = list[Row] | None
Mutation = tuple[int, bytes, bytes]
"""(op, raw key, value)."""


class Rejected(Exception):
    """A step that was not done, with the kvrpcpb.KeyErrors that say why."""

    def __init__(self, errors: Sequence[Any]) -> None:
        super().__init__("; ".join(str(error).strip() for error in errors))
        self.errors = errors


def prewrite(
    shard: Shard, attempt: Attempt, mutations: Iterable[Mutation], generation: int, rows: Rows
) -> None:
    """Lock all keys, or none: Rejected names every lock in the way, or the first other obstacle."""
    todo = []
    locked = []
    for op, key, value in mutations:
        held = shard.locks.get(key)
        if held is not None and held.start_ts != attempt.start_ts:
            locked.append(kvrpcpb.KeyError(locked=lock_info(key, held)))
        elif held is None or held.op == PESSIMISTIC or generation > held.generation:
            if held is None:
                if _committed(shard, key, attempt.start_ts) is not None:
                    continue
                _check(shard, attempt, op, key)
            if op != CHECK_NOT_EXISTS:
                todo.append((PUT if op == INSERT else op, key, value))
    if locked:
        raise Rejected(locked)
    for op, key, value in todo:
        if rows is not None and op in (PUT, DELETE):
            old = shard.value(key)
            rows.append(Row(PREWRITE, key, attempt.start_ts, 0, op, value, old, generation))
        shard.lock(key, Lock(attempt, op, value, generation))


def _check(shard: Shard, attempt: Attempt, op: int, key: bytes) -> None:
    latest = shard.latest.get(key)
    if attempt.start_ts in shard.rollbacks.get(key, ()):
        raise Rejected([_conflict(attempt, key, attempt.start_ts, 0, "SelfRolledBack")])
    if latest is None:
        return
    if latest.commit_ts >= max(attempt.start_ts, attempt.for_update_ts):
        raise Rejected([_conflict(attempt, key, latest.start_ts, latest.commit_ts, "Optimistic")])
    if op in (INSERT, CHECK_NOT_EXISTS) and shard.read(key, latest.commit_ts) is not None:
        raise Rejected([kvrpcpb.KeyError(already_exist=kvrpcpb.AlreadyExist(key=key))])


def _conflict(attempt: Attempt, key: bytes, start_ts: Ts, commit_ts: Ts, reason: str) -> Any:
    return kvrpcpb.KeyError(
        conflict=kvrpcpb.WriteConflict(
            start_ts=attempt.start_ts,
            conflict_ts=start_ts,
            conflict_commit_ts=commit_ts,
            key=key,
            primary=attempt.primary,
            reason=reason,
        )
    )


def commit(shard: Shard, start_ts: Ts, commit_ts: Ts, keys: Iterable[bytes], rows: Rows) -> None:
    """Turn this transaction's locks on `keys` into versions; all or, when Rejected, none."""
    keys = [key for key in keys if _committable(shard, key, start_ts, commit_ts)]
    for key in keys:
        lock = shard.unlock(key)
        if lock.op == PESSIMISTIC:
            continue
        shard.add(key, Write(commit_ts, start_ts, lock.op, lock.value))
        if rows is not None and lock.op != LOCK:
            short = lock.value if len(lock.value) <= SHORT_VALUE_BYTES else b""
            rows.append(Row(COMMIT, key, start_ts, commit_ts, lock.op, short))


def _committable(shard: Shard, key: bytes, start_ts: Ts, commit_ts: Ts) -> bool:
    lock = shard.locks.get(key)
    if lock is None or lock.start_ts != start_ts:
        if _committed(shard, key, start_ts) is not None:
            return False
        raise Rejected([kvrpcpb.KeyError(retryable=f"TxnLockNotFound: start_ts {start_ts}, key {key.hex()}")])
    least = max(lock.attempt.min_commit_ts, lock.attempt.floor + 1, start_ts + 1)
    if commit_ts < least:
        raise Rejected(
            [kvrpcpb.KeyError(retryable=f"CommitTsExpired: commit_ts {commit_ts} is below {least}, "
                                        f"the min_commit_ts of {key.hex()}")]
        )  # fmt: skip
    return True


def _committed(shard: Shard, key: bytes, start_ts: Ts) -> Write | None:
    for write in shard.versions(key):
        if write.start_ts == start_ts:
            return write
        if write.commit_ts < start_ts:
            break
    return None


def rollback(shard: Shard, start_ts: Ts, keys: Iterable[bytes], rows: Rows) -> None:
    """Remove this transaction's locks on `keys` and see that it can't lock them again."""
    keys = list(keys)
    for key in keys:
        write = _committed(shard, key, start_ts)
        if write is not None:
            message = f"Committed: start_ts {start_ts}, commit_ts {write.commit_ts}, key {key.hex()}"
            raise Rejected([kvrpcpb.KeyError(abort=message)])
    for key in keys:
        lock = shard.locks.get(key)
        if start_ts in shard.rollbacks.get(key, ()):
            continue
        shard.roll_back(key, start_ts)
        if lock is not None and lock.start_ts == start_ts:
            shard.unlock(key)
        if rows is not None:
            rows.append(Row(ROLLBACK, key, start_ts))


def check_txn_status(shard: Shard, request: Any, rows: Rows) -> Any:
    """What became of a transaction, by its primary; an expired lock is rolled back.

    Answers a kvrpcpb.CheckTxnStatusResponse.
    """
    actions, answer = kvrpcpb.Action, kvrpcpb.CheckTxnStatusResponse()
    key, start_ts = request.primary_key, request.lock_ts
    lock = shard.locks.get(key)
    if lock is not None and lock.start_ts == start_ts:
        if (start_ts >> LOGICAL_BITS) + lock.attempt.ttl_ms < request.current_ts >> LOGICAL_BITS:
            rollback(shard, start_ts, [key], rows)
            answer.action = actions.TTLExpireRollback
            return answer
        _push(lock, request, answer)
        answer.lock_ttl = lock.attempt.ttl_ms
        answer.lock_info.CopyFrom(lock_info(key, lock))
        return answer
    write = _committed(shard, key, start_ts)
    if write is not None:
        answer.commit_version = write.commit_ts
    elif start_ts not in shard.rollbacks.get(key, ()):
        if not request.rollback_if_not_exist:
            missing = kvrpcpb.TxnNotFound(start_ts=start_ts, primary_key=key)
            raise Rejected([kvrpcpb.KeyError(txn_not_found=missing)])
        rollback(shard, start_ts, [key], rows)
        answer.action = actions.LockNotExistRollback
    return answer


def _push(lock: Lock, request: Any, answer: Any) -> None:
    """A reader that waits pushes the commit above itself, where the lock agreed to that."""
    attempt, caller = lock.attempt, request.caller_start_ts
    if attempt.min_commit_ts and attempt.min_commit_ts <= caller < 1 << 63:
        attempt.min_commit_ts = max(caller + 1, request.current_ts)
        answer.action = kvrpcpb.Action.MinCommitTSPushed


def resolve(shard: Shard, fates: Iterable[tuple[Ts, Ts]], keys: Sequence[bytes], rows: Rows) -> None:
    """Commit or, where the commit ts is 0, roll back what transactions (start ts, commit ts) still lock.

    Of `keys`, or of the whole region if there are none.
    """
    for start_ts, commit_ts in fates:
        held = [key for key in keys or shard.locks if key in shard.locks]
        mine = [key for key in held if shard.locks[key].start_ts == start_ts]
        if commit_ts:
            commit(shard, start_ts, commit_ts, mine, rows)
        else:
            rollback(shard, start_ts, mine, rows)


def lock_info(key: bytes, lock: Lock) -> Any:
    """kvrpcpb.LockInfo."""
    attempt = lock.attempt
    return kvrpcpb.LockInfo(
        primary_lock=attempt.primary,
        lock_version=attempt.start_ts,
        key=key,
        lock_ttl=attempt.ttl_ms,
        txn_size=attempt.size,
        lock_type=lock.op,
        lock_for_update_ts=attempt.for_update_ts,
        min_commit_ts=attempt.min_commit_ts,
    )
