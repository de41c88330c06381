"""Percolator's steps on one region's shard, with TiKV's answers.

A step adds its changes to `rows`, as the change feed sends them; None if there is no subscription. A refusal
is a `Rejected`, which carries the kvrpcpb.KeyErrors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ..codec.proto import cdcpb, kvrpcpb
from ..events import Ts
from .lock_info import lock_info_on
from .shard import (
    CHECK_NOT_EXISTS,
    DELETE,
    INSERT,
    LOCK,
    PUT,
    SHARED,
    SHARED_PESSIMISTIC,
    Attempt,
    Lock,
    Shard,
    Write,
)

PREWRITE: int = cdcpb.Event.LogType.PREWRITE
COMMIT: int = cdcpb.Event.LogType.COMMIT
ROLLBACK: int = cdcpb.Event.LogType.ROLLBACK
COMMITTED: int = cdcpb.Event.LogType.COMMITTED
INITIALIZED: int = cdcpb.Event.LogType.INITIALIZED

SHORT_VALUE_BYTES = 255
"""TiKV keeps a value of up to this number of bytes in its write record, so COMMIT rows carry it again."""


class Row(Struct, gc=False):
    """Contents of one cdcpb.Event.Row. `op` is PUT or DELETE of the shard; ROLLBACK and INITIALIZED have
    none."""

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
    """A step was refused, with the kvrpcpb.KeyErrors that say why."""

    def __init__(self, errors: Sequence[kvrpcpb.KeyError]) -> None:
        super().__init__("; ".join(str(error).strip() for error in errors))
        self.errors = errors


def prewrite(
    shard: Shard, attempt: Attempt, mutations: Iterable[Mutation], generation: int, rows: Rows
) -> Ts:
    """Lock all keys, or none: Rejected names every blocking lock, or the first other obstacle.

    Returns the min_commit_ts of an async commit, or its commit ts after it is committed; 0 for others.
    """
    todo, least = _admit(shard, attempt, mutations, generation)
    for op, key, value in todo:
        if rows is not None and op in (PUT, DELETE):
            old = shard.value(key)
            rows.append(Row(PREWRITE, key, attempt.start_ts, 0, op, value, old, generation))
        shard.lock(key, Lock(attempt, op, value, generation))
    return least


def commit_at_once(shard: Shard, attempt: Attempt, mutations: Iterable[Mutation], rows: Rows) -> Ts:
    """Write all keys, or none, as committed at the attempt's min_commit_ts (1PC): they are never seen locked.

    Returns the commit ts, which differs if it was committed before.
    """
    todo, commit_ts = _admit(shard, attempt, mutations, 0)
    if not commit_ts:
        raise Rejected([kvrpcpb.KeyError(abort=f"{attempt.start_ts} has begun to commit in two phases")])
    for op, key, value in todo:
        if rows is not None and op in (PUT, DELETE):
            old = shard.value(key)
            rows.append(Row(COMMITTED, key, attempt.start_ts, commit_ts, op, value, old))
        shard.lock(key, Lock(attempt, op, value))
        _settle(shard, key, attempt.start_ts, commit_ts)
    return commit_ts


def _admit(
    shard: Shard, attempt: Attempt, mutations: Iterable[Mutation], generation: int
) -> tuple[list[Mutation], Ts]:
    """Return the mutations that are still to be locked, and the min_commit_ts of an async commit. Raises
    Rejected."""
    todo = []
    locked = []
    least = attempt.min_commit_ts if attempt.async_commit else 0
    for op, key, value in mutations:
        obstacle = _obstacle(shard, attempt, op, key)
        if obstacle is not None:
            locked.append(kvrpcpb.KeyError(locked=obstacle))
            continue
        held = shard.lock_of(key, attempt.start_ts)
        if held is not None and not held.pessimistic and generation <= held.generation:
            least = held.attempt.min_commit_ts if held.attempt.async_commit else 0
            continue
        if held is None:
            write = committed(shard, key, attempt.start_ts)
            if write is not None:
                least = write.commit_ts
                continue
            _check(shard, attempt, op, key)
        if op != CHECK_NOT_EXISTS:
            todo.append((PUT if op == INSERT else op, key, value))
    if locked:
        raise Rejected(locked)
    return todo, least


def _obstacle(shard: Shard, attempt: Attempt, op: int, key: bytes) -> kvrpcpb.LockInfo | None:
    """Return the kvrpcpb.LockInfo of blocking locks of other transactions on a key; None if there are
    none."""
    others = [lock for lock in shard.locks_on(key) if lock.start_ts != attempt.start_ts]
    if not others or (op in (SHARED, SHARED_PESSIMISTIC) and others[0].shared):
        return None
    return lock_info_on(key, others)


def _check(shard: Shard, attempt: Attempt, op: int, key: bytes) -> None:
    latest = shard.latest.get(key)
    if attempt.start_ts in shard.rollbacks.get(key, ()):
        raise Rejected([_conflict(attempt, key, attempt.start_ts, 0, "SelfRolledBack")])
    if latest is None:
        return
    if latest.commit_ts > max(attempt.start_ts, attempt.for_update_ts):
        raise Rejected([_conflict(attempt, key, latest.start_ts, latest.commit_ts, "Optimistic")])
    if op in (INSERT, CHECK_NOT_EXISTS) and shard.read(key, latest.commit_ts) is not None:
        raise Rejected([kvrpcpb.KeyError(already_exist=kvrpcpb.AlreadyExist(key=key))])


def _conflict(attempt: Attempt, key: bytes, start_ts: Ts, commit_ts: Ts, reason: str) -> kvrpcpb.KeyError:
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
    """Turn this transaction's locks on `keys` into versions: all of them, or none if Rejected."""
    locked = [(key, _committable(shard, key, start_ts, commit_ts)) for key in keys]
    for key, lock in locked:
        if lock is None:
            continue
        if lock.pessimistic:
            shard.release(key, start_ts)
            continue
        _settle(shard, key, start_ts, commit_ts)
        if rows is not None and lock.op in (PUT, DELETE):
            short = lock.value if len(lock.value) <= SHORT_VALUE_BYTES else b""
            rows.append(Row(COMMIT, key, start_ts, commit_ts, lock.op, short))


