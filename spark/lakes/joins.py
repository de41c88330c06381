"""Files of lakes joined by Spark's tasks, which open the lake's store themselves.

A task that is repeated, or runs twice at once, writes another file; only one of them is committed by the
driver, and `vacuum` removes the other.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ...errors import CheckpointError, Retryable, SinkError, TidemillError
from ...sink.files.lakes.upkeep import Join, NewFile, join, store_at
from ..planner import Planner
from ..run.errors import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROUNDS: Final = 4
"""Number of tasks of a job for each core: after a job its files can be committed."""


class SparkJoins:
    """An `Executor` for a lake's URL and the built options of its sink."""

    def __init__(self, spark: SparkSession, url: str, options: object) -> None:
        self._context: Final = spark.sparkContext
        self._work: Final = _Work(url, options)

    def __call__(self, tasks: Sequence[Join]) -> Iterator[NewFile]:
        size = _ROUNDS * self._context.defaultParallelism
        for start in range(0, len(tasks), size):
            some = tasks[start : start + size]
            try:
                made = self._context.parallelize(some, len(some)).map(self._work).collect()
            except Exception as error:
                raise explain(error, "Spark's tasks") from error
            for one in made:
                if isinstance(one, TidemillError):
                    raise one
                yield one


class _Work:
    """Runs a task in a worker. Sent there by value."""

    def __init__(self, url: str, options: object) -> None:
        self._url = url
        self._options = options
        self._host = socket.gethostname()
        self._planner = Planner()

    def __call__(self, task: Join) -> NewFile | TidemillError:
        """Return an error that no repetition helps. Raises Retryable, after which Spark repeats the task."""
        try:
            self._planner.check()
            return join(store_at(self._url, self._options), task)
        except Retryable:
            raise
        except CheckpointError as error:
            if (host := socket.gethostname()) == self._host:
                return error
            return SinkError(
                f"{error}; the task ran on {host}, and the driver runs on {self._host}: a lake must be in a "
                "bucket, or in a directory that all of them share"
            )
        except TidemillError as error:
            return error
