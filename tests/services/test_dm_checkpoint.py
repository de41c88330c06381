"""The position of a feed in DM's checkpoint: as DM finds it, and as DM leaves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidemill.dialects.options import MySqlOptions
from tidemill.errors import CheckpointError, ConfigError, SinkError
from tidemill.sink.dm.table import COLUMNS
from tidemill.testing.feed_run import run_to_end
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.mysql import MySql

from .twins import TABLES, Twins

POINT = "id, cp_schema, cp_table, binlog_name, binlog_pos, is_global"


class Task:
    """A feed between two schemas of one server, whose task has the name of the first one."""

    def __init__(self, server: MariaDb, schema: str, directory: Path) -> None:
        self.server = server
        self.schema = schema
        self.copy = f"{schema}_copy"
        self.table = f"dm_meta.{schema}_syncer_checkpoint"
        self.sink: dict[str, Any] = {
            "name": "copy", "url": server.url(), "schema": self.copy, "checkpoint": "dm", "task": schema,
        }  # fmt: skip
        self.config: dict[str, Any] = {
            "name": "feed",
            "data_dir": str(directory / "state"),
            "source": {"url": server.url(), "tables": [f"{schema}.*"]},
            "sink": [self.sink],
        }
        self.loads: list[str] = []

    def execute(self, *statements: str, schema: str = "") -> list[tuple[Any, ...]]:
        return self.server.execute(*statements, database=schema or self.schema)

    def place(self) -> tuple[str, int]:
        ((file, offset, *_),) = self.execute("SHOW MASTER STATUS")
        return file, offset

    def run(self) -> None:
        run_to_end(self.config, self.loads)

    def same(self, *tables: str) -> None:
        for table in tables:
            query = f"SELECT * FROM {{}}.{table} ORDER BY 1"
            wanted = self.execute(query.format(self.schema))
            assert self.execute(query.format(self.copy)) == wanted

    def rows(self) -> list[tuple[Any, ...]]:
        return self.execute(f"SELECT {POINT} FROM {self.table} ORDER BY id, cp_schema, cp_table")


@pytest.fixture
def task(mariadb: MariaDb, database: str, tmp_path: Path) -> Iterator[Task]:
    task = Task(mariadb, database, tmp_path)
    task.execute(f"CREATE DATABASE {task.copy}")
    yield task
    task.execute(f"DROP DATABASE {task.copy}", f"DROP TABLE IF EXISTS {task.table}")


def test_dm_finds_the_position_after_the_last_transaction(task: Task) -> None:
    task.sink["source_id"] = "north"
    task.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    task.run()
    task.execute("INSERT INTO t VALUES (2)")
    end = task.place()
    task.run()
    ((id_, schema, table, *place, is_global),) = task.rows()
    assert (id_, schema, table, is_global) == ("north", "", "", 1)
    assert tuple(place) == end
    ((info, gtid, exit_name),) = task.execute(
        f"SELECT table_info, binlog_gtid, exit_safe_binlog_name FROM {task.table}"
    )
    assert (info, exit_name) == ("null", "")
    assert gtid.startswith("0-")


def left_by_dm(task: Task) -> None:
    """Make what a DM leaves that was killed after its table b was ahead, and that had applied more."""
    task.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, v INT)", "CREATE TABLE b LIKE a", "CREATE TABLE c LIKE a"
    )
    begin = task.place()
    task.execute("INSERT INTO a VALUES (1, 1), (2, 2)", "INSERT INTO b VALUES (1, 1)")
    task.execute("ALTER TABLE b ADD COLUMN more INT DEFAULT 3")
    ahead = task.place()
    task.execute(
        "UPDATE a SET v = 5 WHERE id = 2", "DELETE FROM a WHERE id = 1", "INSERT INTO b VALUES (2, 2, 2)"
    )
    end = task.place()
    task.execute("INSERT INTO a VALUES (3, 3)", "UPDATE b SET more = 9")
    task.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, v INT)",
        "CREATE TABLE c LIKE a",
        "INSERT INTO a VALUES (2, 5)",
        "CREATE TABLE b (id INT PRIMARY KEY, v INT, more INT DEFAULT 3)",
        "INSERT INTO b VALUES (1, 1, 3), (2, 2, 2)",
        "CREATE DATABASE IF NOT EXISTS dm_meta",
        f"CREATE TABLE {task.table} ({COLUMNS})",
        schema=task.copy,
    )
    for schema, table, at, exit_ in [("", "", begin, end), (task.schema, "b", ahead, None)]:
        task.execute(
            f"INSERT INTO {task.table} (id, cp_schema, cp_table, binlog_name, binlog_pos, "
            "exit_safe_binlog_name, exit_safe_binlog_pos, table_info, is_global) VALUES "
            f"('north', '{schema}', '{table}', '{at[0]}', {at[1]}, '{exit_[0] if exit_ else ''}', "
            f"{exit_[1] if exit_ else 0}, 'null', {int(not table)})"
        )


@pytest.mark.parametrize("is_known", [True, False], ids=["exit point", "no exit point"])
def test_a_feed_goes_on_where_dm_stopped(task: Task, is_known: bool) -> None:
    left_by_dm(task)
    if not is_known:
        task.execute(f"UPDATE {task.table} SET exit_safe_binlog_name = '', exit_safe_binlog_pos = 0")
    task.run()
    task.same("a", "b", "c")
    assert task.loads == []
    task.execute("INSERT INTO c VALUES (1, 1)", "UPDATE a SET v = v + 1")
    task.run()
    task.same("a", "b", "c")
    ((name,),) = task.execute(f"SELECT exit_safe_binlog_name FROM {task.table} WHERE is_global")
    assert name == ""
    kept = task.execute("SELECT feed FROM tidemill_checkpoint ORDER BY feed", schema=task.copy)
    assert kept == ([("feed",)] if is_known else [("feed",), ("feed dm",)])


def test_dm_may_go_on_in_between(task: Task) -> None:
    left_by_dm(task)
    task.run()
    begin = task.place()
    task.execute(
        "INSERT INTO a VALUES (7, 7)", "UPDATE a SET v = 8 WHERE id = 7", "DELETE FROM a WHERE id = 2"
    )
    end = task.place()
    task.execute("INSERT INTO a VALUES (7, 8)", "DELETE FROM a WHERE id = 2", schema=task.copy)
    task.execute(f"UPDATE {task.table} SET binlog_name = '{end[0]}', binlog_pos = {end[1]} WHERE is_global")
    assert begin != end
    task.execute("INSERT INTO a VALUES (9, 9)")
    task.run()
    task.same("a", "b", "c")


def test_dm_s_global_position_is_before_the_first_schema_change_that_waits(task: Task) -> None:
    task.sink["source_id"] = "north"
    task.config["route"] = [{"tables": [f"{task.schema}.item_*"], "target": "whole.item"}]
    for number in (1, 2, 3):
        task.execute(
            f"CREATE TABLE item_{number} (id INT PRIMARY KEY)", f"INSERT INTO item_{number} VALUES ({number})"
        )
    task.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    task.run()
    task.execute("INSERT INTO item_1 VALUES (10)")
    before = task.place()
    task.execute("ALTER TABLE item_1 ADD COLUMN c INT", "INSERT INTO item_2 VALUES (20)")
    task.execute("INSERT INTO item_1 VALUES (11, 1)", "INSERT INTO other VALUES (1)")
    end = task.place()
    task.run()
    kept = task.rows()
    assert kept == [
        ("north", "", "", *before, 1),
        ("north", task.schema, "item_1", *before, 0),
        ("north", task.schema, "item_2", *end, 0),
        ("north", task.schema, "other", *end, 0),
    ]
    task.run()
    assert task.rows()[:2] == kept[:2]
    assert all(now[4] > before[4] for now, before in zip(task.rows()[2:], kept[2:], strict=True))
    for number in (2, 3):
        task.execute(f"ALTER TABLE item_{number} ADD COLUMN c INT")
    end = task.place()
    task.run()
    assert task.rows()[0] == ("north", "", "", *end, 1)
    assert task.execute("SELECT * FROM item ORDER BY 1", schema=task.copy) == task.execute(
        "SELECT * FROM item_1 UNION ALL SELECT * FROM item_2 UNION ALL SELECT * FROM item_3 ORDER BY 1"
    )


def test_while_tables_are_loaded_dm_has_no_position(task: Task) -> None:
    task.sink["source_id"] = "north"
    task.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1)")
    task.run()
    assert len(task.rows()) == 1
    task.config["on_ddl"] = [
        {"tables": [f"{task.schema}.*"], "action": "resnapshot", "kinds": ["add column"]}
    ]
    task.execute("ALTER TABLE t ADD COLUMN c INT", "UPDATE t SET c = 7")
    task.run()
    task.same("t")
    assert len(task.loads) == 1
    assert len(task.rows()) == 1


def test_a_single_source_needs_its_id_in_dm(task: Task) -> None:
    task.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with pytest.raises(
        CheckpointError, match=r'^checkpoint = "dm": set source_id, the id of the source in DM'
    ):
        task.run()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"task": "t"}, r'^task and source_id are for checkpoint = "dm"'),
        ({"checkpoint": "dm", "source_id": "x" * 33}, "at most 32 characters"),
        ({"checkpoint": "dm", "workers": 4}, r'^checkpoint = "dm" is moved in commit order'),
    ],
)
def test_options_that_don_t_fit_are_refused(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        MySqlOptions(**options)


def test_dm_s_rows_alone_are_enough_to_go_on_with_several_sources(
    twins: Twins, mysql97: MySql, mysql_database: str
) -> None:
    copy, task = Client(mysql97, mysql_database), f"dm_meta.{twins.schema}_syncer_checkpoint"
    twins.sink = {
        "name": "copy", "url": mysql97.url(mysql_database), "checkpoint": "dm", "task": twins.schema,
    }  # fmt: skip
    twins.run()
    for name in twins.servers:
        twins.execute(name, "UPDATE item_1 SET v = 1", "DELETE FROM item_2 ORDER BY id LIMIT 1")
    twins.run()
    assert copy(f"SELECT id, is_global FROM {task} ORDER BY id") == [("north", 1), ("south", 1)]
    copy("DELETE FROM tidemill_checkpoint")
    for name in twins.servers:
        twins.execute(name, "UPDATE item_2 SET v = 2", "DELETE FROM item_1 ORDER BY id LIMIT 1")
    twins.run()
    assert copy("SELECT id, v FROM item ORDER BY id") == twins.union()
    for name in twins.servers:
        twins.execute(name, *(f"ALTER TABLE {table} ADD COLUMN c INT" for table in TABLES))
    twins.execute("south", "UPDATE item_1 SET c = 3")
    assert twins.run().status().locks == []
    assert copy("SELECT id, v, c FROM item ORDER BY id") == twins.union("id, v, c")
    copy("DELETE FROM tidemill_checkpoint")
    for name in twins.servers:
        twins.execute(name, *(f"ALTER TABLE {table} MODIFY c BIGINT" for table in TABLES))
    changed = r"^whole\.item can't be taken over: in the target it has column c as int.* in place of bigint"
    with pytest.raises(SinkError, match=changed):
        twins.run()
    copy(f"DROP TABLE {task}")
