"""The table [spark] of a feed.toml, and flags over it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tidemill.cli.spark import settings_of_spark
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.spark.backfill.options import BackfillOptions
from tidemill.spark.read.options import read_options
from tidemill.spark.run.feed_reads import feed_reads
from tidemill.spark.run.options import SparkOptions
from tidemill.spark.sections import spark_options


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"maser": "yarn"}, "spark.maser: no such key; did you mean 'master'? (accepted: backfill, "),
        ({"master": "somewhere"}, "spark.master: 'somewhere' is none; accepted: local, local[2], "),
        ({"partitions": 0}, "spark.partitions: expected `int` >= 1"),
        ({"partitions": "8"}, "spark.partitions: expected `int`, got `str`"),
        ({"trigger": "often"}, "spark.trigger: 'often' is none; accepted: a number of milliseconds, "),
        ({"capture": ["host"]}, "spark.capture: addresses host:port, for instance 10.0.0.5:8815"),
        ({"capture": "host:1"}, "spark.capture: expected a list, got `str`"),
        (
            {"capture_tls": True},
            "spark.capture_tls: it is for captures; give their addresses as capture",
        ),
        ({"backfill": {"chunk_rows": 0}}, "spark.backfill.chunk_rows: expected `int` >= 1"),
        ({"backfill": {"positions": "log"}}, "spark.backfill.positions: 'log' is none of 'auto', "),
        ({"config": {"memory": "2g"}}, 'spark.config.memory: a setting of Spark begins with "spark."'),
        ({"config": {"spark.x": [1]}}, "spark.config.spark.x: expected a text, a number or a truth value"),
        ({"config": "spark.x=1"}, "spark.config: expected a table, for instance "),
    ],
)
def test_a_mistake_names_the_field_and_what_is_accepted(table: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as found:
        spark_options({"spark": table})
    assert str(found.value).startswith(sentence)


def test_flags_go_over_the_file_and_what_is_not_given_does_not() -> None:
    found = {"spark": {"master": "yarn", "partitions": 8, "config": {"spark.a": "1", "spark.b": "1"}}}
    flags = {"master": None, "partitions": 2, "directory": Path("x"), "config": {"spark.b": "2"}}
    assert spark_options(found, flags) == SparkOptions(
        master="yarn", partitions=2, directory=Path("x"), config={"spark.a": "1", "spark.b": "2"}
    )
    chunks = {"spark": {"backfill": {"chunk_rows": 5, "attempts": 2}}}
    how = spark_options(chunks, {"backfill": {"chunk_rows": 7}})
    assert how.backfill == BackfillOptions(chunk_rows=7, attempts=2)
    assert spark_options({}) == SparkOptions()


def test_settings_may_be_written_with_quotes_and_without() -> None:
    text = (
        '[spark.config]\nspark.executor.cores = 2\n"spark.executor.memory" = "2g"\nspark.ui.enabled = false'
    )
    assert spark_options(tomllib.loads(text)).config == {
        "spark.executor.cores": "2",
        "spark.executor.memory": "2g",
        "spark.ui.enabled": "false",
    }


def test_a_setting_as_a_flag_is_a_name_and_a_value() -> None:
    assert settings_of_spark(["spark.a=b=c", "spark.d = 1"]) == {"spark.a": "b=c", "spark.d": "1"}
    with pytest.raises(ConfigError, match=r"--config spark\.a: expected name=value"):
        settings_of_spark(["spark.a"])


def test_the_data_source_is_told_of_the_source_and_of_captures() -> None:
    section = {"url": "mysql://u@db:1", "tables": ["a.*", "!a.b"], "snapshot": False, "server_id": 7}
    options = feed_options({"name": "shop", "source": {**section, "ssl_ca": "ca.pem"}})
    how = spark_options(
        {"spark": {"capture": ["h1:1", "h2:2"], "capture_tls": True, "capture_token_file": "token"}}
    )
    found = read_options(feed_reads(options) | how.captures)
    assert (found.name, found.patterns, found.source) == ("shop", ("a.*", "!a.b"), {"ssl_ca": "ca.pem"})
    assert (found.capture, found.capture_tls) == (("h1:1", "h2:2"), True)
    assert found.capture_token_file == Path("token")
    assert SparkOptions().captures == {}


def test_a_list_of_the_source_is_a_list_of_the_data_source() -> None:
    failover = ["replica1:3306", "replica2:3306"]
    source = {"url": "mysql://repl@db", "tables": ["shop.*"], "failover": failover}
    options = read_options(feed_reads(feed_options({"source": source}))).source_options
    assert isinstance(options, MysqlOptions)
    assert options.failover == tuple(failover)
