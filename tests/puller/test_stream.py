"""The silence of a server whose binlog is read."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from struct import pack

import pymysql
import pytest

from tidemill.codec.mysql.position import Position
from tidemill.dialects.mysql.client import Unavailable
from tidemill.puller.mysql import stream
from tidemill.puller.mysql.options import MysqlOptions

HEARTBEAT_SECONDS = 10.0
LOOK_SECONDS = 2.5
SILENCE = b""


def packet(kind: int) -> bytes:
    event = b"\0" + pack("<IBIIIH", 0, kind, 1, 0, 0, 0)
    return len(event).to_bytes(3, "little") + b"\0" + event


HEARTBEAT = packet(27)


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def reads(
    received: list[bytes], ours: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[bytes]]:
    """Yield what a dump reads, of a server from which this is received at each look."""
    looks = iter(received)
    monkeypatch.setattr(stream, "connect", lambda _: pymysql.connect(defer_connect=True))
    monkeypatch.setattr(stream.Dump, "_start", lambda _: None)
    monkeypatch.setattr(stream, "taken_over", lambda _: ours)
    monkeypatch.setattr(stream, "receive", lambda *_: next(looks))
    options = MysqlOptions(host="127.0.0.1", port=1, heartbeat_seconds=HEARTBEAT_SECONDS)
    dump = stream.Dump(options, Position("binlog.000001", 4))
    return (dump.read(LOOK_SECONDS) for _ in received)


def test_a_server_that_looks_for_a_position_for_long_is_not_given_up(ends, monkeypatch):
    """It sends heartbeats meanwhile, and some of them late: a new connection would begin from the start."""
    late = [*[SILENCE] * 9, HEARTBEAT]
    assert sum(map(len, reads(late * 20, ends[0], monkeypatch))) == 20


def test_a_server_that_sends_no_heartbeats_is_given_up(ends, monkeypatch):
    with pytest.raises(Unavailable, match="silent for"):
        list(reads([HEARTBEAT, *[SILENCE] * 20], ends[0], monkeypatch))
