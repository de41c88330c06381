"""A drainer's port: HTTP requests of people and tools, and the notifications of pumps."""

from __future__ import annotations

import re
import socket
import ssl
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.request import urlopen

import grpc
import pytest

from tidemill.actors import SystemClock
from tidemill.codec.proto import CISTERN
from tidemill.config import checked
from tidemill.errors import ConfigError, Retryable
from tidemill.puller.grpc import frames, front
from tidemill.puller.grpc.security import Security
from tidemill.puller.pump.registry.location import open_registry
from tidemill.puller.pump.registry.node import PUMPS, NodeStatus
from tidemill.puller.pump.registry.registration import NodeInUse
from tidemill.puller.pump.registry.registry import nodes
from tidemill.puller.pump.service import port
from tidemill.puller.pump.service.options import DrainerOptions
from tidemill.testing.certificates import Authority
from tidemill.testing.progress import eventually

from .node import RunningDrainer
from .pump_side import NotNotified, join


def pump(node_id):
    return NodeStatus(node_id=node_id, host="127.0.0.1:8250", state="online")


class Pauses(list):
    """Keeps the pauses of the pump's side, which take no time."""

    def __call__(self, seconds):
        self.append(seconds)


# --- HTTP


def test_the_status_has_the_fields_of_tidb_binlog(drainer):
    assert drainer().request("GET", "/status") == (
        200,
        {"PumpPos": {"p1": 40 << 18, "p2": 39 << 18}, "Synced": False, "LastTS": 38 << 18, "TsMap": ""},
    )


def test_a_drainer_is_synced_after_five_minutes_without_a_transaction(drainer, clock):
    one = drainer()
    clock.advance(300)
    assert not one.request("GET", "/status")[1]["Synced"]
    clock.advance(1)
    assert one.request("GET", "/status")[1]["Synced"]


def test_the_commit_ts_is_in_the_envelope_of_tidb_binlog(drainer):
    assert drainer().request("GET", "/commit_ts") == (
        200,
        {"message": "get drainer's latest ts success!", "code": 200, "data": {"ts": 38 << 18}},
    )


@pytest.mark.parametrize(
    ("action", "meanwhile", "left"), [("pause", "pausing", "paused"), ("close", "closing", "offline")]
)
def test_a_command_sets_the_state_and_asks_the_feed_to_stop(drainer, action, meanwhile, left):
    one = drainer()
    status, answer = one.request("PUT", f"/state/d1/{action}")
    assert (status, answer["code"], answer["message"]) == (200, 200, f"apply action {action} success!")
    assert one.asked_to_stop.is_set()
    eventually(lambda: one.record.state == meanwhile)
    one.drainer.stop()
    assert one.record.state == left


def test_a_second_command_is_refused_with_the_state(drainer):
    one = drainer()
    one.request("PUT", "/state/d1/pause")
    _, answer = one.request("PUT", "/state/d1/close")
    assert answer == {
        "message": "this drainer's state is pausing, apply close failed!",
        "code": 3,
        "data": None,
    }


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/state/other/pause", "invalid nodeID other, this drainer's nodeID is d1"),
        ("/state/d1/explode", "invalid action explode; accepted: pause, close"),
    ],
)
def test_a_command_that_is_none_is_refused(drainer, path, message):
    one = drainer()
    assert one.request("PUT", path) == (200, {"message": message, "code": 3, "data": None})
    assert not one.asked_to_stop.is_set()


def test_other_paths_and_methods_are_refused_with_the_right_ones(drainer):
    one = drainer()
    status, text = one.request("GET", "/nothing")
    assert (status, "GET /status" in text) == (404, True)
    assert one.request("GET", "/state/d1/pause") == (405, "GET is not allowed here; use PUT\n")


def raw(one, data):
    """Send bytes; return everything that is answered until the connection is closed."""
    host, _, number = one.drainer.address.rpartition(":")
    with closing(socket.create_connection((host, int(number)), timeout=60)) as connection:
        connection.sendall(data)
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer


