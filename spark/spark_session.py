"""A Spark session for one machine, or for a cluster that is there."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import Final

from pyspark.sql import SparkSession

from ..errors import ConfigError
from .data_source import register
from .java import java_home

MASTER: Final = "local[2]"
_MASTERS: Final = re.compile(
    r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://\S+:\d+|yarn|k8s://\S+"
)
_DEFAULTS: Final = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.python.filterPushdown.enabled": "true",
    "spark.sql.redaction.options.regex": "(?i)url|password|^source$|^sink$",  # their URLs have passwords
}
_LOCAL_DEFAULTS: Final = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}


def session(
    name: str = "tidemill", master: str = MASTER, config: Mapping[str, str] | None = None
) -> SparkSession:
    """A session with the data source registered, or the one that is there already.

    `config` goes over the defaults here, which suit small batches on few cores. Raises ConfigError if there
    is no Java, or `master` is none.
    """
    if not _MASTERS.fullmatch(master):
        raise ConfigError(
            f"master: {master!r} is none; accepted: local, local[2], local[*], spark://host:7077, yarn, k8s://…"
        )
    home = java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
    # The workers of this machine run on this very Python; a cluster's say so themselves.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # else it warns of the host's name
    builder = SparkSession.Builder().appName(name).master(master)
    defaults = _DEFAULTS | (_LOCAL_DEFAULTS if master.startswith("local") else {})
    for key, value in {**defaults, **(config or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark
