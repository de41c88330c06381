"""A TiDB cluster's storage in this process: PD and stores that speak the real gRPC on loopback ports.

    with Cluster(stores=3) as cluster:
        cluster.write([("put", b"k", b"v")])
        ...  # a client connects to cluster.pd_address

All state belongs to one loop thread; every method here is thread-safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from .. import config
from ..actors.clock import Clock, SystemClock
from ..codec.proto import metapb
from ..events import Ts
from .faults.faults import Faults
from .faults.injected import Injected
from .keyspace import Keyspace
from .loop import LoopThread
from .options import CommitMode, Options
from .oracle import Oracle
from .pd import Member, PlacementDriver
from .percolator import Row
from .pump import Pump
from .pumps import Pumps
from .region import Region
from .resolved import Resolved
from .server import Serve, Server
from .store import TikvStore
from .topology import Topology
from .transactions import Transactions

T = TypeVar("T")


_ROWS_AT_ONCE: Final = 1_024
"""Maximum number of rows in an event. One request may resolve all locks of a transaction; TiKV writes them
in several steps, of 256 keys, and each makes an event."""


class Cluster(Faults):
    """An emulated cluster. It starts when created or entered; `close` (or leaving) ends its thread and frees
    its ports."""

    def __init__(
        self,
        stores: int = 3,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
        loop: LoopThread | None = None,
        serve: Serve = Server,
        **options: Any,
    ) -> None:
        """`options` are the fields of `Options`; `clock` sets the timestamps. Raises ConfigError.

        With a `seed` the rows of a change feed's event come in random order, as TiKV sends them; without one
        by key. `loop` runs the cluster, by default a new one. `serve` makes its servers.
        """
        self.options = config.build(Options, {"stores": stores, **options}, "cluster")
        self.clock: Clock = clock or SystemClock()
        self._random = None if seed is None else Random(seed)
        self.oracle = Oracle(self.clock)
        self.injected = Injected()
        numbers = range(1, stores + 1)
        self.keyspace = Keyspace(numbers, self.options.replicas)
        self.resolved = Resolved(self.keyspace, self.oracle)
        self.pd = PlacementDriver(self.keyspace, self.options, self.oracle)
        self._serve = serve
        self.pd.members = [Member(self.pd, index, serve) for index in range(self.options.pd_members)]
        self.stores = {number: self._store(number) for number in numbers}
        self.resolved.feeds = [store.change_data for store in self.stores.values()]
        self.topology = Topology(self.keyspace, self.stores)
        self.transactions = Transactions(
            self.keyspace, self.oracle, self._apply, self.resolved, self.options.congestion_seconds
        )
        self._loop = loop or LoopThread("tidemill-emulator")
        self.pumps = Pumps(self.options, self.oracle, self._loop, seed)
        try:
            self._loop.run(self._start())
        except BaseException:
            self.close()
            raise

    async def _start(self) -> None:
        self._ticker = asyncio.ensure_future(self.resolved.tick_forever(self.options.tick_seconds))
        for server in self._servers():
            await server.start()
        self.pd.stores = {number: self._described(store) for number, store in self.stores.items()}

    def _servers(self) -> list[Server]:
        stores = [store.server for store in self.stores.values()]
        return [*(member.server for member in self.pd.members), *stores]

    def _described(self, store: TikvStore) -> metapb.Store:
        return metapb.Store(
            id=store.id,
            address=store.server.address,
            version=self.options.version,
            state=metapb.StoreState.Up,
            node_state=metapb.NodeState.Serving,
        )

    def _store(self, number: int) -> TikvStore:
        take = self.injected.take
        return TikvStore(
            number, self.keyspace, self.options, self._apply, self.resolved, take, serve=self._serve
        )

    def close(self) -> None:
        """End all calls, free the ports and end the thread. Idempotent."""
        if not self._loop.stopped:
            self._loop.run(self._stop())
            self._loop.stop()

    async def _stop(self) -> None:
        self._ticker.cancel()
        await asyncio.gather(self._ticker, return_exceptions=True)
        await self.pumps.close()
        await asyncio.gather(*(server.stop() for server in self._servers()))
        for store in self.stores.values():
            await store.change_data.scans.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The source's URL for a feed."""
        return f"tikv://{self.pd_address}"

    @property
    def pd_address(self) -> str:
        """The host:port of every PD member, separated by commas, as clients accept it."""
        return ",".join(member.server.address for member in self.pd.members)

    def add_pump(self, node_id: str = "", *, serving: bool = True) -> Pump:
        """Start a pump that is online: from now on it gets a part of the binlogs that a TiDB writes.

        While clusters have drainers, a pump gets binlogs only once all of them have been notified: add it
        without `serving`, and set that later.
        """
        return self.pumps.add(node_id, serving=serving)

    # --- transactions

    def tso(self, count: int = 1) -> Ts:
        """Return the last of `count` new timestamps."""
        return self._loop.call(self.oracle.next, count)

    def write(
        self,
        mutations: list[tuple[str, bytes, bytes]],
        *,
        start_ts: Ts = 0,
        mode: CommitMode | None = None,
    ) -> Ts:
        """Prewrite and commit a transaction; return its commit ts.

        A mutation is (op, raw key, value); ops are "put", "insert", "delete", "lock", "shared". Of several
        mutations of one key the last counts. `mode` is `commit_mode` of the options by default. Raises
        Rejected, with nothing written, on a conflict with another transaction.
        """
        return self._loop.run(self.transactions.write(mutations, start_ts, mode or self.options.commit_mode))

    def prewrite(
        self,
        start_ts: Ts,
        mutations: list[tuple[str, bytes, bytes]],
        *,
        primary: bytes = b"",
        ttl_ms: int = 3_000,
        generation: int = 0,
        min_commit_ts: Ts = 0,
        secondaries: list[bytes] | None = None,
    ) -> Ts:
        """Lock the keys; `primary` is the first one by default. Raises Rejected.

        Further ops are "pessimistic" and "shared_pessimistic". With `secondaries`, all keys of the
        transaction except its primary, it is an async commit: its commit ts is the maximum that its prewrites
        return. For others this returns 0.
        """
        return self._loop.run(
            self.transactions.prewrite(
                start_ts,
                mutations,
                primary or mutations[0][1],
                ttl_ms,
                generation,
                min_commit_ts,
                secondaries,
            )
        )

    def commit(self, start_ts: Ts, keys: list[bytes], commit_ts: Ts = 0) -> Ts:
        """Commit prewritten keys, by default at a new timestamp. Raises Rejected."""
        return self._loop.run(self.transactions.commit(start_ts, sorted(keys), commit_ts))

    def rollback(self, start_ts: Ts, keys: list[bytes]) -> None:
        """Roll keys back, locked or not. Raises Rejected if one is committed."""
        self._loop.run(self.transactions.rollback(start_ts, sorted(keys)))

    def _apply(self, region: Region, step: Callable[..., T], *arguments: object) -> T:
        """Run a step of Percolator on the region's shard, then send its changes to the change feed."""
        rows: list[Row] | None = None if region.feed is None else []
        try:
            return step(region.shard, *arguments, rows)
        finally:
            self.keyspace.note_locks(region)
            if rows:
                if self._random is not None:
                    self._random.shuffle(rows)
                for first in range(0, len(rows), _ROWS_AT_ONCE):
                    self.stores[region.leader].change_data.publish(
                        region, rows[first : first + _ROWS_AT_ONCE]
                    )

    # --- resolved ts

    def tick(self) -> Ts:
        """Send resolved ts now; return the highest one."""
        return self._loop.call(self.resolved.tick)
