"""Passwords appear in no message, no repr and no file."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemill.config import read
from tidemill.config.url import redacted
from tidemill.engine.opening import make_data_dir, open_sinks
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.spark.read.options import read_options
from tidemill.store.scratch import Scratch

SECRET = "t0psecret"
MISTYPED = [
    f"mysql:/u:{SECRET}@h",
    f"mysql:u:{SECRET}@h",
    f"mysql//u:{SECRET}@h",
    f"mysql://u:{SECRET}",
    f"mysql://u:{SECRET}@h:x",
    f"mysql://u:{SECRET}#@h",
    f"mysql://u:{SECRET}/@h:3306",
    f"mysql://u:{SECRET}@h/a/b",
    f"mysqll://u:{SECRET}@h",
    f"u:{SECRET}@h",
    f"tikv://u:{SECRET}@h",
    f"tikv://u:{SECRET},x@h:2379",
    f"binlog://u:{SECRET}@h:2379",
    f"pump://u:{SECRET}@h:8250",
    f"kafka://u:{SECRET}@h:x/topic",
    f"kafka:/u:{SECRET}@h",
    f"s3://u:{SECRET}@bucket",
    f"file://u:{SECRET}@",
    f"directory://u:{SECRET}@h",
    f"parquet:u:{SECRET}@?format=",
    f"sqlite:/u:{SECRET}@h?mode=x",
    f"duckdb://u:{SECRET}@h",
    f"postgresql://u:{SECRET}@h:x/db",
    f"postgres:/u:{SECRET}@h/db",
]


@pytest.mark.parametrize("url", MISTYPED)
def test_a_mistyped_url_shows_no_password(url: str) -> None:
    good = {"url": "mysql://db/", "tables": ["shop.*"]}
    sources = [good | {"name": "a"}, good | {"name": "b", "url": url}]
    assert SECRET not in said(lambda: feed_options({"source": {**good, "url": url}}))
    assert SECRET not in said(lambda: feed_options({"source": sources}))
    for sink in {"url": url}, {"urls": [url, url + "2"]}:
        assert SECRET not in said(lambda: open_sinks(feed_options({"source": good, "sink": [sink]})))  # noqa: B023
    assert SECRET not in said(lambda: read_options({"source": url, "tables": "shop.*"}))


def said(make: Callable[[], object]) -> str:
    """Return the error's message, or the result's repr."""
    try:
        return repr(make())
    except ConfigError as error:
        return str(error)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://u:p@ss@db:3306/x", "mysql://…@db:3306/x"),
        ("mysql:/u:p@db", "mysql:/…@db"),
        ("u:p@db", "u:…@db"),
        ("me@db", "…@db"),
        ("postgresql://db/x?password=abc&sslmode=require", "postgresql://db/x?password=…&sslmode=require"),
        ("orders.db", "orders.db"),
    ],
)
def test_a_url_is_shown_without_its_login(url: str, shown: str) -> None:
    assert redacted(url) == shown


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:p@db:x/", "'x', the port of db, is not a number from 1 to 65535"),
        ("mysql://u:p@db:99999", "'99999', the port of db, is not a number from 1 to 65535"),
        ("mysql://u:p/w@db:3306", "percent-encode it"),
        (
            "mysql://db:x",
            "the port of 'db' is not a number from 1 to 65535; if that is a user with a password",
        ),
    ],
)
def test_a_bad_port_is_called_one(url: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        feed_options({"source": {"url": url, "tables": ["shop.*"]}})
    assert message in str(refused.value)


def test_options_have_no_secret_in_their_repr() -> None:
    registry = f"http://u:{SECRET}@registry:8081"
    keys = {"access_key": SECRET, "session_token": SECRET}
    kafka = {
        "url": f"kafka://u:{SECRET}@db/topic",
        "format": "avro",
        "encoding": {"schema-registry": registry},
    }
    sinks = [
        {"name": "a", "url": f"mysql://u:{SECRET}@db/"},
        {"name": "b", **kafka},
        {"name": "c", "url": "s3://bucket/x", "secret_key": SECRET, **keys},
        {"name": "d", "url": f"postgresql://u:{SECRET}@db/x"},
    ]
    section = {"url": f"mysql://u:{SECRET}@db", "tables": ["shop.*"]}
    options = feed_options({"source": section, "sink": sinks})
    several = feed_options({"source": [section | {"name": "a"}, section | {"name": "b"}]})
    assert SECRET not in repr(options) + repr(several)
    assert SECRET not in repr([(sink.given, sink.given.options) for sink in options.sinks])
    assert SECRET not in repr(MysqlOptions(password=SECRET))
    spark = {"source": section["url"], "tables": "shop.*", "source.password": SECRET}
    assert SECRET not in repr(read_options(spark))
    assert options.source.options.password == SECRET


def test_the_lock_of_a_scratch_directory_names_a_process_only(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tidemill", "run", "--source", f"mysql://u:{SECRET}@db"])
    scratch = Scratch(tmp_path / "new" / "scratch")
    lock = tmp_path / "new" / "scratch" / "tidemill.lock"
    assert lock.read_text() == f"pid {os.getpid()}"
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    assert stat.S_IMODE(lock.parent.stat().st_mode) == 0o700
    scratch.close()


def test_the_data_directory_is_for_its_user_only(tmp_path: Path) -> None:
    source = {"url": "mysql://db/", "tables": ["shop.*"]}
    options = feed_options({"data_dir": str(tmp_path / "above" / "state"), "source": source})
    make_data_dir(options)
    assert stat.S_IMODE(options.data_dir.stat().st_mode) == 0o700
    options.data_dir.chmod(0o750)  # the choice of whoever made it stays
    make_data_dir(options)
    assert stat.S_IMODE(options.data_dir.stat().st_mode) == 0o750


@pytest.mark.parametrize("written", ["${OOPS", "a${OOPS", "${OOPS-x}", "${", "${}", "${1}", "x${A}${B"])
def test_a_variable_that_is_not_closed_is_an_error(tmp_path: Path, monkeypatch, written: str) -> None:
    monkeypatch.setenv("A", "a")
    file = tmp_path / "feed.toml"
    file.write_text(f"[source]\npassword = '{written}{SECRET}'\n")
    with pytest.raises(ConfigError, match=r"^source\.password: \$\{ begins a variable") as refused:
        read(file)
    assert SECRET not in str(refused.value)


def test_a_doubled_dollar_is_the_sign_itself(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("A", "a")
    file = tmp_path / "feed.toml"
    file.write_text("[source]\npassword = '$${OOPS$${A}${A}$$5$'\n")
    assert read(file) == {"source": {"password": "${OOPS${A}a$$5$"}}
