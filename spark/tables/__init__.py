"""Typed frames of several tables in one micro-batch, and their merge into copies."""

from ..read.widening import widened
from .catalog import by_table, merge_into, side_by_side
from .last_changes import last_changes
from .parquet import merge_parquet, merged_parquet
from .table_changes import TableChanges
from .typed_tables import TypedTables

__all__ = [
    "TableChanges",
    "TypedTables",
    "by_table",
    "last_changes",
    "merge_into",
    "merge_parquet",
    "merged_parquet",
    "side_by_side",
    "widened",
]
