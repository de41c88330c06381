"""Which changes go where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from .canal_filter import CanalFilter as CanalFilter
    from .condition import Chosen as Chosen
    from .condition import Condition as Condition
    from .filter import TableFilter as TableFilter
    from .filter import named as named
    from .row_filter import RowFilter as RowFilter
    from .row_filter_stage import ROWS_KEY as ROWS_KEY
    from .row_filter_stage import WHERE_KEY as WHERE_KEY
    from .row_filter_stage import RowFilterStage as RowFilterStage
    from .row_filter_stage import difference as difference
    from .share import Share as Share
    from .table_stage import TableStage as TableStage
    from .transform import TableTransform as TableTransform
    from .transform import Transform as Transform
    from .transform_stage import TransformStage as TransformStage
    from .where import Where as Where

_NAMES = Names(
    __name__,
    {
        "CanalFilter": ".canal_filter",
        "Chosen": ".condition",
        "Condition": ".condition",
        "ROWS_KEY": ".row_filter_stage",
        "RowFilter": ".row_filter",
        "RowFilterStage": ".row_filter_stage",
        "Share": ".share",
        "TableFilter": ".filter",
        "TableStage": ".table_stage",
        "TableTransform": ".transform",
        "Transform": ".transform",
        "TransformStage": ".transform_stage",
        "WHERE_KEY": ".row_filter_stage",
        "Where": ".where",
        "difference": ".row_filter_stage",
        "named": ".filter",
    },
)
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
