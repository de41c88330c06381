"""`init` without a MariaDB."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.chain.selection.tables import TablePatterns, exactly
from tidemill.config import read_as_written
from tidemill.config.secrets import with_variables
from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.child import CLI
from tidemill.testing.progress import completed


def test_the_file_of_a_tidb_runs(tmp_path: Path) -> None:
    def call(*arguments: str) -> str:
        done = completed([*CLI, *arguments], cwd=tmp_path, env=dict(os.environ))
        assert done.returncode == 0, done
        return done.stdout

    with Tidb(stores=1, tick_seconds=0.02) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.item (id int primary key)")
        transaction = tidb.transaction()
        for number in 1, 2:
            transaction.insert("shop.item", (number,))
        transaction.commit()
        said = call("init", f"tikv://{tidb.pd_address}")
        assert said.startswith("feed.toml is written: it follows 1 table\n")
        document = read_as_written(tmp_path / "feed.toml")
        assert (document["name"], document["source"]["tables"]) == ("shop", ["shop.*"])
        call("check", "feed.toml")
        call("run", "feed.toml", "--until", "now")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
        assert copy.execute('SELECT * FROM "shop.item"').fetchall() == [(1,), (2,)]


def test_a_file_is_never_replaced(call, tmp_path: Path) -> None:
    path = tmp_path / "feed.toml"
    path.write_text("mine")
    said = f"tidemill: {path} exists already: name another file with --out, or remove it\n"
    assert call("init", "mysql://db", "--out", path) == (2, "", said)
    assert path.read_text() == "mine"


def test_nothing_is_written_of_a_server_that_does_not_answer(call, tmp_path: Path) -> None:
    path = tmp_path / "feed.toml"
    status, _, error = call("init", "mysql://root@127.0.0.1:1", "--out", path)
    assert (status, path.exists()) == (1, False)
    assert error.startswith("tidemill: 127.0.0.1:1: Can't connect to MySQL server")


NAMES = [
    "a",
    "a$b",
    "a-b",
    "å",
    "a.b",
    "a*",
    "a?",
    "[a]",
    "!a",
    "~a",
    "a b",
    " a",
    "/a/",
    "a\\d",
    "a\n",
    "日本",
    "${a}",
]


@pytest.mark.parametrize("name", NAMES)
def test_an_exact_pattern_chooses_one_table(name: str) -> None:
    others = {"b", "aa", "ab", "a0", f"{name}b"} - {name}
    for schema, table in ((name, "t.u"), ("s", name), (name, name)):
        patterns = TablePatterns.parse([exactly(schema, table)])
        assert patterns.matches(schema, table)
        assert not any(patterns.matches(schema, other) or patterns.matches(other, table) for other in others)
        assert TablePatterns.parse([exactly(schema)]).matches(schema, "any.thing")


@pytest.mark.parametrize(
    ("url", "written", "secrets"),
    [
        ("mysql://u:p%40@h", "mysql://u:${SINK_PASSWORD}@h", {"SINK_PASSWORD": "p%40"}),
        ("mysql://u:${P}@h", "mysql://u:${P}@h", {}),
        ("mysql://u@h", "mysql://u@h", {}),
        (
            "kafka://h/t?sasl_password=a",
            "kafka://h/t?sasl_password=${SINK_SASL_PASSWORD}",
            {"SINK_SASL_PASSWORD": "a"},
        ),
    ],
)
def test_variables_take_the_place_of_secrets(url: str, written: str, secrets: dict[str, str]) -> None:
    assert with_variables(url, "sink") == (written, secrets)
