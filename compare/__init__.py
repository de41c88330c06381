"""Comparison of a feed's source with one of its targets, while both run."""

from .diff import Diff, open_diff
from .finding import Difference, TableResult

__all__ = ["Diff", "Difference", "TableResult", "open_diff"]
