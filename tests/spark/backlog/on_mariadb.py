"""The workload in a MariaDB."""

from __future__ import annotations

from collections.abc import Iterable

from pymysql.constants import CLIENT

from tidemill.testing.mariadb import MariaDb

from .workload import DELETE, INSERT, TABLES, Statement, Workload

_NAME = "CONCAT('row ', {v}, ' ', REPEAT('x', {v} % 50))"
_PRICE = "{v} % 100000 + 0.25"
_SENT_BYTES = 1 << 18


def create(server: MariaDb, schema: str) -> None:
    server.execute(
        f"CREATE DATABASE {schema}",
        *(
            f"CREATE TABLE {schema}.{table} (id BIGINT PRIMARY KEY, v BIGINT NOT NULL, "
            "price DECIMAL(12,2), name VARCHAR(80))"
            for table in TABLES
        ),
    )


def write(server: MariaDb, schema: str, transactions: Iterable[list[Statement]]) -> None:
    """Commit the transactions, many of them in one packet."""
    with server.connect(database=schema, client_flag=CLIENT.MULTI_STATEMENTS) as connection:
        sent: list[str] = []
        for transaction in transactions:
            sent += ["BEGIN", *map(_sql, transaction), "COMMIT"]
            if len(sent) > 1000:
                _send(connection, sent)
        _send(connection, sent)


def _send(connection, sent: list[str]) -> None:
    with connection.cursor() as cursor:
        if sent:
            cursor.execute(";".join(sent))
            while cursor.nextset():
                pass
    sent.clear()


def _sql(statement: Statement) -> str:
    table, (_, op, first, end, version) = TABLES[statement.table], statement
    if op == DELETE:
        return f"DELETE FROM {table} WHERE id >= {first} AND id < {end} ORDER BY id"
    if op == INSERT:
        v = f"(seq + {version - first})"
        rows = f"seq, {v}, {_PRICE.format(v=v)}, {_NAME.format(v=v)} FROM seq_{first}_to_{end - 1}"
        return f"INSERT INTO {table} SELECT {rows}"
    return (
        f"SET @v = {version - 1}; UPDATE {table} SET v = (@v := @v + 1), price = {_PRICE.format(v='v')}, "
        f"name = {_NAME.format(v='v')} WHERE id >= {first} AND id < {end} ORDER BY id"
    )


def position(server: MariaDb) -> str:
    """Return the end of the binlog."""
    file, offset, *_ = server.execute("SHOW MASTER STATUS")[0]
    return f"{file}:{offset}"


def check(server: MariaDb, schema: str, workload: Workload) -> None:
    """The tables have the workload's rows."""
    with server.connect(database=schema) as connection, connection.cursor() as cursor:
        for number, table in enumerate(TABLES):
            ids, versions = workload.rows_of(number)
            wrong = f"name <> {_NAME.format(v='v')} OR price <> {_PRICE.format(v='v')}"
            cursor.execute(f"SELECT COUNT(*), SUM(v), SUM(id * v), SUM({wrong}) FROM {table}")
            assert cursor.fetchone() == (len(ids), int(versions.sum()), int((ids * versions).sum()), 0)
