"""A whole feed, from a cluster into messages: definitions and the rows that refer to them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.feed_run import run_to_end


def follow(tidb: Tidb, tmp_path: Path) -> list[Any]:
    """Run until the source's present end; return the lines that came."""
    path = tmp_path / "rows"
    before = len(path.read_text().splitlines()) if path.exists() else 0
    config = {
        "data_dir": str(tmp_path / "state"),
        "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
        "sink": [{"url": f"file://{path}?format=simple"}],
    }
    run_to_end(config, [])
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in found[before:] if line["type"] != "WATERMARK"]


def version(line: Any) -> int:
    found: int = line["tableSchema"]["version"]
    return found


def test_rows_of_simple_have_the_version_of_their_definition(tmp_path: Path) -> None:
    with Tidb(stores=1) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.t (id bigint primary key, b tinyint(1))")
        with tidb.transaction() as txn:
            txn.insert("shop.t", {"id": 1, "b": 1})
        loaded, first = follow(tidb, tmp_path)
        assert (loaded["type"], version(loaded)) == ("BOOTSTRAP", first["schemaVersion"])
        assert loaded["tableSchema"]["columns"][1]["dataType"]["length"] == 1

        with tidb.transaction() as txn:
            txn.insert("shop.t", {"id": 2, "b": 0})
        tidb.execute("alter table shop.t add column c int")
        with tidb.transaction() as txn:
            txn.insert("shop.t", {"id": 3, "b": 0, "c": 4})
        told, second, altered, third = follow(tidb, tmp_path)
        assert (told["type"], version(told)) == ("BOOTSTRAP", version(loaded))
        assert second["schemaVersion"] == version(loaded)
        assert altered["preTableSchema"]["version"] == version(loaded)
        assert third["schemaVersion"] == version(altered) != version(loaded)

        tidb.execute("alter table shop.t drop column c")
        with tidb.transaction() as txn:
            txn.insert("shop.t", {"id": 4, "b": 0})
        altered, fourth = follow(tidb, tmp_path)
        assert "preTableSchema" not in altered  # as this run had no row or statement of the table before
        assert version(altered) == fourth["schemaVersion"] == version(loaded)


def test_statements_without_effect_on_rows_are_messages(tmp_path: Path) -> None:
    statements = ["create index by_b on shop.t (b)", "drop index by_b on shop.t"]
    with Tidb(stores=1) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.t (id bigint primary key, b tinyint(1))")
        follow(tidb, tmp_path)
        for statement in statements:
            tidb.execute(statement)
        found = follow(tidb, tmp_path)
    assert [(line["type"], line["sql"]) for line in found] == list(
        zip(["CINDEX", "DINDEX"], statements, strict=True)
    )
    assert all([column["name"] for column in line["tableSchema"]["columns"]] == ["id", "b"] for line in found)
