"""Frames of the raw envelope from items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from tidemill.events import Item
from tidemill.spark.envelope import EnvelopeEncoder
from tidemill.spark.read.commit_time import timed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def envelope(spark: SparkSession, items: Iterable[Item]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches([timed(EnvelopeEncoder(json=False).encode(items))]))
