"""A consumer in Java, with other libraries, that rebuilds tables from canal-json and from Avro."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidemill.testing.feed_run import run_to_end
from tidemill.testing.java_consumer import JavaConsumer
from tidemill.testing.kafka import Kafka
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.schema_registry import schema_registry

TABLE = """CREATE TABLE t (
    id INT, code VARCHAR(20) COLLATE utf8mb4_bin, big BIGINT, price DECIMAL(12,3), note TEXT, at DATETIME(3),
    raw VARBINARY(9), small TINYINT UNSIGNED, PRIMARY KEY (id, code))"""
ROWS = r"""INSERT INTO t VALUES
    (1, 'a', -9223372036854775808, 123456789.125, 'ß 😀 "q" \\ \n', '2026-01-31 10:00:00.5', X'00FF61', 255),
    (2, 'Ä', NULL, -0.001, NULL, NULL, NULL, NULL), (3, '', 0, 0, '', '1000-01-01', '', 0),
    (4, 'd', 9223372036854775807, 1, 'x', '9999-12-31 23:59:59.999', X'80', 1)"""
CHANGES = [
    "UPDATE t SET note = CONCAT(IFNULL(note, ''), '…'), small = 7 WHERE id < 3",
    "UPDATE t SET id = id + 100 WHERE id IN (1, 4)",
    "DELETE FROM t WHERE id = 3",
    "INSERT INTO t SELECT seq, CONCAT('n', seq), seq, seq / 7, REPEAT('é', seq), NULL, CHAR(seq), 0"
    " FROM seq_200_to_240",
    "UPDATE t SET code = UPPER(code) WHERE id % 3 = 0",
    "ALTER TABLE t ADD COLUMN more VARCHAR(9)",
    "UPDATE t SET more = 'new', id = id - 1 ORDER BY id LIMIT 10",
    "DELETE FROM t WHERE id > 230",
]


def test_a_consumer_in_java_rebuilds_the_table_from_canal_json_and_from_avro(
    consumer_in_java: JavaConsumer, mariadb: MariaDb, database: str, kafka_server: Kafka, tmp_path: Path
) -> None:
    client = Client(mariadb, database)
    client(TABLE)
    client(ROWS)
    topics = {name: f"{database}_{name.replace('-', '_')}" for name in ("canal-json", "avro")}
    common: dict[str, Any] = {"partition": "key", "partitions": 3}
    with schema_registry() as registry:
        config = {
            "source": {"url": mariadb.url(), "tables": [f"{database}.*"]},
            "data_dir": str(tmp_path),
            "name": database,
            "sink": [
                {"name": name, "url": kafka_server.url(topic), "format": name, **common}
                for name, topic in topics.items()
            ],
        }
        config["sink"][1]["encoding"] = {"schema-registry": registry.url}
        run_to_end(config, [])
        for statement in CHANGES:
            client(statement)
        run_to_end(config, [])
        wanted = [f"{name}:{topic}" for name, topic in topics.items()]
        found = consumer_in_java.rebuilt(kafka_server.brokers, registry.url, *wanted)
    columns = sorted(["id", "code", "big", "price", "note", "at", "raw", "small", "more"])
    texts = ["LOWER(HEX(raw))" if name == "raw" else f"CAST({name} AS CHAR)" for name in columns]
    rows = [dict(zip(columns, row, strict=True)) for row in client(f"SELECT {', '.join(texts)} FROM t")]
    assert len(rows) > 30
    for topic in wanted:
        assert without_null(found[topic]) == without_null(rows), topic


def without_null(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows in an order, without NULL: messages before the new column don't have it."""
    return sorted(({name: text for name, text in row.items() if text is not None} for row in rows), key=str)
