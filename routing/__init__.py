"""Which changes go where."""

from .canal_filter import CanalFilter
from .condition import Chosen, Condition
from .filter import TableFilter
from .row_filter import RowFilter
from .row_filter_stage import ROWS_KEY, WHERE_KEY, RowFilterStage, difference
from .share import Share
from .table_stage import TableStage
from .transform import TableTransform, Transform
from .transform_stage import TransformStage
from .where import Where

__all__ = [
    "ROWS_KEY",
    "WHERE_KEY",
    "CanalFilter",
    "Chosen",
    "Condition",
    "RowFilter",
    "RowFilterStage",
    "Share",
    "TableFilter",
    "TableStage",
    "TableTransform",
    "Transform",
    "TransformStage",
    "Where",
    "difference",
]
