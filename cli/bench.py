"""The command group `tidemill bench`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from .. import config
from .flags import Json

bench = typer.Typer(no_args_is_help=True, help="Measure tidemill beside a yardstick in the same run.")


@bench.command("actors")
def bench_actors(as_json: Json = False) -> None:
    """Measure tells, asks and 100,000 actors, against pykka."""
    _bench("actors", as_json)


@bench.command("sorter")
def bench_sorter(
    engine: Annotated[str, typer.Option(help="Sorter: db, unified or memory")] = "db",
    tables: Annotated[int, typer.Option(min=1, help="Number of tables")] = 16,
    events: Annotated[int, typer.Option(min=1, help="Number of row changes")] = 1_000_000,
    mode: Annotated[
        str, typer.Option(help="Part to measure: write, fetch, both, latency or tables")
    ] = "both",
    memory_tier: Annotated[str, typer.Option(help='Maximum size in memory, such as 0 or "64MiB"')] = "64MiB",
    as_json: Json = False,
) -> None:
    """Measure a sorter, against bare loops over RocksDB."""
    size = config.parse_bytes(int(memory_tier) if memory_tier.isdigit() else memory_tier, "--memory-tier")
    _bench("sorter", as_json, engine=engine, tables=tables, events=events, mode=mode, memory_tier=size)


@bench.command("snapshot")
def bench_snapshot(as_json: Json = False) -> None:
    """Measure a snapshot of MariaDB, against a plain SELECT."""
    _bench("snapshot", as_json)


@bench.command("mysql")
def bench_mysql(as_json: Json = False) -> None:
    """Measure MariaDB to Python and to MariaDB.

    Yardsticks are mysql-replication and mariadb-dump.
    """
    _bench("mysql", as_json)


@bench.command("runs")
def bench_runs(
    large_rows: Annotated[
        int, typer.Option(min=1, help="Number of rows written in large transactions")
    ] = 100_000,
    as_json: Json = False,
) -> None:
    """Measure MariaDB to each kind of sink and to Spark.

    The native decoder is measured against the Python decoder.
    """
    _bench("runs", as_json, large_rows=large_rows)


@bench.command("columns")
def bench_columns(as_json: Json = False) -> None:
    """Measure the native decoder of MariaDB rows.

    The yardstick is the decoder in Python.
    """
    _bench("columns", as_json)


@bench.command("catalog")
def bench_catalog(
    tables: Annotated[int, typer.Option(min=1, help="Number of tables")] = 10_000,
    as_json: Json = False,
) -> None:
    """Measure a feed with thousands of MariaDB tables.

    Measures start, an ALTER of each table, memory, lag and restart.
    """
    _bench("catalog", as_json, tables=tables)


@bench.command("sink")
def bench_sink(as_json: Json = False) -> None:
    """Measure SQL targets and diff, against bare drivers."""
    _bench("sink", as_json)


@bench.command("encodings")
def bench_encodings(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows")] = 50_000,
    as_json: Json = False,
) -> None:
    """Measure each message encoding, against json.dumps."""
    _bench("encodings", as_json, rows=rows)


@bench.command("kafka")
def bench_kafka(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows")] = 200_000,
    encoding: Annotated[
        str, typer.Option(help="Message encoding; any with one row per message")
    ] = "canal-json",
    as_json: Json = False,
) -> None:
    """Measure a Kafka target, against a bare producer loop."""
    _bench("kafka", as_json, rows=rows, encoding=encoding)


@bench.command("parquet")
def bench_parquet(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows")] = 4_000_000,
    as_json: Json = False,
) -> None:
    """Measure MariaDB to Parquet files.

    Yardsticks are a Python callback and a bare Arrow writer.
    """
    _bench("parquet", as_json, rows=rows)


@bench.command("storage")
def bench_storage(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows")] = 200_000,
    as_json: Json = False,
) -> None:
    """Measure Parquet files in S3, against a bare Arrow writer."""
    _bench("storage", as_json, rows=rows)


@bench.command("merge")
def bench_merge(
    entries: Annotated[int, typer.Option(min=1, help="Number of transactions")] = 200_000,
    as_json: Json = False,
) -> None:
    """Measure the merge of several sources.

    The yardstick is a barrier at which the sources' threads wait.
    """
    _bench("merge", as_json, entries=entries)


@bench.command("diff")
def bench_diff(as_json: Json = False) -> None:
    """Measure the diff of equal tables, against a plain SELECT."""
    _bench("diff", as_json)


@bench.command("shards")
def bench_shards(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows")] = 100_000,
    as_json: Json = False,
) -> None:
    """Measure twelve MariaDB shards merged into one table.

    The yardstick is a single table.
    """
    _bench("shards", as_json, rows=rows)


@bench.command("puller")
def bench_puller(as_json: Json = False) -> None:
    """Measure the TiKV puller, against a bare gRPC client."""
    _bench("puller", as_json)


@bench.command("pump")
def bench_pump(as_json: Json = False) -> None:
    """Measure the merge of pumps, against bare gRPC clients."""
    _bench("pump", as_json)


@bench.command("mount")
def bench_mount(as_json: Json = False) -> None:
    """Measure the decoder of TiDB rows, against bare loops."""
    _bench("mount", as_json)


@bench.command("flight")
def bench_flight(as_json: Json = False) -> None:
    """Measure a capture, against a bare Arrow Flight server."""
    _bench("flight", as_json)


@bench.command("spark")
def bench_spark(as_json: Json = False) -> None:
    """Measure Spark reads of a capture and of a table.

    Yardsticks are plain batches and Spark's JDBC.
    """
    _bench("spark", as_json)


@bench.command("spark-typed")
def bench_spark_typed(as_json: Json = False) -> None:
    """Measure typed Spark streams, against batches from a file."""
    _bench("spark-typed", as_json)


@bench.command("backfill")
def bench_backfill(as_json: Json = False) -> None:
    """Measure a backfill of MariaDB, against the same query."""
    _bench("backfill", as_json)


@bench.command("tikv")
def bench_tikv(as_json: Json = False) -> None:
    """Measure TiKV to Python, against a bare gRPC client."""
    _bench("tikv", as_json)


def _bench(name: str, as_json: bool, **settings: object) -> None:
    from ..benchmarks.report import measured, report

    result = measured(name, **settings)
    typer.echo(json.dumps(result) if as_json else report(result))
