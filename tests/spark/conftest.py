from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import tidemill.spark
from tidemill.emulator.sql.sql import Tidb
from tidemill.testing.delta import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session for all tests of a process, as a JVM takes seconds to start. Failed tasks are retried."""
    directory = tmp_path_factory.mktemp("spark")
    made = tidemill.spark.session(
        "tests",
        "local[2,3]",
        {
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
            "spark.local.dir": str(directory / "local"),
            "spark.driver.memory": "1g",
            "spark.databricks.delta.snapshotPartitions": "1",
            **({"spark.jars": ",".join(jars())} if jars() else {}),
        },
        lakes=["delta"] if jars() else [],
    )
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@pytest.fixture
def tidb() -> Iterator[Tidb]:
    """With an empty database `shop`."""
    with Tidb(stores=2, tick_seconds=0.02) as made:
        made.execute("create database shop")
        yield made
