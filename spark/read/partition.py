"""The input partition of a task."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from ..offsets.offset import Offset
from ..planner import Planner
from .parts import Part


class TaskPartition(InputPartition):
    """The changes of a part in (start, end], or its rows at `end` if `start` is None; with its planner."""

    def __init__(
        self,
        part: Part,
        start: Offset | None,
        end: Offset,
        lease: str = "",
        *,
        is_from_before: bool = False,
    ) -> None:
        """`lease` is the query's, for captures; `is_from_before` marks a batch before the query's start."""
        self.part = part
        self.start = start
        self.end = end
        self.lease = lease
        self.is_from_before = is_from_before
        self.planner = Planner()
