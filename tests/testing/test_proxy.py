"""The network between two programs: frozen by hand, and with faults by a seed."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Event, Thread

import pytest

from tidemill.testing.network_faults import (
    BYTES,
    KINDS,
    Kind,
    NetworkFault,
    NetworkFaults,
    PlannedFaults,
    Way,
)
from tidemill.testing.progress import STALL_SECONDS, eventually, happened
from tidemill.testing.proxy import Proxy

FOREVER = 10 * STALL_SECONDS


class Server(ThreadingTCPServer):
    """Answers each byte with the next one, and keeps what it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.got = b""
        self.ended = Event()
        self.errors: list[OSError] = []


class _Answers(BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        try:
            while data := self.request.recv(1 << 16):
                self.server.got += data
                self.request.sendall(bytes(byte + 1 for byte in data))
        except OSError as error:
            self.server.errors.append(error)
        self.server.ended.set()


@contextmanager
def through_proxy(*faults: NetworkFault) -> Iterator[tuple[Server, Proxy]]:
    with Server() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with Proxy("127.0.0.1", server.server_address[1], faults=PlannedFaults(*faults)) as proxy:
                yield server, proxy
        finally:
            server.shutdown()
            thread.join()


def connect(proxy: Proxy) -> socket.socket:
    client = socket.create_connection((proxy.host, proxy.port))
    client.settimeout(STALL_SECONDS)
    return client


def received(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := client.recv(size - len(data))):
        data += more
    return data


def fault(kind: Kind, way: Way, seconds: float = FOREVER, *, both: bool = False) -> NetworkFault:
    """Return a fault after three bytes."""
    return NetworkFault(kind, way, 3, seconds, both)


def test_without_faults_everything_is_passed_and_so_are_the_ends() -> None:
    with through_proxy() as (server, proxy), connect(proxy) as client:
        client.sendall(b"a" * 300_000)
        client.shutdown(socket.SHUT_WR)
        assert received(client, 300_001) == b"b" * 300_000
        happened(server.ended)
        assert server.got == b"a" * 300_000
        assert server.errors == []


def test_a_cut_connection_ends_for_both_in_the_middle_of_a_message() -> None:
    with through_proxy(fault("cut", "to server")) as (server, proxy), connect(proxy) as client:
        client.sendall(b"abcdef")
        assert received(client, 7) in (b"", b"bcd")  # the answer may have been on the way
        happened(server.ended)
        assert server.got == b"abc"
        assert server.errors == []


def test_a_reset_connection_is_an_error_for_both() -> None:
    with through_proxy(fault("reset", "to client")) as (server, proxy), connect(proxy) as client:
        client.sendall(b"abcdef")
        with pytest.raises(ConnectionResetError):
            received(client, 7)
        happened(server.ended)
        assert [type(error) for error in server.errors] == [ConnectionResetError]


def test_a_frozen_connection_passes_everything_later_though_its_client_is_gone() -> None:
    with through_proxy(fault("freeze", "to server", 0.2)) as (server, proxy):
        with connect(proxy) as client:
            client.sendall(b"abcdef")
        happened(server.ended)
        assert server.got == b"abcdef"


def test_what_is_dropped_never_comes_and_neither_end_is_told_until_it_is_reset() -> None:
    planned = fault("drop", "to server", 0.3, both=True)
    with through_proxy(planned) as (server, proxy):
        with connect(proxy) as client:
            client.sendall(b"abcdef")
        happened(server.ended)
        assert server.got == b"abc"
        assert [type(error) for error in server.errors] == [ConnectionResetError]


def test_answers_may_be_dropped_while_requests_arrive() -> None:
    with through_proxy(fault("drop", "to client")) as (server, proxy), connect(proxy) as client:
        client.sendall(b"abc")
        assert received(client, 3) == b"bcd"
        client.sendall(b"def")
        eventually(lambda: server.got == b"abcdef")
        client.shutdown(socket.SHUT_WR)
        happened(server.ended)
        client.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.recv(1)


def test_a_reordered_connection_passes_its_bytes_after_a_later_one_is_made() -> None:
    with through_proxy(fault("reorder", "to server")) as (server, proxy), connect(proxy) as first:
        first.sendall(b"abcdef")
        eventually(lambda: server.got == b"abc")
        with connect(proxy) as second:
            second.sendall(b"x")
            assert received(second, 1) == b"y"
            assert received(first, 6) == b"bcdefg"


def test_a_fault_may_be_aimed_at_the_answer_to_a_request() -> None:
    planned = NetworkFault("reset", "to client", 1_000, 0.0, aim=b"COMMIT", spared=1)
    with through_proxy(planned) as (server, proxy), connect(proxy) as client:
        client.sendall(b"COMMIT")
        assert received(client, 6) == b"DPNNJU"
        client.sendall(b"COM")
        assert received(client, 3) == b"DPN"
        client.sendall(b"MIT")
        with pytest.raises(ConnectionResetError):
            received(client, 3)
        assert server.got == b"COMMITCOMMIT"


def test_a_fault_may_be_aimed_at_a_request() -> None:
    planned = NetworkFault("cut", "to server", 1_000, 0.0, aim=b"COMMIT", spared=1)
    with through_proxy(planned) as (server, proxy), connect(proxy) as client:
        client.sendall(b"COMMIT")
        assert received(client, 6) == b"DPNNJU"
        client.sendall(b"aCOMMIT")
        happened(server.ended)
        assert server.got == b"COMMITa"


def test_delayed_bytes_keep_their_order() -> None:
    with through_proxy(fault("delay", "to client", 0.05)) as (server, proxy), connect(proxy) as client:
        client.sendall(b"abc")
        client.sendall(b"def")
        assert received(client, 6) == b"bcdefg"
        assert server.errors == []


def test_a_proxy_frozen_by_hand_passes_nothing_until_it_thaws() -> None:
    with through_proxy() as (server, proxy):
        proxy.freeze()
        with connect(proxy) as client:
            client.sendall(b"a")
            client.settimeout(0.1)
            with pytest.raises(TimeoutError):
                client.recv(1)
            assert server.got == b""
            proxy.thaw()
            client.settimeout(STALL_SECONDS)
            assert received(client, 1) == b"b"


def test_a_seed_gives_a_connection_the_same_faults_of_every_kind() -> None:
    def drawn(seed: int, connection: int) -> list[NetworkFault]:
        return list(islice(NetworkFaults(seed, 1).draw(connection), 200))

    assert drawn(1, 2) == drawn(1, 2)
    assert drawn(1, 2) != drawn(1, 3) != drawn(2, 3)
    assert {one.kind for one in drawn(1, 2)} == set(KINDS)
    assert all(BYTES[0] <= one.after_bytes <= BYTES[1] for one in drawn(1, 2))


def test_there_are_no_more_faults_than_the_limit() -> None:
    faults = NetworkFaults(1, 2)
    assert [faults.take(kind) for kind in KINDS] == [True, True, False, False, False, False]
    assert faults.is_over
    assert faults.made == Counter(drop=1, freeze=1)
