"""Databases in your process that speak the real protocols, for tests and demos: a TiDB cluster, a MariaDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from .cluster import Cluster as Cluster
    from .mysql.mysql import Mysql as Mysql
    from .percolator import Rejected as Rejected
    from .server import Tls as Tls
    from .sql.sql import Tidb as Tidb

_NAMES = Names(
    __name__,
    {
        "Cluster": ".cluster",
        "Mysql": ".mysql.mysql",
        "Rejected": ".percolator",
        "Tidb": ".sql.sql",
        "Tls": ".server",
    },
)
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
