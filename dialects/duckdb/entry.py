"""The registry entry of DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...config import Finding
from ...events import Table
from ..database import Database
from ..dialect import Dialect, DialectTraits
from ..options import DuckDbOptions
from ..read import Reader


def _connect(url: str, options: DuckDbOptions, feed: str, busy_seconds: float | None) -> Database:  # noqa: ARG001
    from ..address import parsed
    from .duckdb import DuckDbDatabase

    return DuckDbDatabase(parsed(url), feed, options)


def _read(url: str, options: DuckDbOptions, feed: str) -> Reader | None:
    from ..address import parsed
    from .duckdb import file_of
    from .read import DuckDbReader

    file = file_of(parsed(url))
    return DuckDbReader(file, options, feed) if file.exists() else None


def _survey(url: str, options: DuckDbOptions) -> Iterator[Finding]:  # noqa: ARG001
    from ..address import parsed
    from .survey import survey

    return survey(parsed(url))


def _misfits(options: DuckDbOptions, table: Table) -> Iterator[Finding]:  # noqa: ARG001
    from .survey import misfits

    return misfits(table)


DUCKDB: Final = Dialect(
    name="DuckDB",
    schemes=("duckdb",),
    examples=("duckdb:///file",),
    options=DuckDbOptions,
    connect=_connect,
    read=_read,
    survey=_survey,
    traits=DialectTraits(is_shared=False, is_exclusive=True, is_local=True),
    misfits=_misfits,
    extra="duckdb",
)
