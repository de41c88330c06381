"""TLS of PyMySQL's connections: contexts, warnings, and what a hostile server gets of the password."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Thread

import pytest

from tidemill.codec.mysql.tls import TlsFiles
from tidemill.dialects.mysql.client import Session, connect
from tidemill.errors import ConfigError
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.sink import open_sink
from tidemill.testing.certificates import Authority
from tidemill.testing.changes import MemoryStore

GREETING = (
    b"\x0a8.4.0\0\1\0\0\0saltsalt\0"
    b"\xff\xf7"  # its capabilities, without TLS
    b"\x2d\2\0\xff\xdf\x15" + bytes(10) + b"saltsaltsalt\0mysql_native_password\0"
)
PASSWORD = "t0psecret"


class Thief:
    """A server that claims to have no TLS, and asks for the password in clear."""

    def __init__(self, plugin: bytes) -> None:
        self._plugin = plugin
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.received = b""
        self._thread = Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        try:
            while True:
                with closing(self._listener.accept()[0]) as client:
                    client.sendall(packet(0, GREETING))
                    client.recv(1 << 16)
                    client.sendall(packet(2, b"\xfe" + self._plugin + b"\0" + b"Password: "))
                    self.received += client.recv(1 << 16)
        except OSError:
            pass


def packet(number: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


@contextmanager
def thief(plugin: bytes) -> Iterator[Thief]:
    with closing(Thief(plugin)) as server:
        yield server


@pytest.mark.parametrize("plugin", [b"mysql_clear_password", b"dialog"])
def test_a_password_is_not_sent_in_clear(plugin: bytes) -> None:
    with thief(plugin) as server:
        with pytest.raises(ConfigError, match=rf"in clear \({plugin.decode()}\).* give ssl_ca"):
            connect(MysqlOptions(port=server.port, password=PASSWORD))
        url = f"mysql://root:{PASSWORD}@127.0.0.1:{server.port}/"
        sink = open_sink("copy", url, feed="f", store=MemoryStore())
        with pytest.raises(ConfigError, match=rf"in clear \({plugin.decode()}\)"):
            sink.open()
        sink.close()
    assert server.received == b""


def test_a_server_without_tls_gets_nothing_of_a_user_who_wants_it(tmp_path) -> None:
    ca = Authority(tmp_path / "tls").ca
    with thief(b"mysql_native_password") as server:
        url = f"mysql://root:{PASSWORD}@127.0.0.1:{server.port}/?ssl_ca={ca}"
        sink = open_sink("copy", url, feed="f", store=MemoryStore())
        with pytest.raises(Exception, match="SSL is required but the server doesn't support it"):
            sink.open()
        sink.close()
        with pytest.raises(Exception, match="SSL is required but the server doesn't support it"):
            connect(MysqlOptions(port=server.port, password=PASSWORD, ssl_ca=str(ca)))
    assert server.received == b""


def test_with_an_authority_the_host_name_is_checked_unless_that_is_switched_off(tmp_path) -> None:
    authority = Authority(tmp_path / "tls")
    found = TlsFiles(ca=str(authority.ca)).context()
    assert (found.verify_mode, found.check_hostname) == (ssl.CERT_REQUIRED, True)
    found = TlsFiles(ca=str(authority.ca), verify_identity=False).context()
    assert (found.verify_mode, found.check_hostname) == (ssl.CERT_REQUIRED, False)
    cert, key = authority.issue("client")
    found = TlsFiles(cert=str(cert), key=str(key)).context()
    assert (found.verify_mode, found.check_hostname) == (ssl.CERT_NONE, False)
    assert TlsFiles().context() is None


def test_a_file_that_is_none_is_named(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"ssl_ca: /no/ca\.pem can't be used: No such file"):
        connect(MysqlOptions(port=1, ssl_ca="/no/ca.pem"))
    (tmp_path / "ca.pem").write_text("nothing")
    with pytest.raises(ConfigError, match=r"ssl_ca: .*ca\.pem can't be used: "):
        TlsFiles(ca=str(tmp_path / "ca.pem")).context()
    with pytest.raises(ConfigError, match=r"source\.ssl_cert: missing: ssl_key is the key"):
        MysqlOptions(ssl_key="key.pem")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "ssl_disabled=true",
            "ssl_disabled in the URL: no such option; did you mean 'ssl_ca'? (accepted: ",
        ),
        ("ssl_check_hostname=false", "ssl_check_hostname in the URL: no such option"),
        ("ssl_ca=a&ssl_ca=b", "ssl_ca is given twice in the URL"),
        ("ssl_verify_identity=no", "ssl_verify_identity = 'no' in the URL: accepted: true, false"),
        ("ssl_key=a", "ssl_cert: missing"),
    ],
)
def test_options_in_a_url_that_can_not_be(query: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_sink("copy", f"mysql://db/?{query}", feed="f", store=MemoryStore())
    assert message in str(caught.value)


def test_a_connection_on_the_wire_is_warned_of() -> None:
    class Wire(socket.socket):
        def getpeername(self) -> tuple[str, int]:
            return "10.0.0.5", 3306

    connection = Session(host="db1", defer_connect=True)
    with closing(Wire()) as wire:
        connection._sock = wire
        assert "db1 offers no TLS" in connection.tls_warning
        context = connection.ctx
        with closing(context.wrap_socket(wire, do_handshake_on_connect=False)) as wrapped:
            wrapped.getpeername = wire.getpeername
            connection._sock = wrapped
            assert "the certificate of db1 isn't verified" in connection.tls_warning
            context.verify_mode = ssl.CERT_REQUIRED
            assert connection.tls_warning == ""
        connection._sock = None
