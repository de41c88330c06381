"""The emulated pumps of a cluster, and the binlogs that its TiDB writes to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from ..codec.proto import binlog
from ..events import Ts
from .loop import LoopThread
from .options import Options
from .oracle import Oracle
from .pump import Pump

STATES: Final = ("online", "pausing", "paused", "closing", "offline")


class Pumps:
    """Each binlog goes to one pump that is online, chosen at random. Thread-safe.

    A binlog has its transaction's rows and its commit ts together, as a pump sends them.
    """

    def __init__(self, options: Options, oracle: Oracle, loop: LoopThread, seed: int | None) -> None:
        self.by_id: dict[str, Pump] = {}
        self._options = options
        self._oracle = oracle
        self._loop = loop
        self._random = Random(seed)
        self._ticker: asyncio.Task[None] | None = None
        self.holds_fakes = False
        """True if no fake binlogs are written except by `tick`."""

    def add(self, node_id: str = "", *, serving: bool = True) -> Pump:
        """Add a pump that is online; it begins at the present ts."""
        return self._loop.run(self._add(node_id, serving))

    async def _add(self, node_id: str, serving: bool) -> Pump:
        pump = Pump(node_id or f"pump-{len(self.by_id) + 1}", self._options.cluster_id, self._options.tls)
        if pump.node_id in self.by_id:
            raise ValueError(f"add_pump: there is a pump {pump.node_id} already")
        pump.serving = serving
        await pump.server.start()
        self.by_id[pump.node_id] = pump
        if self._ticker is None and self._options.tick_seconds is not None:
            self._ticker = asyncio.ensure_future(self._tick_forever(self._options.tick_seconds))
        return pump

    @property
    def address(self) -> str:
        """The host:port of every pump that isn't offline, separated by commas."""
        return ",".join(pump.server.address for pump in self.by_id.values() if pump.state != "offline")

    def states(self) -> Mapping[str, tuple[str, str]]:
        """Return address and state of each pump, by node id."""
        return {pump.node_id: (pump.server.address, pump.state) for pump in self.by_id.values()}

    # --- binlogs ---------------------------------------------------------------------------------

    def write(self, start_ts: Ts, commit: Callable[[], Ts], **fields: Any) -> Ts:
        """Call `commit`, and write its transaction's binlog with these fields of binlog.Binlog.

        Returns the commit ts. No binlog is written while no pump is online.
        """
        pump = self._loop.call(self._announced, start_ts) if self.by_id else None
        if pump is None:
            return commit()
        try:
            commit_ts = commit()
        except BaseException:
            self._loop.call(pump.rollback, start_ts)
            raise
        record = binlog.Binlog(tp=binlog.BinlogType.Commit, start_ts=start_ts, commit_ts=commit_ts, **fields)
        self._loop.call(pump.commit, start_ts, commit_ts, record.SerializeToString())
        return commit_ts

    def _announced(self, start_ts: Ts) -> Pump | None:
        """Choose a pump for a transaction whose commit ts is still to come."""
        online = [pump for pump in self.by_id.values() if pump.state == "online" and pump.serving]
        if not online:
            return None
        pump = self._random.choice(online)
        pump.prewrite(start_ts, self._oracle.last)
        return pump

    # --- fake binlogs ----------------------------------------------------------------------------

    def tick(self) -> Ts:
        """Write a fake binlog to each pump that waits for no transaction; return the last ts."""
        return self._loop.call(self._tick)

    def _tick(self) -> Ts:
        for pump in self.by_id.values():
            if pump.serving and not pump.is_open and pump.state != "offline":
                ts = self._oracle.next()
                fake = binlog.Binlog(tp=binlog.BinlogType.Rollback, start_ts=ts, commit_ts=ts)
                pump.commit(ts, ts, fake.SerializeToString())
        return self._oracle.last

    async def _tick_forever(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            if not self.holds_fakes:
                self._tick()

    async def close(self) -> None:
        """End all streams and free the ports; in the loop's thread."""
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.gather(self._ticker, return_exceptions=True)
        await asyncio.gather(*(pump.server.stop() for pump in self.by_id.values()))
