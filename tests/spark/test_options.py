"""Options of the data source."""

from __future__ import annotations

import pytest

from tidemill.errors import ConfigError
from tidemill.events import compose_ts
from tidemill.puller.mysql.options import MysqlOptions
from tidemill.puller.tikv.options import TikvOptions
from tidemill.spark.offsets.offset import Limit
from tidemill.spark.read.options import ReadOptions, of_batch, of_stream, read_options
from tidemill.spark.read.parts import WHOLE

MYSQL = {"source": "mysql://u:p@h:3307", "tables": "shop.*"}
TIKV = {"source": "tikv://pd:2379", "tables": "shop.*"}


def test_names_are_read_in_any_case_and_values_by_their_kind() -> None:
    found = read_options(
        MYSQL
        | {"SORTERMEMORY": "1MiB", "partitions": "4", "operations": "Insert, delete", "maxrowsperbatch": "9"}
    )
    assert (found.sorter_bytes, found.partitions, found.operations) == (1 << 20, 4, ("insert", "delete"))
    assert found.limit == Limit(rows=9, bytes=256 << 20)


def test_patterns_are_separated_by_commas() -> None:
    assert read_options(MYSQL | {"tables": "a.*, !a.b ,"}).patterns == ("a.*", "!a.b")


def test_one_table_is_its_own_pattern() -> None:
    found = read_options({"source": MYSQL["source"], "table": "shop.orders"})
    assert (found.table, found.patterns) == ("shop.orders", ("shop.orders",))


def test_a_ts_may_be_a_time() -> None:
    found = read_options(TIKV | {"fromTs": "2026-11-21T08:00:00Z", "toTs": "2026-11-21 09:00:00.5"})
    assert (found.from_ts, found.to_ts) == (compose_ts(1_795_248_000_000), compose_ts(1_795_251_600_500))


def test_options_of_the_source_go_to_it_as_what_they_are(tmp_path) -> None:
    found = read_options(MYSQL | {"source.ssl_verify_identity": "true", "source.heartbeat_seconds": "0.5"})
    source = found.feed(tmp_path, WHOLE).source.options
    assert isinstance(source, MysqlOptions)
    assert (source.ssl_verify_identity, source.heartbeat_seconds, source.port) == (True, 0.5, 3307)
    found = read_options(TIKV | {"source.ca_path": "/ca", "source.max_prewrite_bytes": "1MiB"})
    source = found.feed(tmp_path, WHOLE).source.options
    assert isinstance(source, TikvOptions)
    assert (str(source.ca_path), source.max_prewrite_bytes) == ("/ca", 1 << 20)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"tables": "a.*"}, "option source: missing; a URL such as mysql://"),
        ({"source": "kafka://h"}, "option source = 'kafka://h': a URL such as mysql://"),
        ({"source": "tikv://pd:2379"}, "option tables: give either tables, .* or table"),
        (TIKV | {"filterPushdown": "yes"}, "option filterPushdown = 'yes': accepted: true, false"),
        (TIKV | {"table": "a.b"}, "option tables: give either tables, .* or table"),
        ({"source": "tikv://pd:2379", "table": "shop.*"}, r"option table = 'shop.\*': the name of one table"),
        (TIKV | {"tables": " , "}, "option tables: give either tables, .* or table"),
        (TIKV | {"tables": "orders"}, "tables: 'orders' is not a pattern"),
        (
            TIKV | {"partition": "3"},
            r"option partition: no such option; did you mean 'partitions'\?",
        ),
        (TIKV | {"partitions": "0"}, "option partitions = '0': expected `int` >= 1"),
        (TIKV | {"values": "xml"}, "option values = 'xml': 'xml' is none of 'json', 'none'"),
        (
            TIKV | {"operations": "truncate"},
            "option operations = 'truncate': 'truncate' is none of 'insert', 'update', 'delete', 'ddl'",
        ),
        (
            TIKV | {"sorterMemory": "much"},
            "option sorterMemory = 'much': 'much' is not a size: give bytes",
        ),
        (TIKV | {"sourceTimeout": "nan"}, "option sourceTimeout = 'nan': expected `float`"),
        (TIKV | {"ts": "0"}, "option ts = '0': a TSO, or a time such as"),
        (TIKV | {"ts": "9223372036854775808"}, "option ts = '9223372036854775808': a TSO, or a time such as"),
        (TIKV | {"startingTs": "soon"}, "option startingTs = 'soon': latest, earliest, a TSO, or a time"),
        (TIKV | {"fromPosition": "7"}, "option fromPosition: TiKV has timestamps only"),
        (MYSQL | {"ts": "5"}, "option ts: MariaDB has only a snapshot of now"),
        (
            TIKV | {"ts": "5", "fromTs": "5"},
            "option ts: it is of a snapshot; fromTs and fromPosition are of changes",
        ),
        (TIKV | {"toTs": "5"}, "option toTs: changes have a beginning, too"),
        (MYSQL | {"toPosition": "binlog.000001:4"}, "option toPosition: changes have a beginning, too"),
        (TIKV | {"fromTs": "6", "toTs": "5"}, "option toTs = 5: at least fromTs, which is 6"),
        (
            MYSQL | {"fromTs": "6", "fromPosition": "b.01:4"},
            "option fromPosition: fromTs says where to begin, too",
        ),
        (MYSQL | {"source.server_id": "3"}, "option source.server_id: every task is a replica of its own"),
        (
            MYSQL | {"source.heartbeat_seconds": "x"},
            "option source.heartbeat_seconds = 'x': accepted: a number",
        ),
        (MYSQL | {"source.hearbeat_seconds": "1"}, "did you mean 'heartbeat_seconds'"),
        (TIKV | {"name": "a b"}, "option name = 'a b': up to 64 letters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_named_with_what_is_accepted(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read_options(given)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ts": "5"}, "option ts: a stream has changes only"),
        ({"fromTs": "5", "toTs": "6"}, "option fromTs: a stream begins at startingTs"),
        ({"filterPushdown": "true"}, "option filterPushdown: Spark pushes no filters to streams"),
    ],
)
def test_what_only_a_batch_has_is_refused_by_a_stream(given: dict[str, str], sentence: str) -> None:
    assert of_batch(read_options(TIKV | given)) == read_options(TIKV | given)
    with pytest.raises(ConfigError, match=sentence):
        of_stream(read_options(TIKV | given))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"startingTs": "earliest"}, "option startingTs: a batch of changes begins at fromTs"),
        ({"maxRowsPerBatch": "5"}, "option maxRowsPerBatch: a batch is read whole"),
        ({"capture": "a:1"}, "option capture: it is for streams"),
    ],
)
def test_what_only_a_stream_has_is_refused_by_a_batch(given: dict[str, str], sentence: str) -> None:
    assert of_stream(read_options(TIKV | given)) == read_options(TIKV | given)
    with pytest.raises(ConfigError, match=sentence):
        of_batch(read_options(TIKV | given))


def test_defaults_are_small() -> None:
    assert ReadOptions(url="").sorter_bytes == 64 << 20
