"""Decoding of raw changes in commit order into rows and schema changes."""

from .mysql.catalog import Catalog
from .mysql.change import KINDS as DDL_KINDS
from .mysql.history import History
from .mysql.mounter import Mounter
from .mysql.policy import ACTIONS as DDL_ACTIONS
from .mysql.policy import APPLY_ALL, Policy
from .mysql.rule import Rule
from .mysql.statement_filter import StatementFilter
from .tables import Tables
from .tidb.binlog_mounter import BinlogMounter
from .tidb.history import SchemaHistory, TableAt
from .tidb.mounter import TidbMounter
from .tidb.rows import RowReader

__all__ = [
    "APPLY_ALL",
    "DDL_ACTIONS",
    "DDL_KINDS",
    "BinlogMounter",
    "Catalog",
    "History",
    "Mounter",
    "Policy",
    "RowReader",
    "Rule",
    "SchemaHistory",
    "StatementFilter",
    "TableAt",
    "Tables",
    "TidbMounter",
]
