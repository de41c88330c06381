"""Raw changes in commit order to rows and schema changes."""

from .ddl import Tables
from .history import SchemaHistory, TableAt
from .mounter import Mounter
from .tidb import TidbMounter
from .tidb_rows import RowReader

__all__ = ["Mounter", "RowReader", "SchemaHistory", "TableAt", "Tables", "TidbMounter"]
