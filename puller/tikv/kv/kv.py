"""Reads of TiKV at a timestamp, and the calls that resolve locks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from random import Random
from typing import Any, Final

from ....actors import Clock
from ....codec.proto import Message, kvrpcpb
from ....codec.tidb.key import decode_bytes, encode_bytes
from ....errors import Retryable, SourceError
from ....events import Ts, physical_ms
from ...grpc.channel import Channels, TooLarge
from ..options import TikvOptions
from ..pd.pd import PdClient
from ..span import UPPER_BOUND
from ..topology import RegionInfo
from .async_commit import outcome
from .key_error import sentence
from .lock_wait import LockWait
from .region_cache import RegionCache
from .region_call import RegionCalls
from .transactions import SecondaryLocks, TxnStatus, status_of

_FEWER: Final = 4
"""Divisor of the number of rows per request after an answer was too large."""

_SMALL_BYTES: Final = 256 << 10
"""Bytes of values below which an answer is small."""


class Kv:
    """Transactional reads of TiKV by raw keys, which may not be empty. To be used in the loop's thread only.

    Every method raises Retryable with the last error after `store_retry_seconds` without success.
    """

    def __init__(
        self,
        options: TikvOptions,
        pd: PdClient,
        cache: RegionCache,
        channels: Channels,
        clock: Clock,
        random: Random,
    ) -> None:
        self._pd = pd
        self._page = options.scan_page
        self._calls = RegionCalls(options, pd, cache, channels, clock, random)

    async def get(self, key: bytes, ts: Ts) -> bytes | None:
        """Return the value at `ts`; None if there is none."""
        locks = self._lock_wait(ts)
        while True:
            request = kvrpcpb.GetRequest(context=locks.context(), key=key, version=ts)
            answer = await self._at_region(key, "KvGet", request)
            if not answer.HasField("error"):
                return None if answer.not_found else bytes(answer.value)
            await locks.pass_by(_lock_in("KvGet", answer.error))

    async def scan(self, start: bytes, end: bytes, ts: Ts) -> AsyncIterator[tuple[bytes, bytes]]:
        """Yield keys and values in [start, end) at `ts`, in key order, across regions; an empty end is +inf.

        Rows that are too large for one answer are requested a few at a time. Raises TooLarge if a single row
        is too large.
        """
        async for keys, values in self.pages(start, end, ts):
            for pair in zip(keys, values, strict=True):
                yield pair

    async def pages(
        self, start: bytes, end: bytes, ts: Ts, growth: int = 1
    ) -> AsyncIterator[tuple[list[bytes], list[bytes]]]:
        """Yield the same as lists of keys and of their values, as they come in one answer.

        Requests for up to `growth` times as many rows as `scan_page` follow answers that are small.
        """
        locks = self._lock_wait(ts)
        at: bytes | None = start
        page, most = self._page, self._page * growth
        while at is not None:
            try:
                pairs, at = await self._scan_page(at, end, locks, page)
            except TooLarge:
                if page == 1:
                    raise
                page = most = max(1, page // _FEWER)
                continue
            if pairs:
                values = [pair.value for pair in pairs]
                yield [pair.key for pair in pairs], values
                locks = self._lock_wait(ts, locks)
                if page < most and sum(map(len, values)) < _SMALL_BYTES:
                    page = min(2 * page, most)

    async def scan_locks(
        self, start: bytes, end: bytes, max_ts: Ts, limit: int = 1024
    ) -> list[kvrpcpb.LockInfo]:
        """Return the locks (kvrpcpb.LockInfo) in [start, end) of transactions that began at or before
        `max_ts`.

        The locks are in key order, each shared lock by itself, at most `limit`. If there are `limit` of them,
        more may follow, also on the last key. An empty end is +inf.
        """
        locks: list[kvrpcpb.LockInfo] = []
        at: bytes | None = start
        while at is not None and len(locks) < limit:
            request = kvrpcpb.ScanLockRequest(max_version=max_ts, start_key=at, limit=limit - len(locks))
            region, answer = await self._in_region(at, end, "KvScanLock", request)
            _refuse("KvScanLock", answer)
            for lock in answer.locks:
                locks += lock.shared_lock_infos if lock.lock_type == kvrpcpb.Op.SharedLock else [lock]
            at = _behind(region, end)
        return locks

    async def check_txn_status(
        self,
        primary: bytes,
        start_ts: Ts,
        *,
        caller_start_ts: Ts = 0,
        current_ts: Ts,
        rollback_if_not_exist: bool = False,
        force_sync_commit: bool = False,
        resolving_pessimistic_lock: bool = False,
    ) -> TxnStatus | None:
        """Return the status of the transaction that began at `start_ts`, from the store of its primary key.

        A transaction whose lock has expired at `current_ts` is rolled back by this call, unless it is an
        async commit. `caller_start_ts` pushes the commit ts of a living one above it, if that is possible.
        Returns None if the store has neither its lock nor its outcome and wasn't told to roll it back. Raises
        PrimaryMismatch if the transaction locks `primary` as a secondary key.
        """
        request = kvrpcpb.CheckTxnStatusRequest(
            primary_key=primary,
            lock_ts=start_ts,
            caller_start_ts=caller_start_ts,
            current_ts=current_ts,
            rollback_if_not_exist=rollback_if_not_exist,
            force_sync_commit=force_sync_commit,
            resolving_pessimistic_lock=resolving_pessimistic_lock,
            verify_is_primary=True,
        )
        answer = await self._at_region(primary, "KvCheckTxnStatus", request)
        return status_of(answer, primary, start_ts)

    async def transaction_status(self, lock: kvrpcpb.LockInfo, caller_start_ts: Ts = 0) -> TxnStatus:
        """Return the status of the transaction of a kvrpcpb.LockInfo; an expired one is ended by this
        call."""
        now = await self._pd.tso()
        status = await self.check_txn_status(
            lock.primary_lock,
            lock.lock_version,
            caller_start_ts=caller_start_ts,
            current_ts=now,
            rollback_if_not_exist=_expired(lock, now),
            resolving_pessimistic_lock=lock.lock_type == kvrpcpb.Op.PessimisticLock,
        )
        if status is None:
            return TxnStatus(lock=lock)  # its primary lock may be in flight
        if status.lock is not None and status.lock.use_async_commit and _expired(status.lock, now):
            return await outcome(self, status.lock, now)
        return status

    async def check_secondary_locks(self, keys: Sequence[bytes], start_ts: Ts) -> SecondaryLocks:
        """Check an async-commit transaction by its secondary `keys`.

        The transaction can't lock a key any more that isn't prewritten, so the answer stays valid.
        """
        name = "KvCheckSecondaryLocks"
        locks: list[kvrpcpb.LockInfo] = []
        rest: Sequence[bytes] = sorted(keys)
        while rest:
            make = partial(_check_within, rest, start_ts)
            region, answer = await self._calls.send(encode_bytes(rest[0]), name, make)
            _refuse(name, answer)
            asked = len(make(region).keys)
            if len(answer.locks) < asked:
                return SecondaryLocks(locks, True, answer.commit_ts)
            locks += answer.locks
            rest = rest[asked:]
        return SecondaryLocks(locks, False, 0)

    async def resolve_lock(self, key: bytes, start_ts: Ts, commit_ts: Ts, keys: Sequence[bytes] = ()) -> None:
        """Commit the transaction's locks at `commit_ts`, or roll them back if that is 0.

        Applies to all its locks in the region that holds `key`, or only to `keys` of that region.
        """
        request = kvrpcpb.ResolveLockRequest(start_version=start_ts, commit_version=commit_ts, keys=keys)
        _refuse("KvResolveLock", await self._at_region(key, "KvResolveLock", request))

    async def resolve_locks(self, key: bytes, ends: Mapping[Ts, Ts]) -> None:
        """Resolve the locks of many transactions, by start ts, in the region that holds `key`."""
        infos = [kvrpcpb.TxnInfo(txn=start, status=commit) for start, commit in ends.items()]
        request = kvrpcpb.ResolveLockRequest(txn_infos=infos)
        _refuse("KvResolveLock", await self._at_region(key, "KvResolveLock", request))

    def _lock_wait(self, ts: Ts, before: LockWait | None = None) -> LockWait:
        return LockWait(self, self._calls.backoff(), ts, before)

    async def _scan_page(
        self, at: bytes, end: bytes, locks: LockWait, page: int
    ) -> tuple[list[kvrpcpb.KvPair], bytes | None]:
        """Return the pairs of one answer up to the first lock, and the key to continue from; None at the
        end."""
        request = kvrpcpb.ScanRequest(context=locks.context(), start_key=at, limit=page, version=locks.ts)
        region, answer = await self._in_region(at, end, "KvScan", request)
        if answer.HasField("error"):
            await locks.pass_by(_lock_in("KvScan", answer.error))
            return [], at
        pairs = list(answer.pairs)
        for count, pair in enumerate(pairs):
            if pair.HasField("error"):
                lock = _lock_in("KvScan", pair.error)
                await locks.pass_by(lock)
                return pairs[:count], lock.key
        if len(pairs) < page:
            return pairs, _behind(region, end)
        return pairs, pairs[-1].key + b"\0"

    async def _at_region(self, key: bytes, name: str, request: Message) -> Any:
        """Send a request to the region that holds the raw `key`; return its answer."""
        return (await self._calls.send(encode_bytes(key), name, lambda _: request))[1]

    async def _in_region(self, at: bytes, end: bytes, name: str, request: Any) -> tuple[RegionInfo, Any]:
        """Send a request to the region that holds the raw `at`, up to the region's end or `end`; return its
        answer."""

        def clipped(region: RegionInfo) -> Any:
            request.end_key = _behind(region, end) or end
            return request

        return await self._calls.send(encode_bytes(at), name, clipped)


def _expired(lock: kvrpcpb.LockInfo, now: Ts) -> bool:
    return bool(physical_ms(lock.lock_version) + lock.lock_ttl <= physical_ms(now))


def _check_within(
    keys: Sequence[bytes], start_ts: Ts, region: RegionInfo
) -> kvrpcpb.CheckSecondaryLocksRequest:
    """Build a kvrpcpb.CheckSecondaryLocksRequest for the raw keys that lie in the region."""
    mine = [key for key in keys if encode_bytes(key) < region.end]
    return kvrpcpb.CheckSecondaryLocksRequest(keys=mine, start_version=start_ts)


def _behind(region: RegionInfo, end: bytes) -> bytes | None:
    """Return the raw key at which the next region begins; None if `end` comes first."""
    if region.end == UPPER_BOUND:
        return None
    try:
        key, _ = decode_bytes(region.end)
    except ValueError as error:
        raise SourceError(f"region {region.id} ends at {region.end.hex()}: not a key of TiDB") from error
    return key if not end or key < end else None


def _lock_in(name: str, error: kvrpcpb.KeyError) -> kvrpcpb.LockInfo:
    """Return the lock of a KeyError. Raises Retryable for any other error."""
    if error.HasField("locked"):
        return error.locked
    raise Retryable(f"{name}: {sentence(error)}")


def _refuse(name: str, answer: Any) -> None:
    if answer.HasField("error"):
        raise Retryable(f"{name}: {sentence(answer.error)}")