def _settle(shard: Shard, key: bytes, start_ts: Ts, commit_ts: Ts) -> None:
    lock = shard.unlock(key, start_ts)
    shard.add(key, Write(commit_ts, start_ts, LOCK if lock.shared else lock.op, lock.value))


def _committable(shard: Shard, key: bytes, start_ts: Ts, commit_ts: Ts) -> Lock | None:
    """Return the lock to commit; None if it is committed already."""
    lock = shard.lock_of(key, start_ts)
    if lock is None:
        if committed(shard, key, start_ts) is not None:
            return None
        said = f"TxnLockNotFound: start_ts {start_ts}, key {key.hex()}"
        missing = kvrpcpb.TxnLockNotFound(key=key)
        raise Rejected([kvrpcpb.KeyError(retryable=said, txn_lock_not_found=missing)])
    least = max(lock.attempt.min_commit_ts, lock.attempt.floor + 1, start_ts + 1)
    if commit_ts < least:
        expired = kvrpcpb.CommitTsExpired(
            start_ts=start_ts, attempted_commit_ts=commit_ts, key=key, min_commit_ts=least
        )
        raise Rejected([kvrpcpb.KeyError(commit_ts_expired=expired)])
    return lock


def committed(shard: Shard, key: bytes, start_ts: Ts) -> Write | None:
    """Return the version that this transaction has committed."""
    for write in shard.versions(key):
        if write.start_ts == start_ts:
            return write
        if write.commit_ts < start_ts:
            break
    return None


def rollback(shard: Shard, start_ts: Ts, keys: Iterable[bytes], rows: Rows) -> None:
    """Remove this transaction's locks on `keys`, and prevent it from locking them again."""
    keys = list(keys)
    for key in keys:
        write = committed(shard, key, start_ts)
        if write is not None:
            message = f"Committed: start_ts {start_ts}, commit_ts {write.commit_ts}, key {key.hex()}"
            raise Rejected([kvrpcpb.KeyError(abort=message)])
    for key in keys:
        held = shard.lock_of(key, start_ts) is not None
        marked = start_ts in shard.rollbacks.get(key, ())
        shard.roll_back(key, start_ts)
        if held:
            shard.unlock(key, start_ts)
        if rows is not None and (held or not marked):
            rows.append(Row(ROLLBACK, key, start_ts))


def resolve(shard: Shard, fates: Iterable[tuple[Ts, Ts]], keys: Sequence[bytes], rows: Rows) -> None:
    """Resolve the remaining locks of transactions (start ts, commit ts): commit them, or roll them back if
    the commit ts is 0.

    Applies to `keys`, or to the whole region if there are none.
    """
    for start_ts, commit_ts in fates:
        mine = [key for key in keys or shard.locked(start_ts) if shard.lock_of(key, start_ts) is not None]
        if commit_ts:
            commit(shard, start_ts, commit_ts, mine, rows)
        else:
            rollback(shard, start_ts, mine, rows)
