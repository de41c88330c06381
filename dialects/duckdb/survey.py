"""Preflight checks of a DuckDB target."""

from __future__ import annotations

from collections.abc import Iterator

from ...config import Finding
from ...config.survey import writable_file
from ...events import Table
from ..address import Address
from ..options import DuckDbOptions
from .duckdb import file_of
from .tables import unindexed


def survey(address: Address, options: DuckDbOptions) -> Iterator[Finding]:  # noqa: ARG001
    """Yield findings about a file, which isn't created."""
    yield writable_file(file_of(address))


def misfits(options: DuckDbOptions, table: Table) -> Iterator[Finding]:  # noqa: ARG001
    """Yield an error if the table has a key that DuckDB can't have."""
    columns = [table.columns[i] for i in table.key]
    if problem := unindexed([column.name for column in columns if column.kind == "time"]):
        yield Finding("error", f"table {table.full_name}: {problem}")
