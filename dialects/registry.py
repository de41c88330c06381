"""The databases that there are: the built-in ones, and those of installed packages."""

from __future__ import annotations

from typing import Final

from ..config import Registry
from .dialect import Dialect
from .duckdb.entry import DUCKDB
from .mysql.entry import MYSQL
from .postgres.entry import POSTGRES
from .sqlite.entry import SQLITE

GROUP: Final = "tidemill.dialects"
"""Group of the entry points by which installed packages add databases."""

DIALECTS: Final = Registry(GROUP, Dialect, (SQLITE, MYSQL, POSTGRES, DUCKDB))
