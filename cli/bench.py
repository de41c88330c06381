"""The command group `tidemill bench`."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from .. import config
from .flags import Json

bench = typer.Typer(no_args_is_help=True, help="Measure, each figure beside a yardstick of the same run.")


@bench.command("actors")
def bench_actors(as_json: Json = False) -> None:
    """Tells, asks and 100,000 actors, against pykka.ThreadingActor."""
    _bench("actors", as_json)


@bench.command("sorter")
def bench_sorter(
    engine: Annotated[str, typer.Option(help="db, unified or memory")] = "db",
    tables: Annotated[int, typer.Option(min=1)] = 16,
    events: Annotated[int, typer.Option(min=1)] = 1_000_000,
    mode: Annotated[str, typer.Option(help="write, fetch, both, latency or tables")] = "both",
    memory_tier: Annotated[str, typer.Option(help='bytes that stay in memory, as 0 or "64MiB"')] = "64MiB",
    as_json: Json = False,
) -> None:
    """Workload W1 through a sorter, against bare loops over RocksDB."""
    size = config.parse_bytes(int(memory_tier) if memory_tier.isdigit() else memory_tier, "--memory-tier")
    _bench("sorter", as_json, engine=engine, tables=tables, events=events, mode=mode, memory_tier=size)


@bench.command("snapshot")
def bench_snapshot(as_json: Json = False) -> None:
    """Four MariaDB tables to Python, against a plain SELECT by pymysql."""
    _bench("snapshot", as_json)


@bench.command("mysql")
def bench_mysql(as_json: Json = False) -> None:
    """MariaDB to Python and to MariaDB, against mysql-replication and mariadb-dump."""
    _bench("mysql", as_json)


@bench.command("runs")
def bench_runs(
    large_rows: Annotated[int, typer.Option(min=1)] = 100_000,
    as_json: Json = False,
) -> None:
    """MariaDB to each kind of sink and to Spark's tasks, natively, against the decoder in Python."""
    _bench("runs", as_json, large_rows=large_rows)


@bench.command("columns")
def bench_columns(as_json: Json = False) -> None:
    """Rows of MariaDB to tuples and Arrow columns natively, against the decoder in Python."""
    _bench("columns", as_json)


@bench.command("catalog")
def bench_catalog(
    tables: Annotated[int, typer.Option(min=1)] = 10_000,
    as_json: Json = False,
) -> None:
    """A feed of very many MariaDB tables: start, an ALTER of each, memory, lag, restart."""
    _bench("catalog", as_json, tables=tables)


@bench.command("sink")
def bench_sink(as_json: Json = False) -> None:
    """Rows into SQLite, MariaDB and PostgreSQL, and their comparison, against bare drivers."""
    _bench("sink", as_json)


@bench.command("encodings")
def bench_encodings(
    rows: Annotated[int, typer.Option(min=1)] = 50_000,
    as_json: Json = False,
) -> None:
    """Rows to messages of each encoding, against json.dumps of the same dictionaries."""
    _bench("encodings", as_json, rows=rows)


@bench.command("kafka")
def bench_kafka(
    rows: Annotated[int, typer.Option(min=1)] = 200_000,
    encoding: Annotated[str, typer.Option(help="one row a message: any but open-protocol")] = "canal-json",
    as_json: Json = False,
) -> None:
    """Rows into a private Kafka, against a bare loop of its driver with the same messages."""
    _bench("kafka", as_json, rows=rows, encoding=encoding)


@bench.command("parquet")
def bench_parquet(
    rows: Annotated[int, typer.Option(min=1)] = 4_000_000,
    as_json: Json = False,
) -> None:
    """MariaDB into Parquet files, against a Python callback and Arrow's writer alone."""
    _bench("parquet", as_json, rows=rows)


@bench.command("storage")
def bench_storage(
    rows: Annotated[int, typer.Option(min=1)] = 200_000,
    as_json: Json = False,
) -> None:
    """Rows into Parquet files of an S3-compatible store, against Arrow's write_table of the same tables."""
    _bench("storage", as_json, rows=rows)


@bench.command("merge")
def bench_merge(
    entries: Annotated[int, typer.Option(min=1)] = 200_000,
    as_json: Json = False,
) -> None:
    """The merge queue of several sources, against a barrier at which their threads wait."""
    _bench("merge", as_json, entries=entries)


@bench.command("diff")
def bench_diff(as_json: Json = False) -> None:
    """Comparison of equal tables, against a plain SELECT of all columns on both sides."""
    _bench("diff", as_json)


@bench.command("shards")
def bench_shards(
    rows: Annotated[int, typer.Option(min=1)] = 100_000,
    as_json: Json = False,
) -> None:
    """Twelve shards of MariaDB into one table, against one table, and while a schema change waits."""
    _bench("shards", as_json, rows=rows)


@bench.command("puller")
def bench_puller(as_json: Json = False) -> None:
    """TiKV's change feed up to a table's writer, against a bare gRPC client."""
    _bench("puller", as_json)


@bench.command("pump")
def bench_pump(as_json: Json = False) -> None:
    """Three pumps to their merged order, against bare gRPC clients."""
    _bench("pump", as_json)


@bench.command("mount")
def bench_mount(as_json: Json = False) -> None:
    """TiDB's rows to Python values, against loops written for one table."""
    _bench("mount", as_json)


@bench.command("flight")
def bench_flight(as_json: Json = False) -> None:
    """A capture's answers, against a plain Arrow Flight server with the same batches."""
    _bench("flight", as_json)


@bench.command("spark")
def bench_spark(as_json: Json = False) -> None:
    """A capture's changes into Spark, against the same batches; a table of MariaDB, against Spark's JDBC."""
    _bench("spark", as_json)


@bench.command("spark-typed")
def bench_spark_typed(as_json: Json = False) -> None:
    """A typed stream of Spark from MariaDB and from a capture, against the same batches from a file."""
    _bench("spark-typed", as_json)


@bench.command("backfill")
def bench_backfill(as_json: Json = False) -> None:
    """MariaDB's rows into sorted files, against the same query by plain pymysql."""
    _bench("backfill", as_json)


@bench.command("tikv")
def bench_tikv(as_json: Json = False) -> None:
    """TiKV to Python, the whole way, against a bare gRPC client."""
    _bench("tikv", as_json)


def _bench(name: str, as_json: bool, **settings: Any) -> None:
    from ..benchmarks.report import measured, report

    result = measured(name, **settings)
    typer.echo(json.dumps(result) if as_json else report(result))
