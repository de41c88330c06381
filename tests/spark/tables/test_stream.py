"""One stream of several tables into several copies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from tidemill.spark.tables import TypedTables, by_table, merge_parquet, merged_parquet
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client

from ..job import completed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_copies_of_several_tables_follow_one_read_of_the_log(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    schema, file = sql.database, tmp_path / "rows"
    sql("CREATE TABLE item (id INT PRIMARY KEY, note VARCHAR(9))")
    sql("CREATE TABLE pair (a INT, b INT, price DECIMAL(6,2), PRIMARY KEY (a, b))")
    connections: list[int] = []

    def opened() -> int:
        found: Any = sql("SHOW GLOBAL STATUS LIKE 'Connections'")
        return int(found[0][1])

    def write(tables: TypedTables, number: int) -> None:
        before = opened()
        for name, changes in tables.changes.items():
            merge_parquet(changes, f"{tmp_path}/{name}", batch=number)
        target = (
            tables.raw.write.format("tidemill")
            .mode("append")
            .option("sink", f"directory://{file}?format=ndjson")
        )
        target.save()
        connections.append(opened() - before)

    start = ":".join(str(part) for part in sql("SHOW MASTER STATUS")[0][:2])
    sql("INSERT INTO item VALUES (1, 'a'), (2, 'b'), (3, 'c')", "INSERT INTO pair VALUES (1, 1, 2.50)")
    sql("ALTER TABLE item ADD COLUMN more INT", "UPDATE item SET note = 'A', more = 7 WHERE id = 1")
    sql("DELETE FROM item WHERE id = 2", "UPDATE item SET id = 4 WHERE id = 3", "UPDATE pair SET b = 2")
    reader = spark.readStream.format("tidemill").option("source", mariadb.url()).option("values", "none")
    reader = reader.option("startingPosition", start).option("maxRowsPerBatch", 4)
    writer = reader.option("tables", f"{schema}.*").load().writeStream.foreachBatch(by_table(write))
    completed(writer.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True).start)
    for table in ("item", "pair"):
        rows = merged_parquet(spark, f"{tmp_path}/{schema}.{table}").collect()
        assert sorted(map(tuple, rows)) == sorted(map(tuple, sql(f"SELECT * FROM {table}")))
    assert sum(len(one.read_text().splitlines()) for one in file.glob("table=*/*/*.ndjson")) == 9
    assert connections == [0, 0]


def test_a_copy_follows_the_schema_changes_of_its_table(
    spark: SparkSession, sql: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    path = f"{tmp_path}/item"
    sql("CREATE TABLE item (id INT PRIMARY KEY, note VARCHAR(10), old INT)")
    sql("INSERT INTO item VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    start = ":".join(str(part) for part in sql("SHOW MASTER STATUS")[0][:2])
    reader = spark.read.format("tidemill").option("source", mariadb.url())
    merge_parquet(reader.option("table", f"{sql.database}.item").load(), path, batch=0)
    stream = spark.readStream.format("tidemill").option("source", mariadb.url()).option("values", "none")
    stream = stream.option("startingPosition", start).option("tables", f"{sql.database}.item")

    def write(tables: TypedTables, number: int) -> None:
        for changes in tables.changes.values():
            merge_parquet(changes, path, batch=number + 1)

    def follow(*statements: str) -> None:
        sql(*statements)
        writer = stream.load().writeStream.foreachBatch(by_table(write))
        writer = writer.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True)
        completed(writer.start)
        rows = merged_parquet(spark, path)
        names = ", ".join(rows.columns)
        assert sorted(map(tuple, rows.collect())) == sorted(map(tuple, sql(f"SELECT {names} FROM item")))
        assert set(rows.columns) == {str(row[0]) for row in sql("SHOW COLUMNS FROM item")}

    follow(
        "UPDATE item SET old = 7 WHERE id = 1",
        "ALTER TABLE item ADD COLUMN more INT NOT NULL DEFAULT 7",
        "INSERT INTO item VALUES (4, 'd', 4, 9)",
    )
    follow("ALTER TABLE item MODIFY note VARCHAR(40)", "ALTER TABLE item MODIFY old BIGINT")
    follow("INSERT INTO item VALUES (5, 'longer than before', 5, 5)")
    follow(
        "UPDATE item SET note = 'changed' WHERE id = 2",
        "ALTER TABLE item RENAME COLUMN note TO text, DROP COLUMN old",
        "UPDATE item SET text = 'changed too' WHERE id = 3",
    )
    follow("TRUNCATE TABLE item", "INSERT INTO item VALUES (6, 'new', 1)")
    sql("ALTER TABLE item MODIFY text VARCHAR(4)", "INSERT INTO item VALUES (7, 'more', 1)")
    writer = stream.load().writeStream.foreachBatch(by_table(write))
    writer = writer.option("checkpointLocation", f"{tmp_path}/checkpoint").trigger(availableNow=True)
    with pytest.raises(
        StreamingQueryException, match=r"column text: its values may not stay the same from varchar"
    ):
        completed(writer.start)
    assert [row.text for row in merged_parquet(spark, path).collect()] == ["new"]
