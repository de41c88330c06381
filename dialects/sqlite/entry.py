"""The registry entry of SQLite."""

from __future__ import annotations

from typing import Final

from ..dialect import Dialect, DialectTraits, imported
from ..options import SqliteOptions

SQLITE: Final = Dialect(
    name="SQLite",
    schemes=("sqlite",),
    examples=("sqlite:///file",),
    options=SqliteOptions,
    connect=imported(__package__, ".sqlite:SqliteDatabase"),
    read=imported(__package__, ".read:opened"),
    survey=imported(__package__, ".survey:survey"),
    traits=DialectTraits(is_local=True),
)
