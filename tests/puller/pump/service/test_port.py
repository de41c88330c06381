"""The port's own ends: every connection is closed, at whatever step it is when the port stops."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import Future
from http import HTTPStatus

import pytest

from tidemill.puller.grpc.frames import PREFACE
from tidemill.puller.grpc.security import Security
from tidemill.puller.pump.service.drainer import cistern
from tidemill.puller.pump.service.http import text_answer
from tidemill.puller.pump.service.port import Port


def _port() -> Port:
    return Port(
        "127.0.0.1:0",
        cistern(Future),
        lambda method, path: text_answer(HTTPStatus.OK, f"{method} {path}"),
        Security(),
    )


async def _stopped_meanwhile(steps: int, *, leaves: bool) -> None:
    """Stop a port `steps` steps of the loop after a client has connected, or has left again."""
    port = _port()
    await port.start()
    host, _, number = port.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(number))
    try:
        if leaves:
            writer.write(PREFACE)
            await reader.read(1)  # the gRPC server's first frame: both connections are open
            writer.close()
        for _ in range(steps):
            await asyncio.sleep(0)
        await port.stop()
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("leaves", [False, True])
def test_no_connection_outlives_the_port(leaves):
    """A connection that is left open is a ResourceWarning when it is collected, and this test's failure."""
    for steps in range(12):
        asyncio.run(_stopped_meanwhile(steps, leaves=leaves))
        gc.collect()
