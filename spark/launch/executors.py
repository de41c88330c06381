"""Detection of clusters without executors."""

from __future__ import annotations

import logging
from contextlib import suppress
from threading import Timer
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOON_SECONDS: Final = 20.0
"""Time for a cluster to start the first executor before a warning."""

log = logging.getLogger("tidemill")


def watch_for_executors(spark: SparkSession) -> None:
    """Warn if no executor starts in time: Spark waits for them forever."""
    timer = Timer(SOON_SECONDS, _look, [spark])
    timer.daemon = True
    timer.start()


def _look(spark: SparkSession) -> None:
    with suppress(Exception):  # it is stopped by now
        context = spark.sparkContext
        tracker = context._jsc.sc().statusTracker()
        if len(tracker.getExecutorInfos()) > 1:  # the driver is one of them
            return
        log.warning(
            "master %s has started no executor: waiting for workers with a free core and %s of memory "
            "(spark.executor.memory)",
            context.master,
            context.getConf().get("spark.executor.memory", "1g"),
        )
