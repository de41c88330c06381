"""The port in front of a gRPC server: what it counts, and what it closes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from tidemill.puller.grpc.frames import PREFACE, UnansweredRequests
from tidemill.puller.grpc.front import Front

DATA, HEADERS, RESET, WINDOW = 0, 1, 3, 8
END = 1


def frame(kind: int, stream: int, size: int = 0, flags: int = 0) -> bytes:
    return size.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + bytes(size)


@pytest.mark.parametrize("step", [1, 2, 7, 9, 10, 100, 10_000])
def test_requests_are_counted_until_they_are_answered(step: int) -> None:
    requests = UnansweredRequests()

    def send(data: bytes) -> int:
        for at in range(0, len(data), step):
            requests.sent(data[at : at + step])
        return requests.bytes

    def answer(data: bytes) -> int:
        for at in range(0, len(data), step):
            requests.answered(data[at : at + step])
        return requests.bytes

    assert send(PREFACE + frame(4, 0, 12) + frame(HEADERS, 1, 30) + frame(DATA, 1, 100)) == 100
    assert send(frame(HEADERS, 3, 30) + frame(DATA, 3, 50)) == 150
    assert send(frame(WINDOW, 0, 4) + frame(DATA, 3, 5, END)) == 155
    assert answer(frame(HEADERS, 3, 20) + frame(DATA, 3, 70) + frame(WINDOW, 3, 4)) == 155
    assert answer(frame(HEADERS, 3, 0, END)) == 100
    assert send(frame(RESET, 1, 4)) == 0
    assert send(frame(DATA, 5, 9)) == 9
    assert answer(frame(DATA, 5, 1, END)) == 0
    assert send(frame(DATA, 7, 9)) == 9
    assert answer(frame(RESET, 7, 4)) == 0


async def received(tmp_path: Path, *clients: bytes, **limits: int) -> list[bool]:
    """Send these bytes, each on a connection of its own; return for each whether the port closed it."""
    inner = tmp_path / "inner.sock"

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Answers each piece with a frame that tells the client that all before was seen.
        while await reader.read(1 << 20):
            writer.write(frame(WINDOW, 0, 4))
        writer.close()

    server = await asyncio.start_unix_server(take, inner)
    options = {"max_connections": 10, "max_request_bytes": 1_000, "max_bytes": 2_000, **limits}
    front = Front("127.0.0.1:0", inner, tls=None, **options)
    await front.start()
    opened = []
    try:
        for data in clients:
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
            opened.append((reader, writer))
            writer.write(PREFACE + data)
            with suppress(ConnectionError):
                await reader.read(1)  # the answer, or the end
        return [await _is_closed(*one) for one in opened]
    finally:
        for _, writer in opened:
            writer.close()
        await front.stop()
        server.close()


async def _is_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    try:
        writer.write(frame(WINDOW, 0, 4))
        await reader.readexactly(2 * len(frame(WINDOW, 0, 4)) - 1)
        return False
    except (ConnectionError, asyncio.IncompleteReadError):
        return True


def test_a_connection_whose_requests_are_too_large_is_closed(tmp_path: Path) -> None:
    large, many = frame(DATA, 1, 1_001), frame(DATA, 1, 600) + frame(DATA, 3, 600)
    assert asyncio.run(received(tmp_path, frame(DATA, 1, 900), large, many)) == [False, True, True]


def test_the_connection_with_most_bytes_makes_room(tmp_path: Path) -> None:
    clients = [frame(DATA, 1, size) for size in (700, 900, 300, 200)]
    assert asyncio.run(received(tmp_path, *clients)) == [False, True, False, False]


def test_the_connection_that_was_idle_longest_makes_room(tmp_path: Path) -> None:
    clients = [frame(DATA, 1, 9)] * 4
    assert asyncio.run(received(tmp_path, *clients, max_connections=3)) == [True, False, False, False]
