"""The registry entry of PostgreSQL."""

from __future__ import annotations

from typing import Final

from ...lazy import later
from ..dialect import Dialect, DialectTraits, imported
from ..options import PostgresOptions

POSTGRES: Final = Dialect(
    name="PostgreSQL",
    schemes=("postgresql", "postgres"),
    examples=("postgresql://user@host/database",),
    options=PostgresOptions,
    connect=imported(__package__, ".postgres:PostgresDatabase"),
    read=imported(__package__, ".read:PostgresReader"),
    survey=imported(__package__, ".survey:survey"),
    traits=DialectTraits(has_workers=True),
    misfits=later(__package__, ".survey:misfits"),
    extra="postgres",
    drivers=("psycopg",),
)
