"""Decoding of raw changes in commit order into rows and schema changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from .mysql.catalog import Catalog as Catalog
    from .mysql.history import History as History
    from .mysql.mounter import Mounter as Mounter
    from .mysql.policy import APPLY_ALL as APPLY_ALL
    from .mysql.policy import Policy as Policy
    from .tidb.binlog_mounter import BinlogMounter as BinlogMounter
    from .tidb.history import SchemaHistory as SchemaHistory
    from .tidb.history import TableAt as TableAt
    from .tidb.mounter import TidbMounter as TidbMounter
    from .tidb.runs import RowReader as RowReader

_NAMES = Names(
    __name__,
    {
        "APPLY_ALL": ".mysql.policy",
        "BinlogMounter": ".tidb.binlog_mounter",
        "Catalog": ".mysql.catalog",
        "History": ".mysql.history",
        "Mounter": ".mysql.mounter",
        "Policy": ".mysql.policy",
        "RowReader": ".tidb.runs",
        "SchemaHistory": ".tidb.history",
        "TableAt": ".tidb.history",
        "TidbMounter": ".tidb.mounter",
    },
)
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
