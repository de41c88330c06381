"""Spark sessions on one machine or on a running cluster."""

from __future__ import annotations

import logging
import os
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from threading import Timer
from typing import IO, Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from ...errors import ConfigError
from ..data_source import register
from ..run.options import MASTER, check_master
from ..versions import LAKES, lake_settings
from .java import java_home
from .spark_home import installed_pyspark

_DEFAULTS: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "4",  # of a Delta table's log; 50 by default
    # Tasks in which VACUUM lists a table's files; by default 10,000, which take a minute on one machine.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "64",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.redaction.options.regex": "(?i)url|password|^source$|^sink$",  # their URLs have passwords
}
_LOCAL_DEFAULTS: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
ANSWER_SECONDS: Final = 5.0
"""Time limit for connecting to a master."""


def session(
    name: str = "tidemill",
    master: str = MASTER,
    config: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
    lakes: Iterable[str] = (),
) -> SparkSession:
    """Return a session with the data source registered: the active one, or a new one.

    `config` overrides the defaults, which suit small batches on few cores. Output of a new JVM goes to the
    file `output`, or to this process's streams. `lakes` are names of `versions.LAKES`. Raises ConfigError if
    there is no Java, if `master` isn't valid or doesn't answer, for an unknown lake, and if the active
    session lacks one.
    """
    lakes = tuple(lakes)
    config = lake_settings(lakes, dict(config or {}))
    check_master(master)
    _check_answers(master)
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    # Tasks run the program of this name on every host.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else it warns of the host's name
    defaults = _DEFAULTS | (_LOCAL_DEFAULTS if master.startswith("local") else {})
    settings = {**defaults, **config}
    with installed_pyspark(master):
        if output is not None and SparkContext._active_spark_context is None:
            conf = SparkConf().setMaster(master).setAppName(name).setAll([*settings.items()])
            streams = {"stdout": output, "stderr": output}
            SparkContext(conf=conf, gateway=launch_gateway(conf, streams))  # type: ignore[no-untyped-call]
        builder = SparkSession.Builder().appName(name).master(master)
        for key, value in settings.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    for lake in lakes:
        _check_lake(spark, lake)
    register(spark)
    if not master.startswith("local"):
        watch_for_executors(spark)
    return spark


def _check_lake(spark: SparkSession, lake: str) -> None:
    """Raise ConfigError if the session, which may be an older one, can't use a lake."""
    for name, value in LAKES[lake].settings.items():
        if value not in str(spark.conf.get(name, "")).split(","):
            raise ConfigError(
                f"lakes: a session runs already, and was started without {lake}: stop it first, or start it "
                f"with {name} = {value}"
            )


def _check_answers(master: str) -> None:
    """Raise ConfigError if no master of a standalone cluster answers: Spark would try for over a minute."""
    if not master.startswith("spark://"):
        return
    reasons = []
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()
        except (OSError, ValueError, OverflowError) as error:
            reasons.append(f"{address}: {error}")
        else:
            return
    raise ConfigError(f"master: {master} doesn't answer ({'; '.join(reasons)})")


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
