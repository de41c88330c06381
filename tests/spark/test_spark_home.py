"""Where Spark's Python workers have PySpark from."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from tidemill.spark.launch.spark_home import VARIABLE, installed_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_workers_import_the_installed_pyspark_which_is_compiled(spark: SparkSession) -> None:
    def origin(_number: int) -> str:
        import pyspark.worker

        return str(pyspark.worker.__spec__.origin)

    (found,) = spark.sparkContext.parallelize([0], 1).map(origin).collect()
    assert found == str(Path(pyspark.__file__).with_name("worker.py"))


@pytest.mark.parametrize(
    ("master", "variable", "value"),
    [
        ("local[2]", VARIABLE, "/opt/spark"),
        ("local[2]", "PYSPARK_PYTHON", "/opt/python"),
        ("spark://host:7077", "PYSPARK_PYTHON", sys.executable),
        ("yarn", "PYSPARK_PYTHON", sys.executable),
    ],
)
def test_a_home_or_a_python_that_is_named_and_a_cluster_stay_as_they_are(
    master: str, variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv(variable, value)
    before = os.environ.get(VARIABLE)
    with installed_pyspark(master):
        assert os.environ.get(VARIABLE) == before
