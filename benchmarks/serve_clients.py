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

FEED = "/api/v1/feeds/tidemill"
PATHS = ("/api/v1/feeds", FEED, f"{FEED}/waits", f"{FEED}/tables")


async def _open(host: str, port: int, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    return reader, writer


async def _stream(host: str, port: int, connected: asyncio.Semaphore) -> None:
    reader, writer = await _open(host, port, "/api/v1/events?feed=tidemill")
    try:
        await reader.readuntil(b"event: ")
        connected.release()
        while await reader.read(1 << 16):
            pass
    finally:
        writer.close()


async def _request(host: str, port: int, path: str, milliseconds: list[float]) -> None:
    began = time.perf_counter()
    reader, writer = await _open(host, port, path)
    answer = await reader.read()
    writer.close()
    if not answer.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(answer[:200].decode())
    milliseconds.append(1e3 * (time.perf_counter() - began))


async def _main(url: str, requests: int, per_second: int, streams: int) -> None:
    host, _, text = url.partition("://")[2].partition(":")
    port = int(text)
    connected = asyncio.Semaphore(0)
    reading = [asyncio.create_task(_stream(host, port, connected)) for _ in range(streams)]
    for _ in reading:
        await connected.acquire()
    print("connected", flush=True)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.readline)
    ended = asyncio.ensure_future(loop.run_in_executor(None, sys.stdin.readline))
    milliseconds: list[float] = []
    asking: set[asyncio.Task[None]] = set()
    began = time.perf_counter()
    for number in range(requests):
        await asyncio.sleep(max(0.0, began + number / per_second - time.perf_counter()))
        if ended.done():
            break
        asking.add(asyncio.create_task(_request(host, port, PATHS[number % len(PATHS)], milliseconds)))
    await asyncio.gather(*asking)
    milliseconds.sort()
    p99 = milliseconds[len(milliseconds) * 99 // 100] if milliseconds else 0.0
    await ended
    print(json.dumps({"requests": len(milliseconds), "ms_p99": p99}), flush=True)
    for task in reading:
        task.cancel()
    await asyncio.gather(*reading, return_exceptions=True)


if __name__ == "__main__":
    os.nice(19)
    asyncio.run(_main(sys.argv[1], *map(int, sys.argv[2:])))
