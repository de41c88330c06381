"""One stream of several tables into several copies."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        for name, frame in tables.items():
            merge_parquet(frame, f"{tmp_path}/{name}", key=tables.primary_key(name), batch=number)
        target = tables.raw.write.format("tidemill").mode("append").option("sink", f"file://{file}")
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
    assert sum(len(one.read_text().splitlines()) for one in file.glob("*.ndjson")) == 9
    assert connections == [0, 0]
