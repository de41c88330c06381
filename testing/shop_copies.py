"""Two copies of the shop, in SQLite and in a second schema: their progress, and how they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import shop
from .compare import CopyComparison, compare, mariadb_rows, postgres_rows, source_columns, sqlite_rows
from .following import until_all_at
from .mariadb import MariaDb
from .postgres import PostgreSql
from .prepared import Process

COPY = "shop_copy"
"""The second schema."""


def until_caught_up(state: Path, server: MariaDb, process: Process) -> None:
    """Wait until every sink of the feed of this process is where the source's log ends now."""
    end = log_end(server)
    until_all_at(state, process, lambda position: place(position) >= end)


def log_end(server: MariaDb) -> tuple[str, int]:
    row: Any = server.execute("SHOW MASTER STATUS")[0]
    return row[0], int(row[1])


def place(position: str) -> tuple[str, int]:
    file, _, offset = position.partition(" ")[0].rpartition(":")
    return file, int(offset or 0)


def compare_copies(
    sqlite_path: Path,
    server: MariaDb,
    schema: str = "shop",
    copy: str = COPY,
    postgres: PostgreSql | None = None,
) -> CopyComparison:
    """All targets against the source."""
    with server.connect() as connection:
        columns = {table: source_columns(connection, schema, table) for table in shop.TABLES}
    pairs = {}
    for table, listed in columns.items():
        source = mariadb_rows(server.connect, schema, table, listed)
        pairs[f"{table} in SQLite"] = (source, sqlite_rows(sqlite_path, f"{schema}.{table}", listed))
        pairs[f"{table} in MariaDB"] = (source, mariadb_rows(server.connect, copy, table, listed))
        if postgres is not None and table != "every_type":  # it has texts with NUL
            rows = postgres_rows(postgres.connect, schema, table, listed)
            pairs[f"{table} in PostgreSQL"] = (source, rows)
    return compare(pairs)
