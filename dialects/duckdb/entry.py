"""The registry entry of DuckDB."""

from __future__ import annotations

from typing import Final

from ...lazy import later
from ..dialect import Dialect, DialectTraits, imported
from ..options import DuckDbOptions

DUCKDB: Final = Dialect(
    name="DuckDB",
    schemes=("duckdb",),
    examples=("duckdb:///file",),
    options=DuckDbOptions,
    connect=imported(__package__, ".duckdb:DuckDbDatabase"),
    read=imported(__package__, ".read:opened"),
    survey=imported(__package__, ".survey:survey"),
    traits=DialectTraits(is_shared=False, is_exclusive=True, is_local=True),
    misfits=later(__package__, ".survey:misfits"),
    extra="duckdb",
)
