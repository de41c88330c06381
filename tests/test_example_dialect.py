"""The example of a database of your own: once installed it is a sink, is compared, and Spark writes to it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tidemill.emulator.sql.sql import Tidb

from .installed import ROOT, install, run


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install("dialect", tmp_path_factory.mktemp("dialect"))


def test_it_passes_the_suites(installed: Path, mariadb_template: Path) -> None:
    suites = ["sink/test_dialects.py", "services/test_diff.py", "spark/test_writer_attempts.py"]
    files = [f"tests/{suite}" for suite in suites]
    done = run(installed, "pytest", "-q", "-m", "not soak", "-k", "Typeless", *files, cwd=ROOT, seconds=600)
    assert done.returncode == 0, done.stdout[-5000:]
    found = re.search(r"^(\d+) passed, \d+ deselected", done.stdout, re.MULTILINE)
    assert found is not None, done.stdout
    assert int(found[1]) > 80


def test_rows_of_a_cluster_go_into_it_and_are_compared(installed: Path, tmp_path: Path) -> None:
    file = tmp_path / "copy.db"
    with Tidb(stores=1) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.item (id bigint primary key, name varchar(40))")
        with tidb.transaction() as txn:
            txn.insert("shop.item", {"id": 1, "name": "one"})
            txn.insert("shop.item", {"id": 2, "name": None})
        config = tmp_path / "feed.toml"
        config.write_text(
            f'[source]\nurl = "tikv://{tidb.pd_address}"\ntables = ["shop.*"]\n'
            f'[[sink]]\nurl = "typeless:///{file}"\nseparator = "/"\n'
        )
        checked = run(installed, "tidemill.cli", "check", config, cwd=tmp_path)
        assert f"ok      sink sink-1: {file} will be made\n" in checked.stdout
        done = run(installed, "tidemill.cli", "run", config, "--until", "now", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        with closing(sqlite3.connect(file)) as connection, connection:
            assert list(connection.execute("SELECT * FROM `shop/item` ORDER BY id")) == [
                (1, "one"),
                (2, None),
            ]
            connection.execute("UPDATE `shop/item` SET name = 'two' WHERE id = 2")
        compared = run(installed, "tidemill.cli", "diff", config, cwd=tmp_path)
        assert compared.returncode == 1, compared.stderr
        assert "id=2: name is NULL in the source, 'two' in the target" in compared.stdout


def test_what_it_accepts_is_said(installed: Path, tmp_path: Path) -> None:
    sink = ["--sink", "typless:///x.db", "--table", "a.*"]
    done = run(installed, "tidemill.cli", "run", "--source", "tikv://pd:2379", *sink, cwd=tmp_path)
    assert done.returncode == 2
    assert "typeless:///file" in done.stderr
