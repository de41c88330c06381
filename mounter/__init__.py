"""Raw changes in commit order to rows and schema changes."""

from .ddl import Tables
from .history import SchemaHistory
from .mounter import Mounter
from .tidb import TidbMounter
from .tidb_ddl import existing_tables

__all__ = ["Mounter", "SchemaHistory", "Tables", "TidbMounter", "existing_tables"]
