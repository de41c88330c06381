"""Which changes go where."""

from .filter import TableFilter
from .table_stage import TableStage

__all__ = ["TableFilter", "TableStage"]
