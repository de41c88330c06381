"""One file of versions, with which the extras, the documents and what is installed agree."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

import tidemill.spark
from tidemill.errors import ConfigError
from tidemill.spark import versions
from tidemill.spark.versions import LAKES, lake_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


def extra(name: str) -> list[str]:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [str(one) for one in found[name]]


def test_the_extras_install_these_versions() -> None:
    series = versions.SPARK.split(".")
    following = f"{series[0]}.{int(series[1]) + 1}"
    assert f"pyspark>={versions.PYSPARK},<{following}" in extra("spark")
    assert f"duckdb>={versions.DUCKDB}" in extra("duckdb")
    assert pyspark.__version__.rpartition(".")[0] == versions.SPARK


def test_the_document_has_these_versions() -> None:
    text = (ROOT / "docs/reference/spark.md").read_text()
    row = [versions.PYSPARK, versions.SCALA, f"{versions.JAVA} or later", versions.DELTA]
    assert f"| {' | '.join(row)} |" in text


def test_settings_of_a_lake_are_added_to_those_that_are_given() -> None:
    given = {"spark.jars.packages": "org.example:one:1", "spark.sql.extensions": "org.example.More"}
    found = lake_settings(["delta"], given)
    assert found["spark.jars.packages"].split(",") == ["org.example:one:1", *LAKES["delta"].jars]
    assert found["spark.sql.extensions"] == "org.example.More,io.delta.sql.DeltaSparkSessionExtension"
    own = lake_settings(["delta"], {"spark.jars": "/opt/delta-spark.jar"})
    assert "spark.jars.packages" not in own
    assert lake_settings([], given) == given


def test_an_unknown_lake_is_an_error_that_names_the_known_ones(spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="lakes: 'hudi' is none; accepted: delta"):
        tidemill.spark.session(lakes=["hudi"])


def test_a_session_reads_and_writes_delta_tables(
    spark: SparkSession, delta_jars: list[str], tmp_path: Path
) -> None:
    session = tidemill.spark.session(lakes=["delta"])
    session.range(3).write.format("delta").save(str(tmp_path / "numbers"))
    assert session.read.format("delta").load(str(tmp_path / "numbers")).count() == 3
