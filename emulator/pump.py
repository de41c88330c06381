"""One emulated pump: a sorted log of binlogs, and the real PullBinlogs."""

from __future__ import annotations

import asyncio
from bisect import bisect_right, insort
from typing import Final

import grpc
from msgspec import Struct

from ..codec.proto import PUMP, binlog
from ..events import Ts
from .server import Context, Server, Tls, unary_stream

BATCH: Final = 256
"""Binlogs sent before other tasks run."""


class PumpFaults(Struct):
    """Faults of one pump."""

    late_seconds: float = 0.0
    """Delay of every binlog."""
    silent: bool = False
    """True if it sends nothing, not even a fake binlog."""
    duplicates: int = 0
    """Number of binlogs to come that are sent twice."""
    cut: bool = False
    """True if each stream ends in the middle of the next binlogs."""
    disordered_after: Ts | None = None
    """The next two binlogs above this ts change places, once."""
    payload: bytes | None = None
    """Payload that replaces that of the next binlog, once."""


class Pump:
    """Keeps binlogs in commit order. To be used in the loop's thread only.

    A transaction that is being written holds back all later ones, as in a pump that waits for the commit of a
    prewrite.
    """

    def __init__(self, node_id: str, cluster_id: int, tls: Tls | None) -> None:
        self.node_id = node_id
        self.state = "online"
        self.serving = True
        """False until the drainers know of it: it gets no binlogs."""
        self.cluster_id = cluster_id
        self.faults = PumpFaults()
        self.sent = 0
        """Number of binlogs sent, over all streams."""
        self.pulls: list[Ts] = []
        """Ts from which each stream was asked to start."""
        self.log: list[tuple[Ts, bytes]] = []
        """Commit ts and binlog, in order."""
        self._open: dict[Ts, Ts] = {}
        """By start ts, the clock when a transaction that isn't committed yet was announced."""
        self._streams: set[asyncio.Event] = set()
        handlers = {PUMP["PullBinlogs"].path: unary_stream(PUMP["PullBinlogs"], self._pull)}
        self.server = Server(handlers, host="127.0.0.1", tls=tls)

    # --- writing ---------------------------------------------------------------------------------

    def prewrite(self, start_ts: Ts, now: Ts) -> None:
        self._open[start_ts] = now

    def commit(self, start_ts: Ts, commit_ts: Ts, payload: bytes) -> None:
        self._open.pop(start_ts, None)
        insort(self.log, (commit_ts, payload))
        self.wake()

    def rollback(self, start_ts: Ts) -> None:
        self._open.pop(start_ts, None)
        self.wake()

    @property
    def is_open(self) -> bool:
        """True if a transaction isn't committed yet."""
        return bool(self._open)

    @property
    def last_ts(self) -> Ts:
        """Commit ts of the last binlog; 0 before the first."""
        return self.log[-1][0] if self.log else 0

    def wake(self) -> None:
        """Let all streams look for binlogs to send."""
        for event in self._streams:
            event.set()

    # --- reading ---------------------------------------------------------------------------------

    async def _pull(self, request: binlog.PullBinlogReq, context: Context) -> None:
        if request.clusterID != self.cluster_id:
            message = f"cluster ID are mismatch, {request.clusterID} vs {self.cluster_id}"
            await context.abort(grpc.StatusCode.UNKNOWN, message)
        last = request.startFrom.offset
        self.pulls.append(last)
        event = asyncio.Event()
        self._streams.add(event)
        try:
            while True:
                event.clear()
                while entries := self._next(last):
                    last = entries[-1][0]
                    await self._send(self._spoilt(entries), context)
                await event.wait()
        finally:
            self._streams.discard(event)

    def _next(self, last: Ts) -> list[tuple[Ts, bytes]]:
        """Return the next binlogs above `last`."""
        if self.faults.silent:
            return []
        at = bisect_right(self.log, last, key=lambda entry: entry[0])
        bound = min(self._open.values(), default=None)
        end = len(self.log) if bound is None else bisect_right(self.log, bound, key=lambda entry: entry[0])
        return self.log[at : min(end, at + BATCH)]

    def _spoilt(self, entries: list[tuple[Ts, bytes]]) -> list[tuple[Ts, bytes]]:
        """Return binlogs in the order and number in which they are sent."""
        faults = self.faults
        entries = list(entries)
        after = faults.disordered_after
        for at in range(len(entries) - 1):
            if after is not None and entries[at][0] > after:
                entries[at], entries[at + 1] = entries[at + 1], entries[at]
                faults.disordered_after = after = None
        twice = min(faults.duplicates, len(entries))
        faults.duplicates -= twice
        return [*entries, *entries[:twice]]

    async def _send(self, entries: list[tuple[Ts, bytes]], context: Context) -> None:
        faults = self.faults
        if faults.late_seconds:
            await asyncio.sleep(faults.late_seconds)
        whole = len(entries)
        if faults.cut:
            whole //= 2
        for ts, data in entries[:whole]:
            payload = data
            if faults.payload is not None:
                payload, faults.payload = faults.payload, None
            entity = binlog.Entity(pos=binlog.Pos(offset=ts), payload=payload)
            await context.write(binlog.PullBinlogResp(entity=entity))
            self.sent += 1
        if faults.cut:
            faults.cut = False
            await context.abort(grpc.StatusCode.UNAVAILABLE, "transport is closing")
