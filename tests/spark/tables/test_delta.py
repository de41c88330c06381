"""A stream merged into Delta tables: the recipe of docs/how-to/spark-tables.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.spark.tables import TypedTables, by_table, merge_into, side_by_side
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client

from ..job import completed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_delta_tables_follow_rows_and_schema_changes(
    spark: SparkSession, delta_jars: list[str], sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    schema = sql.database
    sql(
        "CREATE TABLE item (a INT, b VARCHAR(9), note TEXT, price DECIMAL(10,2), PRIMARY KEY (a, b))",
        "INSERT INTO item SELECT seq, 'x', CONCAT('note ', seq), seq / 4 FROM seq_1_to_20",
        "CREATE TABLE pair (id INT PRIMARY KEY, n INT)",
        "INSERT INTO pair VALUES (1, 1), (2, 2)",
    )
    position = ":".join(str(part) for part in sql("SHOW MASTER STATUS")[0][:2])
    for name in ("item", "pair"):
        rows = (
            spark.read.format("tidemill").option("source", mariadb.url()).option("table", f"{schema}.{name}")
        )
        loaded = rows.load()
        loaded.select("after.*").limit(0).write.format("delta").save(f"{tmp_path}/{schema}.{name}")
        merge_into(loaded, f"delta.`{tmp_path}/{schema}.{name}`", batch=0)
    sql(
        "INSERT INTO item VALUES (100, 'n', 'new', 1.25), (101, 'n', NULL, NULL)",
        "UPDATE item SET note = 'changed' WHERE a % 3 = 0",
        "DELETE FROM item WHERE a % 5 = 0",
        "UPDATE item SET a = a + 1000 WHERE a % 7 = 0",
        "INSERT INTO item VALUES (5, 'x', 'again', 0)",
        "ALTER TABLE item ADD COLUMN state INT NOT NULL DEFAULT 7",
        "UPDATE pair SET n = 3 WHERE id = 1",
        "INSERT INTO item VALUES (6, 'y', 'more', 0, 9)",
        "ALTER TABLE item RENAME COLUMN note TO text",
        "UPDATE item SET text = 'after' WHERE a = 3",
        "ALTER TABLE item DROP COLUMN price",
        "DELETE FROM item WHERE a = 4",
        "TRUNCATE TABLE pair",
        "INSERT INTO pair VALUES (4, 4)",
    )

    def write(tables: TypedTables, number: int) -> None:
        side_by_side(
            tables.changes,
            lambda changes: merge_into(changes, f"delta.`{tmp_path}/{changes.name}`", batch=number + 1),
        )

    stream = (
        spark.readStream.format("tidemill")
        .option("source", mariadb.url())
        .option("tables", f"{schema}.*")
        .option("values", "none")
        .option("startingPosition", position)
        .option("maxRowsPerBatch", 20)
        .load()
    )
    writer = stream.writeStream.foreachBatch(by_table(write)).trigger(availableNow=True)
    completed(writer.option("checkpointLocation", f"{tmp_path}/checkpoint").start)
    for name in ("item", "pair"):
        copy = spark.table(f"delta.`{tmp_path}/{schema}.{name}`")
        names = ", ".join(copy.columns)
        there = [tuple(map(str, row)) for row in sql(f"SELECT {names} FROM {name}")]
        assert sorted(tuple(map(str, row)) for row in copy.collect()) == sorted(there)
        assert {*copy.columns} == {str(row[0]) for row in sql(f"SHOW COLUMNS FROM {name}")}
