"""The registry entry of MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...config import Finding
from ..database import Database
from ..dialect import Dialect, DialectTraits
from ..options import MySqlOptions
from ..read import Reader


def _connect(url: str, options: MySqlOptions, feed: str, busy_seconds: float | None) -> Database:
    from ..address import parsed
    from .mysql import MySqlDatabase

    return MySqlDatabase(parsed(url), feed, options, busy_seconds)


def _read(url: str, options: MySqlOptions, feed: str) -> Reader | None:
    from ..address import parsed
    from .read import MySqlReader

    return MySqlReader(parsed(url), options, feed)


def _survey(url: str, options: MySqlOptions) -> Iterator[Finding]:
    from ..address import parsed
    from .survey import survey

    return survey(parsed(url), options)


MYSQL: Final = Dialect(
    name="MySQL",
    schemes=("mysql", "mariadb"),
    examples=("mysql://user@host/", "mariadb://user@host/"),
    options=MySqlOptions,
    connect=_connect,
    read=_read,
    survey=_survey,
    traits=DialectTraits(has_workers=True),
    extra="mysql",
    drivers=("pymysql",),
)
