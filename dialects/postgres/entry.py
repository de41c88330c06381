"""The registry entry of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...config import Finding
from ...events import Table
from ..database import Database
from ..dialect import Dialect, DialectTraits
from ..options import PostgresOptions
from ..read import Reader


def _connect(url: str, options: PostgresOptions, feed: str, busy_seconds: float | None) -> Database:
    from ..address import parsed
    from .postgres import PostgresDatabase

    return PostgresDatabase(parsed(url), feed, options, busy_seconds)


def _read(url: str, options: PostgresOptions, feed: str) -> Reader | None:
    from ..address import parsed
    from .read import PostgresReader

    return PostgresReader(parsed(url), options, feed)


def _survey(url: str, options: PostgresOptions) -> Iterator[Finding]:
    from ..address import parsed
    from .survey import survey

    return survey(parsed(url), options)


def _misfits(options: PostgresOptions, table: Table) -> Iterator[Finding]:
    from .survey import misfits

    return misfits(options, table)


POSTGRES: Final = Dialect(
    name="PostgreSQL",
    schemes=("postgresql", "postgres"),
    examples=("postgresql://user@host/database",),
    options=PostgresOptions,
    connect=_connect,
    read=_read,
    survey=_survey,
    traits=DialectTraits(has_workers=True),
    misfits=_misfits,
    extra="postgres",
    drivers=("psycopg",),
)
