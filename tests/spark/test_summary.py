"""Errors as Spark shows them: one sentence, then the trace."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidemill.emulator.sql.sql import Tidb
from tidemill.errors import ConfigError, Retryable, SourceError
from tidemill.spark.run.errors import explain
from tidemill.spark.summary import summarised

from .job import completed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def printed(error: BaseException) -> list[str]:
    return "".join(traceback.format_exception(error)).splitlines()


@summarised
def fails(why: BaseException | None = None) -> None:
    raise SourceError("shop.t: no such table") from why


@summarised
def fails_midway() -> Iterator[int]:
    yield 1
    raise Retryable("busy", wait=3)


def test_the_first_line_is_the_sentence_and_the_trace_follows() -> None:
    with pytest.raises(SourceError) as found:
        fails()
    lines = printed(found.value)
    assert lines[0] == "tidemill.errors.SourceError: shop.t: no such table"
    assert lines[-1] == "tidemill.errors.SourceError: shop.t: no such table"
    assert any("in fails" in line for line in lines)


def test_the_causes_stay_below_it() -> None:
    with pytest.raises(SourceError) as found:
        fails(KeyError("t"))
    lines = printed(found.value)
    assert lines[0] == "tidemill.errors.SourceError: shop.t: no such table"
    assert "KeyError: 't'" in lines


def test_a_generators_error_has_it_once() -> None:
    found = summarised(fails_midway)()
    assert next(found) == 1
    with pytest.raises(Retryable) as error:
        next(found)
    assert error.value.wait == 3
    assert printed(error.value)[0] == "tidemill.errors.Retryable: busy"
    assert sum("Retryable: busy" in line for line in printed(error.value)) == 2


def test_spark_shows_the_sentence_first(spark: SparkSession, tidb: Tidb, tmp_path: Path) -> None:
    reader = spark.read.format("tidemill").option("source", f"tikv://{tidb.pd_address}")
    with pytest.raises(Exception, match="table") as found:
        reader.load()
    sentence = "tidemill.errors.ConfigError: option tables: give either tables, patterns for the raw envelope"
    assert sentence in str(found.value).splitlines()[0]
    tidb.execute("create table shop.t (id int primary key)")
    stream = spark.readStream.format("tidemill").option("source", f"tikv://{tidb.pd_address}")
    writer = stream.option("table", "shop.t").load().writeStream.foreachBatch(lambda *_: None)
    tidb.execute("alter table shop.t add column note text")
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    with pytest.raises(Exception, match="was changed after") as stopped:
        completed(writer.start)
    head = str(stopped.value).split("Traceback")[0]
    assert "tidemill.errors.ConfigError: shop.t was changed after load()" in head
    assert isinstance(explain(stopped.value, "query"), ConfigError)
