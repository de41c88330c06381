"""What a task is given."""

from __future__ import annotations

import sys
from importlib.metadata import version

from pyspark.sql.datasource import InputPartition

from ..errors import ConfigError
from .offset import Offset
from .parts import Part


class TaskPartition(InputPartition):
    """The tables of one part, from `start` (None: their rows) up to `end`; and who planned it."""

    def __init__(self, part: Part, start: Offset | None, end: Offset, lease: str = "") -> None:
        """`lease` is the query's, shown to captures."""
        self.part = part
        self.start = start
        self.end = end
        self.lease = lease
        self.planner = versions()

    def check(self) -> None:
        """Raise ConfigError unless it was planned by the same program: a task's rows must not depend on which
        worker it runs on."""
        if self.planner != versions():
            raise ConfigError(
                f"the driver runs {self.planner}, this worker {versions()}: install the same on both"
            )


def versions() -> str:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"tidemill {version('tidemill')} on Python {python}"
