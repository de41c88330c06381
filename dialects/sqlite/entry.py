"""The registry entry of SQLite."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...config import Finding
from ..database import Database
from ..dialect import Dialect, DialectTraits
from ..options import SqliteOptions
from ..read import Reader


def _connect(url: str, options: SqliteOptions, feed: str, busy_seconds: float | None) -> Database:
    from ..address import parsed
    from .sqlite import SqliteDatabase

    return SqliteDatabase(parsed(url), feed, options, busy_seconds)


def _read(url: str, options: SqliteOptions, feed: str) -> Reader | None:
    from ..address import parsed
    from .read import SqliteReader
    from .session import file_of

    file = file_of(parsed(url))
    return SqliteReader(file, options.table_name, feed) if file.exists() else None


def _survey(url: str, options: SqliteOptions) -> Iterator[Finding]:  # noqa: ARG001
    from ..address import parsed
    from .survey import survey

    return survey(parsed(url))


SQLITE: Final = Dialect(
    name="SQLite",
    schemes=("sqlite",),
    examples=("sqlite:///file",),
    options=SqliteOptions,
    connect=_connect,
    read=_read,
    survey=_survey,
    traits=DialectTraits(is_local=True),
)
