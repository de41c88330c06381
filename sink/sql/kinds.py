"""Registry entries for SQL databases as sinks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...dialects.options import DuckDbOptions, MySqlOptions, PostgresOptions, SqliteOptions
from ..kind import ByRows, NotOnSpark, SinkKind


def _later(name: str) -> Callable[..., Any]:
    """Return a function of `opening` that imports it, with SQLAlchemy, at the first call."""

    def call(*arguments: Any) -> Any:
        from . import opening

        return getattr(opening, name)(*arguments)

    return call


SQLITE: Final = SinkKind(
    name="SQLite",
    schemes=("sqlite",),
    examples=("sqlite:///file",),
    options=SqliteOptions,
    open=_later("open_sqlite"),
    survey=_later("survey_sqlite"),
    on_spark=ByRows(opener="tidemill.spark.write.sql:open_sqlite"),
    dead_letters=_later("sqlite_letters"),
    revisions=_later("sqlite_revisions"),
    on_diff="tidemill.compare.sqlite:open_target",
)

DUCKDB: Final = SinkKind(
    name="DuckDB",
    schemes=("duckdb",),
    examples=("duckdb:///file",),
    options=DuckDbOptions,
    open=_later("open_duckdb"),
    survey=_later("survey_duckdb"),
    extra="duckdb",
    on_spark=NotOnSpark(reason="one process writes the file: use parquet:///directory, which DuckDB reads"),
    dead_letters=_later("duckdb_letters"),
)

MYSQL: Final = SinkKind(
    name="MySQL",
    schemes=("mysql", "mariadb"),
    examples=("mysql://user@host/", "mariadb://user@host/"),
    options=MySqlOptions,
    open=_later("open_mysql"),
    survey=_later("survey_mysql"),
    extra="mysql",
    drivers=("pymysql",),
    on_spark=ByRows(opener="tidemill.spark.write.mysql:open_mysql"),
    dead_letters=_later("mysql_letters"),
    revisions=_later("mysql_revisions"),
    on_diff="tidemill.compare.mysql:open_target",
)

POSTGRES: Final = SinkKind(
    name="PostgreSQL",
    schemes=("postgresql", "postgres"),
    examples=("postgresql://user@host/database",),
    options=PostgresOptions,
    open=_later("open_postgres"),
    survey=_later("survey_postgres"),
    misfits=_later("postgres_misfits"),
    extra="postgres",
    drivers=("psycopg",),
    on_spark=ByRows(opener="tidemill.spark.write.postgres:open_postgres"),
    dead_letters=_later("postgres_letters"),
    revisions=_later("postgres_revisions"),
    on_diff="tidemill.compare.postgres:open_target",
)
