"""Registry entries for SQL databases as sinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from ...config import Finding
from ...config.url import PERCENT_ENCODE
from ...errors import ConfigError
from ..kind import ByRows, SinkContext, SinkKind
from ..sink import Sink
from .options import MySqlOptions, SqliteOptions
from .sql import SqlSink


def _open_sqlite(url: str, options: SqliteOptions, context: SinkContext) -> Sink:
    from .sqlite import SqliteTarget

    return SqlSink(context.name, SqliteTarget(parsed(url), context.feed, options.table_name, options.verify))


def _open_mysql(url: str, options: MySqlOptions, context: SinkContext) -> Sink:
    from .mysql import MySqlTarget

    schema = options.schema or None
    target = MySqlTarget(parsed(url), context.feed, schema, options.collations, options.verify)
    return SqlSink(context.name, target)


def _survey_sqlite(url: str, options: SqliteOptions, context: SinkContext) -> Iterator[Finding]:  # noqa: ARG001
    from .survey import survey_sqlite

    return survey_sqlite(parsed(url), context.feed)


def _survey_mysql(url: str, options: MySqlOptions, context: SinkContext) -> Iterator[Finding]:
    from .survey import survey_mysql

    return survey_mysql(parsed(url), options.schema, context.feed)


def parsed(url: str) -> URL:
    """Parse a database's URL. Raises ConfigError, which doesn't show a password."""
    try:
        found = make_url(url)
    except ArgumentError:
        raise ConfigError(f"{url!r} is not a URL of a database") from None
    except ValueError:
        reason = PERCENT_ENCODE if "@" in url else f"{url!r} has a port that is not a number"
        raise ConfigError(reason) from None
    if "@" in (found.host or "") or (found.host and "@" in (found.database or "")):
        raise ConfigError(PERCENT_ENCODE)
    return found


SQLITE: Final = SinkKind(
    name="SQLite",
    schemes=("sqlite",),
    examples=("sqlite:///file",),
    options=SqliteOptions,
    open=_open_sqlite,
    survey=_survey_sqlite,
    on_spark=ByRows(opener="tidemill.spark.write.sql:open_sqlite"),
)

MYSQL: Final = SinkKind(
    name="MySQL",
    schemes=("mysql", "mariadb"),
    examples=("mysql://user@host/", "mariadb://user@host/"),
    options=MySqlOptions,
    open=_open_mysql,
    survey=_survey_mysql,
    extra="mysql",
    on_spark=ByRows(opener="tidemill.spark.write.mysql:open_mysql"),
)
