"""Reads of one region at a timestamp, including locks, with the answers of TiKV's storage."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..codec.proto import kvrpcpb
from ..events import Ts
from .lock_info import lock_info, lock_info_on
from .oracle import MAX_TS
from .shard import DELETE, LOCK, PUT, Lock, Shard


def blocking(shard: Shard, key: bytes, ts: Ts, passed: Collection[Ts]) -> Lock | None:
    """Return the lock that blocks a read at `ts`; locks of transactions in `passed` are ignored."""
    lock = shard.locks.get(key)
    if lock is None or lock.op not in (PUT, DELETE):
        return None
    attempt = lock.attempt
    if attempt.start_ts > ts or attempt.min_commit_ts > ts or attempt.start_ts in passed:
        return None
    if ts == MAX_TS and attempt.primary == key and not attempt.async_commit:
        return None  # a point read of the newest version doesn't see uncommitted ones
    return lock


def get(shard: Shard, request: kvrpcpb.GetRequest) -> kvrpcpb.GetResponse:
    """Answer a kvrpcpb.GetRequest."""
    lock = blocking(shard, request.key, request.version, request.context.resolved_locks)
    if lock is not None:
        return kvrpcpb.GetResponse(error=kvrpcpb.KeyError(locked=lock_info(request.key, lock)))
    write = shard.read(request.key, request.version)
    if write is None:
        return kvrpcpb.GetResponse(not_found=True)
    return kvrpcpb.GetResponse(value=write.value)


def scan(shard: Shard, request: kvrpcpb.ScanRequest, start: bytes, end: bytes) -> kvrpcpb.ScanResponse:
    """Answer a kvrpcpb.ScanRequest for the raw keys [start, end); a locked key is a pair with an error."""
    answer = kvrpcpb.ScanResponse()
    keys = shard.range(start, end)
    passed = request.context.resolved_locks
    for key in reversed(keys) if request.reverse else keys:
        if len(answer.pairs) >= request.limit:
            break
        lock = blocking(shard, key, request.version, passed)
        if lock is not None:
            answer.pairs.add(key=key, error=kvrpcpb.KeyError(locked=lock_info(key, lock)))
            continue
        write = shard.read(key, request.version)
        if write is not None:
            answer.pairs.add(key=key, value=b"" if request.key_only else write.value)
    return answer


def scan_locks(
    shard: Shard, request: kvrpcpb.ScanLockRequest, start: bytes, end: bytes
) -> kvrpcpb.ScanLockResponse:
    """Answer a kvrpcpb.ScanLockRequest: locks of transactions up to max_version.

    Shared locks of a key are wrapped in one, and each of them counts for the limit, which may cut off the
    last ones of a key.
    """
    answer = kvrpcpb.ScanLockResponse()
    room = request.limit or MAX_TS
    for key in shard.range(start, end) if shard.locks or shard.shared else ():
        locks = [lock for lock in shard.locks_on(key) if lock.start_ts <= request.max_version][:room]
        if locks:
            answer.locks.append(lock_info_on(key, locks))
            room -= len(locks)
        if not room:
            break
    return answer


def collect_garbage(shard: Shard, safe_point: Ts) -> None:
    """Drop the versions that no snapshot at or above `safe_point` can see."""
    empty = []
    for key in shard.sorted_keys():
        kept: list[object] = []
        for write in shard.versions(key):
            kept.append(write)
            if write.commit_ts <= safe_point and write.op != LOCK:
                if write.op == DELETE:
                    kept.pop()
                break
        _keep(shard, key, kept)
        marks = {ts for ts in shard.rollbacks.get(key, ()) if ts > safe_point}
        if marks:
            shard.rollbacks[key] = marks
        else:
            shard.rollbacks.pop(key, None)
            if not kept and not shard.locks_on(key):
                empty.append(key)
    shard.forget(empty)


def _keep(shard: Shard, key: bytes, newest_first: list[Any]) -> None:
    shard.older.pop(key, None)
    if not newest_first:
        shard.latest.pop(key, None)
        return
    shard.latest[key] = newest_first[0]
    if len(newest_first) > 1:
        shard.older[key] = newest_first[:0:-1]
