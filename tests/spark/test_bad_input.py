"""One clear sentence each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

import tidemill.spark
from tidemill.emulator.sql.sql import Tidb
from tidemill.errors import CheckpointError, ConfigError, Retryable, SourceError
from tidemill.events import compose_ts
from tidemill.spark.offsets.mysql import MysqlOffsets
from tidemill.spark.offsets.offset import Offset, ts_offset
from tidemill.spark.offsets.tikv import TikvOffsets
from tidemill.spark.read.bounded import change_items
from tidemill.spark.read.options import read_options
from tidemill.spark.read.output import Output
from tidemill.spark.read.partition import TaskPartition
from tidemill.spark.read.parts import WHOLE
from tidemill.spark.read.schema import envelope_type
from tidemill.spark.read.stream_reader import StreamReader
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAR = compose_ts(4_000_000_000_000)


def tikv(tidb: Tidb, **options: str) -> TikvOffsets:
    return TikvOffsets(read_options({"source": f"tikv://{tidb.pd_address}", "tables": "shop.*", **options}))


def mysql(sql: Client, **options: str) -> MysqlOffsets:
    given = {"source": sql.server.url(), "tables": f"{sql.database}.*", **options}
    return MysqlOffsets(read_options(given))


@pytest.mark.parametrize(
    ("options", "schema", "sentence"),
    [
        ({"tabels": "x.*"}, "", "option tabels: no such option; did you mean 'tables'"),
        ({"tables": "shop.item"}, "", "source.tables: no table matches 'shop.item'"),
        ({"tables": "shop.*", "ts": str(FAR)}, "", f"ts {FAR} is yet to come: tikv cluster"),
        (
            {"tables": "shop.*"},
            "colour string",
            "schema: there is no column colour; there are commit_ts, commit_time",
        ),
        ({"tables": "shop.*"}, "op int", "schema: column op is string, not int"),
    ],
)
def test_spark_shows_the_sentence(
    spark: SparkSession, tidb: Tidb, options: dict[str, str], schema: str, sentence: str
) -> None:
    tidb.execute("create table shop.orders (id bigint primary key)")
    reader = spark.read.format("tidemill").option("source", f"tikv://{tidb.pd_address}").options(**options)
    with pytest.raises(Exception, match=re.escape(sentence)):
        (reader.schema(schema) if schema else reader).load().collect()


def test_tables_that_match_nothing(tidb: Tidb, sql: Client) -> None:
    sql("CREATE TABLE item (id INT PRIMARY KEY)")
    for offsets in (tikv(tidb), mysql(sql, tables=f"{sql.database}.item,{sql.database}.nothing")):
        with pytest.raises(ConfigError, match=r"source.tables: no table matches"):
            offsets.tables()
        offsets.close()


def test_a_ts_that_is_yet_to_come(tidb: Tidb, sql: Client) -> None:
    for offsets in (tikv(tidb), mysql(sql)):
        with pytest.raises(ConfigError, match=f"ts {FAR} is yet to come"):
            offsets.at(FAR)
        offsets.close()


def test_a_position_that_is_yet_to_come_or_none(sql: Client) -> None:
    offsets = mysql(sql)
    with pytest.raises(
        ConfigError, match=r"binlog.999999:4 is yet to come: the binlog of mariadb server \d+ ends"
    ):
        offsets.at_position("binlog.999999:4")
    with pytest.raises(ConfigError, match="'4711' is not a binlog position"):
        offsets.at_position("4711")
    with pytest.raises(
        ConfigError, match=r"^'0-1-100' is a set of GTIDs: Spark begins at a file and offset$"
    ):
        offsets.at_position("0-1-100")
    offsets.close()


def test_what_tikv_has_collected(tidb: Tidb) -> None:
    tidb.execute("create table shop.orders (id bigint primary key)")
    then = tidb.tso()
    tidb.gc()
    offsets = tikv(tidb)
    sentence = f"what follows ts {then} may be gone: the GC safe point of tikv cluster .* is"
    with pytest.raises(SourceError, match=sentence):
        offsets.at(then)
    with pytest.raises(SourceError, match=sentence):
        offsets.check(ts_offset(then, offsets.source))
    offsets.close()


def test_a_binlog_that_is_purged(own: Client) -> None:
    own("CREATE TABLE item (id INT PRIMARY KEY)")
    offsets = mysql(own)
    start = offsets.latest()
    own("INSERT INTO item VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO item VALUES (2)")
    end = offsets.latest()
    offsets.close()
    last = end.position.partition(":")[0]
    purge = f"PURGE BINARY LOGS TO '{last}'"  # which spares what the server still uses itself
    eventually(lambda: own(purge, "SHOW BINARY LOGS")[0][0] == last)
    options = read_options({"source": own.server.url(), "tables": "shop.*"})
    with pytest.raises(
        SourceError, match=f"can't read the binlog from {start.position}: .*; the server holds"
    ):
        list(change_items(options, WHOLE, start, end))
    offsets = mysql(own)
    with pytest.raises(
        SourceError, match=f"what follows ts {start.ts - (60_000 << 18)} is gone: the binlog of"
    ):
        offsets.at(start.ts - (60_000 << 18))
    offsets.close()


def test_an_offset_of_another_source(tidb: Tidb, sql: Client) -> None:
    for offsets in (tikv(tidb), mysql(sql)):
        with pytest.raises(
            CheckpointError, match=r"the offset is of mariadb server 7, and .* is .*: connect to that"
        ):
            offsets.check(Offset(1, "binlog.000001:4", "mariadb server 7"))
        offsets.close()


def test_a_binlog_that_was_reset(sql: Client) -> None:
    offsets = mysql(sql)
    with pytest.raises(
        CheckpointError, match=r"the query is at binlog.999999:4, and the binlog of .* ends before"
    ):
        offsets.check(Offset(1, "binlog.999999:4", offsets.source))
    offsets.close()


@pytest.mark.parametrize("fields", [{}, 17, [1], {"index": 3}, {"ts": "3", "position": "x", "source": "y"}])
def test_a_checkpoint_of_another_query(fields: Any) -> None:
    with pytest.raises(
        CheckpointError, match="which isn't tidemill's: it lacks ts; give the query a checkpoint"
    ):
        Offset.read(json.loads(json.dumps(fields)))


def test_a_checkpoint_of_a_query_of_other_tables() -> None:
    options = read_options({"source": "tikv://pd:2379", "tables": "shop.a,shop.b"})
    start = {**Offset(1, "1", "x").fields(), "tables": ["shop.*"]}
    with pytest.raises(
        CheckpointError, match=r"is of the tables shop\.\*, and now they are shop\.a, shop\.b: keep them"
    ):
        StreamReader(options, Output(options, None, envelope_type())).latestOffset(start, ReadAllAvailable())


def test_a_source_that_does_not_answer(tmp_path: Path) -> None:
    options = read_options({"source": "mysql://127.0.0.1:1", "tables": "a.*", "sourceTimeout": "0"})
    start, end = Offset(1, "b.000001:4", "s"), Offset(2, "b.000001:9", "s")
    with pytest.raises(Retryable, match=r"127.0.0.1:1: Can't connect"):
        list(change_items(options, WHOLE, start, end))


def test_a_worker_with_another_program() -> None:
    partition = TaskPartition(WHOLE, None, Offset(1, "1", "x"))
    partition.planner.check()
    partition.planner._versions = "tidemill 0.0.1 on Python 3.8"
    with pytest.raises(
        ConfigError, match=r"the driver runs tidemill 0.0.1 on Python 3.8, this worker tidemill"
    ):
        partition.planner.check()


@pytest.mark.parametrize(
    ("master", "sentence"),
    [
        ("lokal", "master: 'lokal' is none; accepted: local"),
        ("sparkk://127.0.0.1:7077", "master: 'sparkk://127.0.0.1:7077' is none; accepted: local"),
        ("spark://127.0.0.1", "master: 'spark://127.0.0.1' is none; accepted: local"),
        ("spark://127.0.0.1:1", "master: spark://127.0.0.1:1 doesn't answer (127.0.0.1:1: "),
        (
            "spark://127.0.0.1:1,127.0.0.1:2",
            "doesn't answer (127.0.0.1:1: [Errno 111] Connection refused; 127",
        ),
        ("spark://127.0.0.1:70000", "master: spark://127.0.0.1:70000 doesn't answer (127.0.0.1:70000: "),
        ("spark://nowhere.invalid:7077", "doesn't answer (nowhere.invalid:7077: "),
    ],
)
def test_a_master_that_is_none(master: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        tidemill.spark.session(master=master)


def test_without_pyspark_it_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['pyspark'] = None; import tidemill.spark; tidemill.spark.session()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "ConfigError: Spark needs: pip install 'tidemill[spark]'" in done.stderr.splitlines()[-1]
