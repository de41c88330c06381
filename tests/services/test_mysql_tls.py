"""A MariaDB over TLS as a source and as a target, with certificates that the test makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tidemill.codec.mysql.tls import Guarded
from tidemill.config import Finding
from tidemill.dialects.mysql.client import connect, disconnect, query
from tidemill.engine.options import feed_options
from tidemill.engine.preflight import check_feed
from tidemill.errors import SinkError, SourceError
from tidemill.events import Chunk
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.sink import open_sink
from tidemill.testing.certificates import Authority
from tidemill.testing.changes import ORDERS, MemoryStore, chunk, create, insert, transaction
from tidemill.testing.mariadb import PASSWORD, MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.sink_conformance import feed

from .pulling import Copy, Pulling, binlog_end, rows_of, source_rows


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "tls")


@pytest.fixture
def server(private_mariadb: MariaDb, authority: Authority) -> Iterator[MariaDb]:
    """A server that requires TLS, with a certificate for 127.0.0.1."""
    certificate, key = authority.issue("server")
    files = (f"--ssl-key={key}", f"--ssl-cert={certificate}")
    private_mariadb.options = (*files, "--require-secure-transport=ON")
    started = private_mariadb.start()
    started.execute("CREATE DATABASE shop")
    return started


def sink_of(server: MariaDb, host: str, **tls: str):
    url = server.url("copy").replace("127.0.0.1", host) + "?" + urlencode(tls)
    return open_sink("copy", url, feed="test", store=MemoryStore())


def test_a_server_is_followed_over_tls(server: MariaDb, authority: Authority, tmp_path: Path) -> None:
    sql = Client(server, "shop")
    sql("CREATE TABLE t (id INT PRIMARY KEY, note VARCHAR(1000))")
    sql("INSERT INTO t SELECT seq, REPEAT('x', 900) FROM seq_1_to_5000")
    copy = Copy()
    with Pulling(server, "shop.*", copies=(copy,), ssl_ca=str(authority.ca)) as pulling:
        pulling.catch_up(binlog_end(server))
        sql("UPDATE t SET note = CONCAT(note, 'y')")
        pulling.catch_up(binlog_end(server))
    assert rows_of(copy) == source_rows(server, "shop")
    with Pulling(server, "shop.*", ssl_ca=str(Authority(tmp_path / "other").ca)) as pulling:
        assert "certificate is not accepted" in str(pulling.wait_for_error())
    sql.close()


def test_a_source_is_verified_by_its_certificate_and_its_name(server: MariaDb, authority: Authority) -> None:
    options = {"port": server.port, "password": PASSWORD, "ssl_ca": str(authority.ca)}
    with pytest.raises(SourceError, match=r"certificate is not accepted: .*Hostname mismatch"):
        connect(MysqlOptions(host="localhost", **options))
    for other in {"host": "localhost", "ssl_verify_identity": False}, {"host": "127.0.0.1"}:
        session = connect(MysqlOptions(**{**options, **other}))
        assert query(session, "SHOW STATUS LIKE 'Ssl_version'")[0][1].startswith("TLS")
        disconnect(session)


def test_a_target_is_verified_by_its_certificate_and_its_name(
    server: MariaDb, authority: Authority, tmp_path: Path
) -> None:
    ca = str(authority.ca)
    rows = [
        create(1, ORDERS),
        chunk(2, ORDERS, None, insert(ORDERS, 1, "a")),
        transaction(3, chunk=Chunk("")),
    ]
    feed(sink_of(server, "127.0.0.1", ssl_ca=ca), rows)
    feed(sink_of(server, "localhost", ssl_ca=ca, ssl_verify_identity="false"), [transaction(4)])
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM copy.orders")
        assert cursor.fetchall() == ((1,),)
    for refused in (
        sink_of(server, "localhost", ssl_ca=ca),
        sink_of(server, "127.0.0.1", ssl_ca=str(Authority(tmp_path / "other").ca)),
    ):
        with pytest.raises(SinkError, match="certificate is not accepted"):
            refused.open()
        refused.close()


def test_check_warns_of_servers_that_are_not_verified(
    server: MariaDb, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = Client(server, "shop")
    sql("CREATE TABLE t (id INT PRIMARY KEY)")
    sql.close()

    def warnings(ca: str | None) -> list[Finding]:
        source = {"url": server.url(), "tables": ["shop.*"]} | ({} if ca is None else {"ssl_ca": ca})
        copy = {"url": server.url("copy") + ("" if ca is None else f"?ssl_ca={ca}")}
        found = {"name": "shop", "data_dir": str(tmp_path / "state"), "source": source, "sink": [copy]}
        return [found for found in check_feed(feed_options(found)) if found.level != "ok"]

    assert warnings(None) == []  # nobody is between
    monkeypatch.setattr(Guarded, "_is_local", False)
    unverified = [("source", "warning"), ("sink sink-1", "warning")]
    assert [(found.about, found.level) for found in warnings(None)] == unverified
    assert all("the certificate of 127.0.0.1 isn't verified" in found.text for found in warnings(None))
    assert warnings(str(authority.ca)) == []
    (refused,) = warnings(str(tmp_path / "none.pem"))[:1]
    assert (refused.level, refused.about) == ("error", "source")
    assert "ssl_ca: " in refused.text
