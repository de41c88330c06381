"""Comparison of a feed's source with one of its targets, while both run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import Names

if TYPE_CHECKING:
    from .diff import Diff as Diff
    from .diff import open_diff as open_diff
    from .finding import Difference as Difference
    from .finding import TableResult as TableResult

# Each feed imports `verification`, also without the drivers that a comparison needs.
_NAMES = Names(
    __name__,
    {"Diff": ".diff", "Difference": ".finding", "TableResult": ".finding", "open_diff": ".diff"},
)
__all__ = [*_NAMES]

if not TYPE_CHECKING:
    __getattr__ = _NAMES.get
