from __future__ import annotations

import sys

import pytest

from tidemill.errors import ConfigError, SinkError
from tidemill.sink import open_sink
from tidemill.testing.changes import MemoryStore


def opened(target, **options):
    return open_sink("copy", target, feed="f", store=MemoryStore(), options=options)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("sqlite:////var/lib/copy.db", "sqlite:/var/lib/copy.db"),
        ("sqlite:////var/lib/../lib/copy.db", "sqlite:/var/lib/copy.db"),
        ("postgresql://u:secret@db/shop", "postgresql://db:5432/shop"),
        ("postgres://db:6000/shop?sslmode=require", "postgresql://db:6000/shop"),
        ("mysql://root:secret@localhost/", "mysql://127.0.0.1:3306/"),
        ("mysql://app@127.0.0.1:3306/", "mysql://127.0.0.1:3306/"),
        ("mariadb://root@db:3307/shop", "mysql://db:3307/shop"),
        ("mysql+pymysql://root@db/shop?unix_socket=/run/db.sock", "mysql:///run/db.sock/shop"),
        ("file:///var/rows.ndjson", "file:/var/rows.ndjson"),
        ("file:/var/rows.ndjson", "file:/var/rows.ndjson"),
        (print, "python:copy"),
    ],
)
def test_a_target_is_spelled_one_way(url, target):
    assert opened(url).target == target


def test_a_chosen_schema_is_part_of_the_target():
    assert opened("mysql://db/", schema="copy").target == opened("mysql://db/copy").target


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("orders.db", {}, "sink copy: 'orders.db' is not a URL; accepted: sqlite:///file, mysql://"),
        (
            "pgsql://db/shop",
            {},
            "sink copy: no sink writes to 'pgsql'; accepted: sqlite:///file, mysql://",
        ),
        ("postgresql://db", {}, "a PostgreSQL sink needs a database: postgresql://user@host/database"),
        ("mysql://db/copy/", {}, "the URL's path is one name, of a database, without a slash: 'copy/'"),
        ("postgres://db/x", {"dates": "zero"}, "sink copy: dates = 'zero'"),
        ("mysql+foo://db/", {}, "sink copy: no driver 'foo' for mysql; accepted: mysql, mysql+pymysql"),
        ("sqlite+pysqlite:///x.db", {}, "sink copy: no driver 'pysqlite' for sqlite; accepted: sqlite"),
        ("oracle9i://db/shop", {}, "sink copy: no sink writes to 'oracle9i'; accepted: sqlite"),
        ("mysql://root:pass@word@db/shop", {}, "sink copy: the user name or password has a character that"),
        ("mysql://root:1#2@word@db/shop", {}, "percent-encode it (/ is %2F, # is %23, ? is %3F, @ is %40)"),
        ("mysql://ro/ot:pass@db/shop", {}, "percent-encode it"),
        ("mysql://root:pass/word@db:x/shop", {}, "percent-encode it"),
        ("mysql://db:x/shop", {}, "sink copy: the port of 'db' is not a number from 1 to 65535"),
        ("sqlite://", {}, "an SQLite sink needs a file"),
        ("sqlite:///:memory:", {}, "an SQLite sink needs a file"),
        ("sqlite://host/x.db", {}, ": three slashes or four, as there is no host"),
        ("sqlite://user:secret@/x.db", {}, "as there is no host and no user"),
        ("sqlite://:3306/x.db", {}, "as there is no host and no user"),
        (
            "sqlite:///x.db?timeout=abc",
            {},
            ": without options after it: timeout",
        ),
        ("sqlite:///a%00b", {}, "an SQLite sink needs a file"),
        ("duckdb://host/x.duckdb", {}, ": three slashes or four"),
        ("file://", {}, "sink copy: 'file://' names no file; for instance file:///var/rows.ndjson"),
        ("file:///x#y", {}, "sink copy: 'file:///x#y' has a #: write %23 for one in a name"),
        ("file:///x?format=csv", {"format": "maxwell"}, "sink copy: format is given twice"),
        ("file:///x?schema=y", {}, "sink copy: schema in the URL: no such option (accepted: format)"),
        ("parquet:///x?file_bytes=0", {}, "sink copy: file_bytes = '0' in the URL: expected `int` >= 1"),
        ("parquet:///x", {"format": "csv"}, "sink copy: format = 'csv'"),
        ("file:///x", {"schema": "y"}, "sink copy: schema: no such option (accepted: encoding, format)"),
        ("sqlite:///x", {"schema": "y"}, "sink copy: schema: no such option (accepted: "),
        ("sqlite:///x", {"table_name": 3}, "sink copy: table_name = 3: expected `str`, got `int`"),
        ("sqlite:///x", {"table_name": "orders"}, "table_name 'orders' must have {table} in it"),
        ("sqlite:///x", {"table_name": "{tabel}"}, "table_name '{tabel}' must have {table} in it"),
        ("mysql://db/", {"table_name": "y"}, "sink copy: table_name: no such option"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_accepted(target, options, message):
    with pytest.raises(ConfigError) as caught:
        opened(target, **options)
    assert message in str(caught.value)


def test_without_the_driver_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymysql", None)
    for name in ("mysql", "session"):
        monkeypatch.delitem(sys.modules, f"tidemill.dialects.mysql.{name}", raising=False)
    with pytest.raises(ConfigError, match=r"^sink copy: MySQL needs: pip install 'tidemill\[mysql\]'$"):
        opened("mysql://db/")


def test_a_login_that_needs_another_package_says_so(monkeypatch):
    sink = opened("mysql://db/")

    def lacking():
        raise RuntimeError("'cryptography' package is required")

    monkeypatch.setattr(sink._database.session, "_connect", lacking)
    with pytest.raises(SinkError, match="mysql://db:3306/: 'cryptography' package is required"):
        sink.open()
