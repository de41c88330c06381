"""Decoding of raw changes in commit order into rows and schema changes."""

from .mysql.ddl import Tables
from .mysql.mounter import Mounter
from .tidb.history import SchemaHistory, TableAt
from .tidb.mounter import TidbMounter
from .tidb.rows import RowReader

__all__ = ["Mounter", "RowReader", "SchemaHistory", "TableAt", "Tables", "TidbMounter"]
