"""The registry entry of MySQL and MariaDB."""

from __future__ import annotations

from typing import Final

from ..dialect import Dialect, DialectTraits, imported
from ..options import MySqlOptions

MYSQL: Final = Dialect(
    name="MySQL",
    schemes=("mysql", "mariadb"),
    examples=("mysql://user@host/", "mariadb://user@host/"),
    options=MySqlOptions,
    connect=imported(__package__, ".mysql:MySqlDatabase"),
    read=imported(__package__, ".read:MySqlReader"),
    survey=imported(__package__, ".survey:survey"),
    traits=DialectTraits(has_workers=True),
    extra="mysql",
    drivers=("pymysql",),
)
