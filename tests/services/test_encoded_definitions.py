"""Definitions of tables and statements about them in messages, from a MariaDB to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidemill.testing.feed_run import run_to_end
from tidemill.testing.mariadb import MariaDb

STATEMENTS = (
    "CREATE INDEX by_b ON t (b)",
    "ALTER TABLE t COMMENT = 'more'",
    "DROP INDEX by_b ON t",
    "ALTER TABLE t ADD c DOUBLE(12,4)",
    "INSERT INTO t (id, b, c) VALUES (2, 1, 1.5)",
)


@pytest.fixture
def config(mariadb: MariaDb, database: str, tmp_path: Path, sql: Any) -> dict[str, Any]:
    """A feed of a table with a row; each of its sinks is a file of its format."""
    sql("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, b TINYINT(1), f FLOAT(7,3), n INT AS (b + 1))")
    sql("INSERT INTO t (b, f) VALUES (1, 1.25)")
    encodings: dict[str, dict[str, Any]] = {
        "canal-json": {"content-compatible": True},
        "debezium": {"debezium-disable-schema": True},
        "simple": {},
    }
    return {
        "data_dir": str(tmp_path / "state"),
        "source": {"url": mariadb.url(), "tables": [f"{database}.*"]},
        "sink": [
            {"name": name, "url": f"file://{tmp_path / name}", "format": name, "encoding": encoding}
            for name, encoding in encodings.items()
        ],
    }


def lines(tmp_path: Path, encoding: str) -> list[Any]:
    return [json.loads(line) for line in (tmp_path / encoding).read_text().splitlines()]


def test_statements_without_effect_on_rows_are_messages(
    config: dict[str, Any], tmp_path: Path, sql: Any
) -> None:
    run_to_end(config, [])
    for statement in STATEMENTS:
        sql(statement)
    run_to_end(config, [])
    assert [(one["type"], one["sql"]) for one in lines(tmp_path, "canal-json") if one["isDdl"]] == [
        ("CINDEX", STATEMENTS[0]),
        ("ALTER", STATEMENTS[1]),
        ("DINDEX", STATEMENTS[2]),
        ("ALTER", STATEMENTS[3]),
    ]


def test_a_transformed_table_has_no_messages_of_its_definition(
    config: dict[str, Any], tmp_path: Path, sql: Any, database: str
) -> None:
    config["transform"] = [{"tables": [f"{database}.t"], "drop": ["f"]}]
    run_to_end(config, [])
    for statement in STATEMENTS:
        sql(statement)
    run_to_end(config, [])
    assert [one["sql"] for one in lines(tmp_path, "canal-json") if one["isDdl"]] == [STATEMENTS[3]]
    [altered] = [one for one in lines(tmp_path, "simple") if "sql" in one]
    assert "tableSchema" not in altered  # the table before it isn't known


def test_types_are_those_of_the_definition(config: dict[str, Any], tmp_path: Path, sql: Any) -> None:
    run_to_end(config, [])
    for statement in STATEMENTS:
        sql(statement)
    run_to_end(config, [])
    last = [one for one in lines(tmp_path, "canal-json") if not one["isDdl"]][-1]
    assert last["mysqlType"] == {
        "id": "int(11)", "b": "tinyint(1)", "f": "float(7,3)", "n": "int(11)", "c": "double(12,4)",
    }  # fmt: skip


def test_debezium_has_the_tables_after_a_restart(config: dict[str, Any], tmp_path: Path, sql: Any) -> None:
    run_to_end(config, [])
    for statement in STATEMENTS:
        sql(statement)
    run_to_end(config, [])
    changes = [
        one["payload"]["tableChanges"][0]
        for one in lines(tmp_path, "debezium")
        if "tableChanges" in one["payload"]
    ]
    assert [change["type"] for change in changes] == ["ALTER", "ALTER", "DROP", "ALTER"]
    columns = {column["name"]: column for column in changes[-1]["table"]["columns"]}
    assert columns["id"]["autoIncremented"]
    assert (columns["b"]["jdbcType"], columns["b"]["length"]) == (5, 1)
    assert (columns["c"]["typeExpression"], columns["c"]["scale"]) == ("DOUBLE(12,4)", 4)


def test_rows_of_simple_follow_the_definition_of_their_version(
    config: dict[str, Any], tmp_path: Path, sql: Any
) -> None:
    run_to_end(config, [])
    for statement in STATEMENTS:
        sql(statement)
        run_to_end(config, [])
    known: dict[int, set[str]] = {}
    rows = 0
    for line in lines(tmp_path, "simple"):
        if schema := line.get("tableSchema"):
            known[schema["version"]] = {column["name"] for column in schema["columns"]}
        if "data" in line:
            rows += 1
            assert line["data"].keys() == known[line["schemaVersion"]]
    assert rows == 2
