"""Transactions that committed asynchronously and lost their client: a store as the protocol has it."""

from __future__ import annotations

import pytest

from tidemill.codec.proto import PD, TIKV, kvrpcpb, metapb, pdpb
from tidemill.errors import Retryable
from tidemill.events import compose_ts

from .client import client
from .scripted import Scripted, ScriptedPd, served

START = compose_ts(1_000_000)
TTL_MS = 3_000
EXPIRED_MS = 1_000_000 + TTL_MS
PRIMARY, SECOND, THIRD = b"a", b"b", b"c"


class Store(Scripted):
    """One region with one transaction's locks and what became of its keys."""

    def __init__(self) -> None:
        super().__init__()
        self.locks: dict[bytes, kvrpcpb.LockInfo] = {}
        self.ends: dict[bytes, int] = {}
        """By key: its commit ts, or 0 for rolled back."""
        self.on(TIKV["KvGet"], self._get)
        self.on(TIKV["KvCheckTxnStatus"], self._check)
        self.on(TIKV["KvResolveLock"], self._resolve)

    def lock(self, key: bytes, min_commit_ts: int = 0, *, asynchronous: bool = True) -> None:
        self.locks[key] = kvrpcpb.LockInfo(
            primary_lock=PRIMARY,
            lock_version=START,
            key=key,
            lock_ttl=TTL_MS,
            use_async_commit=asynchronous,
            min_commit_ts=min_commit_ts,
            secondaries=[SECOND, THIRD] if key == PRIMARY else [],
        )

    def _get(self, request):
        if request.key in self.locks:
            return kvrpcpb.GetResponse(error=kvrpcpb.KeyError(locked=self.locks[request.key]))
        if 0 < self.ends.get(request.key, 0) <= request.version:
            return kvrpcpb.GetResponse(value=b"new")
        return kvrpcpb.GetResponse(not_found=True)

    def _check(self, request):
        """As TiKV: an asynchronous lock is neither pushed nor rolled back, unless it is forced."""
        answer, key = kvrpcpb.CheckTxnStatusResponse(), request.primary_key
        if (lock := self.locks.get(key)) is not None:
            expired = request.current_ts >> 18 >= 1_000_000 + TTL_MS
            if expired and (request.force_sync_commit or not lock.use_async_commit):
                del self.locks[key]
                self.ends[key] = 0
                answer.action = kvrpcpb.Action.TTLExpireRollback
                return answer
            answer.lock_ttl = lock.lock_ttl
            answer.lock_info.CopyFrom(lock)
        elif key in self.ends:
            answer.commit_version = self.ends[key]
        elif request.rollback_if_not_exist:
            self.ends[key] = 0
            answer.action = kvrpcpb.Action.LockNotExistRollback
        else:
            answer.error.SetInParent()
        return answer

    def _resolve(self, request):
        for key in request.keys:
            del self.locks[key]
            self.ends[key] = request.commit_version
        return kvrpcpb.ResolveLockResponse()


@pytest.fixture
def store():
    return Store()


@pytest.fixture
def pd(store):
    pd = ScriptedPd()
    pd.now_ms = EXPIRED_MS
    pd.logical = 0
    region = metapb.Region(id=1, region_epoch=metapb.RegionEpoch(conf_ver=3, version=4))
    region.peers.add(id=11, store_id=1)

    def tso(request):
        pd.logical += request.count
        stamp = pdpb.Timestamp(physical=pd.now_ms, logical=pd.logical)
        return pdpb.TsoResponse(header=pd.header(), count=request.count, timestamp=stamp)

    def found(_):
        return pdpb.GetRegionResponse(header=pd.header(), region=region, leader=region.peers[0])

    def get_store(_):
        return pdpb.GetStoreResponse(header=pd.header(), store=metapb.Store(id=1, address=store.address))

    pd.on(PD["Tso"], tso)
    pd.on(PD["GetRegion"], found)
    pd.on(PD["GetStore"], get_store)
    with served(pd, store):
        yield pd


@pytest.fixture
def c(pd):
    with client(pd.address, store_retry_seconds=0.05) as c:
        yield c


READ_TS = START + 50


def read(c, key=PRIMARY):
    return c.run(c.kv.get(key, READ_TS))


def test_with_all_keys_locked_it_is_committed_at_the_greatest_of_their_timestamps(c, store):
    for key, min_commit_ts in ((PRIMARY, START + 1), (SECOND, START + 9), (THIRD, START + 5)):
        store.lock(key, min_commit_ts)
    assert read(c, THIRD) == b"new"
    assert store.ends == {THIRD: START + 9}
    assert read(c, PRIMARY) == b"new"
    assert read(c, SECOND) == b"new"
    assert set(store.ends.values()) == {START + 9}


def test_with_a_key_that_was_never_locked_it_is_rolled_back_and_stays_so(c, store):
    store.lock(PRIMARY, START + 1)
    store.lock(SECOND, START + 1)
    assert read(c, SECOND) is None
    assert store.ends == {SECOND: 0, THIRD: 0}
    assert read(c, PRIMARY) is None


def test_with_a_key_that_is_committed_it_is_committed_at_that_timestamp(c, store):
    store.lock(PRIMARY, START + 1)
    store.lock(SECOND, START + 2)
    store.ends[THIRD] = START + 7
    assert read(c, PRIMARY) == b"new"
    assert store.ends == {PRIMARY: START + 7, THIRD: START + 7}


def test_one_that_went_back_to_ordinary_commit_is_its_primarys_matter(c, store):
    store.lock(PRIMARY, START + 1)
    store.lock(SECOND, asynchronous=False)
    store.lock(THIRD, START + 1)
    assert read(c, THIRD) is None
    assert store.ends == {PRIMARY: 0, THIRD: 0}


def test_while_it_may_live_it_is_waited_for_and_nothing_is_decided(c, store, pd):
    pd.now_ms = EXPIRED_MS - 1
    store.lock(PRIMARY, START + 1)
    with pytest.raises(Retryable, match=f"waits for the transaction {START}"):
        read(c)
    assert store.ends == {}
    assert list(store.locks) == [PRIMARY]


def test_the_contexts_of_requests_name_the_region_its_epoch_and_the_peer(c, store):
    assert read(c) is None
    (request,) = store.requests
    context = request.context
    assert (context.region_id, context.region_epoch.conf_ver, context.region_epoch.version) == (1, 3, 4)
    assert (context.peer.id, context.peer.store_id) == (11, 1)
