"""The command group `tidemill bench`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Final

import typer

from .. import config
from .flags import Json

bench = typer.Typer(
    no_args_is_help=True,
    help="Run a benchmark of tidemill beside one of a yardstick.\n\n    tidemill bench mysql",
)

_PLAIN: Final = {
    "actors": "Measure tells, asks and 100,000 actors, against pykka.",
    "snapshot": "Measure a snapshot of MariaDB, against a plain SELECT.",
    "mysql": "Measure MariaDB to Python and to MariaDB.\n\n"
    "Yardsticks are mysql-replication and mariadb-dump.",
    "sink": "Measure SQL targets and diff, against bare drivers.",
    "diff": "Measure the diff of equal tables, against a plain SELECT.",
    "verify": "Measure a feed that verifies its target.\n\nThe yardstick is the feed alone.",
    "serve": "Measure a feed beside clients of its server.\n\nThe yardstick is the feed alone.",
    "puller": "Measure the TiKV puller, against a bare gRPC client.",
    "pump": "Measure the merge of pumps, against bare gRPC clients.",
    "flight": "Measure a capture, against a bare Arrow Flight server.",
    "spark": "Measure Spark reads of a capture and of a table.\n\n"
    "Yardsticks are plain batches and Spark's JDBC.",
    "spark-typed": "Measure typed Spark streams, against batches from a file.",
    "backfill": "Measure a backfill of MariaDB, against the same query.",
    "tikv": "Measure TiKV to Python, against a bare gRPC client.",
}
"""Help texts of the benchmarks without settings of their own."""


@bench.command("sorter")
def bench_sorter(
    engine: Annotated[str, typer.Option(help="Sorter: db, unified or memory")] = "db",
    tables: Annotated[int, typer.Option(min=1, help="Number of tables")] = 16,
    events: Annotated[int, typer.Option(min=1, help="Number of row changes")] = 1_000_000,
    mode: Annotated[
        str, typer.Option(help="Part to measure: write, fetch, both, latency or tables")
    ] = "both",
    memory_tier: Annotated[str, typer.Option(help='Maximum size in memory, such as 0 or "64MiB"')] = "64MiB",
    layout: Annotated[str, typer.Option(help="Form on disk: block, or event as in the original")] = "block",
    stores: Annotated[int, typer.Option(min=1, help="Number of RocksDB instances")] = 1,
    as_json: Json = False,
) -> None:
    """Measure a sorter, against bare loops over RocksDB.

    tidemill bench sorter --mode write --json
    """
    size = config.parse_bytes(int(memory_tier) if memory_tier.isdigit() else memory_tier, "--memory-tier")
    disk = {"memory_tier": size, "layout": layout, "stores": stores}
    _bench("sorter", as_json, engine=engine, tables=tables, events=events, mode=mode, **disk)


@bench.command("kafka")
def bench_kafka(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows")] = 200_000,
    encoding: Annotated[
        str, typer.Option(help="Message encoding; any with one row per message")
    ] = "canal-json",
    as_json: Json = False,
) -> None:
    """Measure a Kafka target, against a bare producer loop.

    tidemill bench kafka --rows 100000 --json
    """
    _bench("kafka", as_json, rows=rows, encoding=encoding)


@bench.command("parquet")
def bench_parquet(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows")] = 4_000_000,
    as_json: Json = False,
) -> None:
    """Measure MariaDB to Parquet files.

    Yardsticks are a Python callback and a bare Arrow writer.

        tidemill bench parquet --json
    """
    _bench("parquet", as_json, rows=rows)


@bench.command("lake")
def bench_lake(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows of the copy")] = 1_000_000,
    keys: Annotated[int, typer.Option(min=1, help="Number of scattered keys that change")] = 10,
    tables: Annotated[int, typer.Option(min=1, help="Number of tables with few rows")] = 100,
    seconds: Annotated[float, typer.Option(min=1, help="Time for which freshness is measured")] = 20.0,
    parts: Annotated[
        str,
        typer.Option(help="Parts to measure: history, copy, iceberg, tables, compaction, freshness"),
    ] = "history,copy,iceberg,tables,compaction,freshness",
    as_json: Json = False,
) -> None:
    """Measure lakes: changes, present rows, upkeep, freshness.

    Yardsticks are delta-rs, pyiceberg and Spark on the same rows.

        tidemill bench lake --rows 100000 --json
    """
    _bench("lake", as_json, rows=rows, keys=keys, tables=tables, seconds=seconds, parts=parts)


@bench.command("shards")
def bench_shards(
    rows: Annotated[int, typer.Option(min=1, help="Number of rows")] = 100_000,
    as_json: Json = False,
) -> None:
    """Measure twelve MariaDB shards merged into one table.

    The yardstick is a single table.

        tidemill bench shards --json
    """
    _bench("shards", as_json, rows=rows)


@bench.command("feeds")
def bench_feeds(
    source: Annotated[str, typer.Option(help="Kind of the source: tikv or mysql")] = "tikv",
    feeds: Annotated[int, typer.Option(min=1, help="Number of feeds")] = 200,
    tables: Annotated[int, typer.Option(min=1, help="Number of tables of each feed")] = 10,
    as_json: Json = False,
) -> None:
    """Measure idle feeds of one server.

    The yardstick is a process for each feed.

        tidemill bench feeds --feeds 50 --json
    """
    _bench("feeds", as_json, source=source, feeds=feeds, tables=tables)


def _plain(name: str) -> Callable[[bool], None]:
    def command(as_json: Json = False) -> None:
        _bench(name, as_json)

    return command


for _name, _about in _PLAIN.items():
    bench.command(_name, help=f"{_about}\n\n    tidemill bench {_name} --json")(_plain(_name))


def _bench(name: str, as_json: bool, **settings: object) -> None:
    from ..benchmarks.report import measured, report

    result = measured(name, **settings)
    typer.echo(json.dumps(result) if as_json else report(result))