def test_a_head_that_is_too_large_is_refused(drainer):
    assert raw(drainer(), b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000).startswith(b"HTTP/1.1 431 ")


def test_bytes_that_are_no_request_are_refused(drainer):
    assert raw(drainer(), b"\x16\x03\x01 what\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_a_client_that_says_nothing_is_disconnected(drainer, monkeypatch):
    monkeypatch.setattr(front, "REQUEST_SECONDS", 0.05)
    assert raw(drainer(), b"PRI *") == b""


@pytest.mark.parametrize("said", [b"", b"PRI * HT", frames.PREFACE], ids=["nothing", "a part", "HTTP/2"])
def test_idle_connections_make_room_for_others(drainer, monkeypatch, said):
    monkeypatch.setattr(port, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(front, "REQUEST_SECONDS", 600.0)
    one = drainer()
    host, _, number = one.drainer.address.rpartition(":")
    with ExitStack() as stack:
        idle = [
            stack.enter_context(closing(socket.create_connection((host, int(number)), timeout=60)))
            for _ in range(3)
        ]
        for each in idle:
            each.sendall(said)
        for _ in range(5):
            assert one.request("GET", "/commit_ts")[0] == 200
        assert _is_closed(idle[0])


def test_a_connection_that_is_used_stays_where_others_are_idle(drainer, monkeypatch):
    monkeypatch.setattr(port, "MAX_CONNECTIONS", 2)
    one = drainer()
    host, _, number = one.drainer.address.rpartition(":")
    with closing(socket.create_connection((host, int(number)), timeout=60)) as used:
        used.sendall(frames.PREFACE + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))  # SETTINGS
        _ping(used)
        with closing(socket.create_connection((host, int(number)), timeout=60)) as idle:
            idle.sendall(frames.PREFACE + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            _ping(idle)
            _ping(used)
            assert one.request("GET", "/commit_ts")[0] == 200
            _ping(used)
            assert _is_closed(idle)


def _ping(connection):
    """Send a PING of HTTP/2 and wait for its answer."""
    connection.sendall(bytes([0, 0, 8, 6, 0, 0, 0, 0, 0]) + bytes(8))
    received = b""
    while bytes([0, 0, 8, 6, 1]) not in received:
        received += (more := connection.recv(65536))
        assert more


def _is_closed(connection):
    """Return True once the peer has closed; wait for it."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def test_an_address_in_use_is_an_error_that_names_it(drainer):
    address = drainer().drainer.address
    with pytest.raises(ConfigError, match=rf"source\.listen = '{address}'"):
        drainer(node_id="d2", listen=address)


# --- pumps


def test_a_pump_that_joins_is_known_to_every_drainer_before_it_serves(drainer, registry_url):
    one, other = drainer(), drainer(node_id="d2")
    join(open_registry(registry_url), pump("new"), Pauses())
    assert (one.pumps, other.pumps) == (["new"], ["new"])


def test_a_pump_whose_notification_fails_registers_as_offline(drainer, registry_url):
    one, pauses = drainer(), Pauses()
    one.failure = Retryable("the merger is busy")
    registry = open_registry(registry_url)
    with pytest.raises(NotNotified, match="d1: UNKNOWN: the merger is busy"):
        join(registry, pump("new"), pauses)
    assert pauses == [1.0, 2.0]
    assert [each.state for each in nodes(registry, PUMPS)] == ["offline"]


def test_a_pump_does_not_notify_a_drainer_that_has_stopped(drainer, registry_url):
    drainer().drainer.stop()
    join(open_registry(registry_url), pump("new"), Pauses())


def test_a_notification_that_failed_once_is_accepted_at_the_next_try(drainer, registry_url):
    one = drainer()
    one.failure = Retryable("the merger is busy")

    def repair(_seconds):
        one.failure = None

    join(open_registry(registry_url), pump("new"), repair)
    assert one.pumps == ["new"]


@pytest.mark.parametrize("call", ["DumpBinlog", "DumpDDLJobs"])
def test_calls_of_old_pumps_are_answered_as_unimplemented(drainer, call):
    with grpc.insecure_channel(drainer().drainer.address, [("grpc.enable_http_proxy", 0)]) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(f"/binlog.Cistern/{call}")(b"", timeout=60)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


# --- two drainers, and the end


def test_a_drainer_is_registered_with_the_address_that_it_is_reached_at(drainer):
    assert drainer().record.host.startswith("127.0.0.1:")
    assert drainer(node_id="d2", advertise="h2.example:8249").record.host == "h2.example:8249"


def test_a_drainer_without_an_id_is_called_by_its_machine_and_port(drainer):
    assert drainer(node_id="", listen="127.0.0.1:0").drainer.node_id == f"{socket.gethostname()}:0"


def test_a_second_drainer_of_one_id_is_refused_and_leaves_the_first_alone(registry_url):
    first = RunningDrainer(clock=SystemClock(), registry=registry_url, heartbeat_seconds=0.05).start()
    second = RunningDrainer(clock=SystemClock(), registry=registry_url, heartbeat_seconds=1.0)
    try:
        with pytest.raises(NodeInUse, match=f"runs at {first.drainer.address}"):
            second.start()
        assert (first.record.state, first.lost) == ("online", [])
    finally:
        second.drainer.stop()
        first.drainer.stop()
    assert first.record.state == "paused"


def test_a_drainer_and_its_pumps_meet_in_etcd(private_etcd):
    url = f"binlog://{private_etcd.address}"
    one = RunningDrainer(clock=SystemClock(), registry=url).start()
    try:
        registry = open_registry(url)
        join(registry, pump("new"), Pauses())
        assert one.pumps == ["new"]
        registry.close()
    finally:
        one.drainer.stop()


def test_with_a_ca_the_port_is_for_clients_with_a_certificate(drainer, tmp_path):
    authority = Authority(tmp_path / "ca")
    certificate, pem_key = authority.issue("drainer")
    security = Security(ca_path=authority.ca, cert_path=certificate, key_path=pem_key)
    one = drainer(security=security)
    method = CISTERN["Notify"]
    with grpc.secure_channel(
        one.drainer.address, security.credentials(), [("grpc.enable_http_proxy", 0)]
    ) as channel:
        channel.unary_unary(method.path)(b"", timeout=60)
    context = ssl.create_default_context(cafile=str(authority.ca))
    url = f"https://{one.drainer.address}/commit_ts"
    with (
        pytest.raises(OSError, match=r"certificate|reset|EOF|closed"),
        urlopen(url, context=context) as answer,
    ):
        answer.read()
    context.load_cert_chain(certificate, pem_key)
    with urlopen(url, context=context, timeout=60) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"listen": "8249"}, "source.listen = '8249'"),
        ({"advertise": "host"}, "source.advertise = 'host'"),
        ({"node_id": "a/b"}, "source.node_id"),
        ({"heartbeat_seconds": 0}, "source.heartbeat_seconds"),
        ({"security": Security(ca_path=Path("ca.pem"))}, "source.cert_path is missing"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        checked(DrainerOptions(registry="sqlite:///r.db", **options), "source")


def test_stopping_twice_and_without_a_start_is_harmless(drainer):
    one = drainer()
    one.drainer.stop()
    one.drainer.stop()
    assert one.record.state == "paused"


def test_the_defaults_are_those_of_tidb_binlog():
    options = DrainerOptions(registry="sqlite:///r.db")
    assert (options.listen, options.detect_seconds) == ("127.0.0.1:8249", 5.0)
    assert (options.registry_timeout_seconds, options.synced_check_seconds) == (5.0, 300.0)
