"""Clients of a server: python -m tidemill.benchmarks.serve_clients URL REQUESTS PER_SECOND STREAMS.

Prints "connected" once all streams have an event, sends requests after a line on stdin, until they are sent
or stdin ends, and prints a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import deque
from typing import TypeAlias

FEED = "/api/v1/feeds/tidemill"
PATHS = ("/api/v1/feeds", FEED, f"{FEED}/waits", f"{FEED}/tables")


_Connection: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Clients:
    """Connections to the server, which requests use in turn, as browsers and Prometheus do."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._idle: deque[_Connection] = deque()
        self.milliseconds: list[float] = []

    async def stream(self, connected: asyncio.Semaphore) -> None:
        reader, writer = await self._open()
        self._ask(writer, "/api/v1/events?feed=tidemill")
        try:
            await reader.readuntil(b"event: ")
            connected.release()
            while await reader.read(1 << 16):
                pass
        finally:
            writer.close()

    async def request(self, path: str) -> None:
        began = time.perf_counter()
        reader, writer = self._idle.popleft() if self._idle else await self._open()
        self._ask(writer, path)
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split()[0]))
        self.milliseconds.append(1e3 * (time.perf_counter() - began))
        self._idle.append((reader, writer))

    def close(self) -> None:
        for _, writer in self._idle:
            writer.close()

    async def _open(self) -> _Connection:
        return await asyncio.open_connection(self._host, self._port)

    def _ask(self, writer: asyncio.StreamWriter, path: str) -> None:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())


async def _main(url: str, requests: int, per_second: int, streams: int) -> None:
    host, _, text = url.partition("://")[2].partition(":")
    clients, connected = _Clients(host, int(text)), asyncio.Semaphore(0)
    reading = [asyncio.create_task(clients.stream(connected)) for _ in range(streams)]
    for _ in reading:
        await connected.acquire()
    print("connected", flush=True)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.readline)
    ended = asyncio.ensure_future(loop.run_in_executor(None, sys.stdin.readline))
    asking: set[asyncio.Task[None]] = set()
    began = time.perf_counter()
    for number in range(requests):
        await asyncio.sleep(max(0.0, began + number / per_second - time.perf_counter()))
        if ended.done():
            break
        asking.add(asyncio.create_task(clients.request(PATHS[number % len(PATHS)])))
    await asyncio.gather(*asking)
    clients.close()
    milliseconds = sorted(clients.milliseconds)
    p99 = milliseconds[len(milliseconds) * 99 // 100] if milliseconds else 0.0
    await ended
    print(json.dumps({"requests": len(milliseconds), "ms_p99": p99}), flush=True)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)


if __name__ == "__main__":
    os.nice(19)
    asyncio.run(_main(sys.argv[1], *map(int, sys.argv[2:])))
