"""What a task is given."""

from __future__ import annotations

from pyspark.sql.datasource import InputPartition

from ..offsets.offset import Offset
from ..planner import Planner
from .parts import Part


class TaskPartition(InputPartition):
    """The tables of one part, from `start` (None: their rows) up to `end`; and who planned it."""

    def __init__(
        self,
        part: Part,
        start: Offset | None,
        end: Offset,
        lease: str = "",
        *,
        is_from_before: bool = False,
    ) -> None:
        """`lease` is the query's, shown to captures. A batch of a stream may be from before its start."""
        self.part = part
        self.start = start
        self.end = end
        self.lease = lease
        self.is_from_before = is_from_before
        self.planner = Planner()
