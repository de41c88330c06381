"""A PostgreSQL target over TLS, with a certificate that the test makes."""

from __future__ import annotations

import os
import shutil

import pytest

from tidemill.errors import SinkError
from tidemill.events import Chunk
from tidemill.sink import open_sink
from tidemill.testing.certificates import Authority
from tidemill.testing.changes import ORDERS, MemoryStore, chunk, create, insert, transaction
from tidemill.testing.progress import eventually
from tidemill.testing.sink_conformance import feed


def serve_tls(server, certificate, key):
    """Have a server use these files from its next connection on."""
    owner = server.data_directory.stat()
    for source, name in (certificate, "server.crt"), (key, "server.key"):
        file = server.data_directory / name
        shutil.copy(source, file)
        os.chown(file, owner.st_uid, owner.st_gid)
        file.chmod(0o600)
    with server.connect() as connection:
        connection.execute("ALTER SYSTEM SET ssl = on")
        connection.execute("SELECT pg_reload_conf()")

    def is_on():
        with server.connect() as connection:
            return connection.execute("SHOW ssl").fetchone() == ("on",)

    eventually(is_on)


def sink_over(server, ca):
    url = f"{server.url()}?sslmode=verify-full&sslrootcert={ca}"
    return open_sink("copy", url, feed="test", store=MemoryStore(), options={})


def test_a_server_is_verified_by_its_certificate_and_its_address(tmp_path, private_postgresql):
    server = private_postgresql.start()
    ours, other = Authority(tmp_path / "ours"), Authority(tmp_path / "other")
    serve_tls(server, *ours.issue("server"))
    sink = sink_over(server, ours.ca)
    first = chunk(2, ORDERS, None, insert(ORDERS, 1, "a"))
    feed(sink, [create(1, ORDERS), first, transaction(3, chunk=Chunk(""))])
    sink = sink_over(server, ours.ca)
    sink.open()
    with server.connect() as connection:
        used = connection.execute(
            "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
            "WHERE application_name = 'tidemill'"
        ).fetchall()
    sink.close()
    feed(sink_over(server, ours.ca), [transaction(4, insert(ORDERS, 2, "b"))])
    assert used == [(True,)]
    with server.connect() as connection:
        assert connection.execute("SELECT count(*) FROM shop.orders").fetchone() == (2,)
    with pytest.raises(SinkError, match="certificate verify failed"):
        sink_over(server, other.ca).open()
    serve_tls(server, *ours.issue("elsewhere", "IP:127.0.0.9"))
    with pytest.raises(SinkError, match="certificate"):
        sink_over(server, ours.ca).open()
