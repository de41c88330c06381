"""A TiKV table into Spark: `spark.read` of a snapshot, against a file of the same Arrow batches."""

from __future__ import annotations

from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ..codec.tidb.key import record_key
from ..emulator.sql.sql import Tidb
from ..events import Row
from ..spark.data_source import TidemillSource
from ..spark.read.batch_reader import BatchReader
from .spark_source import FileSource
from .turns import Server, serve_until_ended

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS: Final = (
    "id bigint primary key, big bigint unsigned, price decimal(12,2), ratio double, name varchar(60),"
    " at datetime, flag tinyint, note text"
)
_REGIONS: Final = 8
_BLOCK: Final = 1_000
_BEGIN: Final = datetime.fromisoformat("2026-03-01T04:05:06")


def serve(pipe: Connection, rows: int) -> None:
    """Serve a cluster with a table of `rows` rows; see `turns.serving`."""
    with closing(Tidb(stores=1, tick_seconds=None)) as tidb:
        tidb.execute("create database bench")
        tidb.execute(f"create table bench.item ({_COLUMNS})")
        table = tidb.schema.table("bench.item")
        for region in range(1, _REGIONS):
            tidb.split(record_key(table.info.id, region * rows // _REGIONS))
        for first in range(0, rows, _BLOCK):
            pairs = [table.encoder.encode(_row(id_)) for id_ in range(first, min(first + _BLOCK, rows))]
            tidb.write([("put", key, value) for key, value in pairs])
        serve_until_ended(pipe, {"pd": tidb.pd_address})


def _row(id_: int) -> Row:
    big, price = (1 << 63) + id_, Decimal(id_ % 10_000) / 4
    return id_, big, price, id_ / 7, f"name of {id_}", _BEGIN + timedelta(seconds=id_), id_ % 100, "n" * 40


def frames(spark: SparkSession, folder: Path, server: Server) -> dict[str, tuple[DataFrame, DataFrame]]:
    """Return the frames of tidemill and of the file, of one task and of two."""
    spark.dataSource.register(FileSource)
    options = {"source": f"tikv://{server['pd']}", "table": "bench.item"}
    path = str(folder / "tikv")
    _write_file(path, options)
    pairs = {}
    for name, tasks in (("tikv_one", 1), ("tikv", 2)):
        ours = spark.read.format("tidemill").options(**options, partitions=tasks).load()
        theirs = spark.read.format("bench-file").schema(ours.schema).options(path=path, tasks=tasks).load()
        pairs[name] = ours, theirs
    return pairs


def _write_file(path: str, options: dict[str, str]) -> None:
    source = TidemillSource(options)
    reader = source.reader(source.schema())
    assert isinstance(reader, BatchReader)
    with pa.ipc.new_file(path, reader.output.schema) as writer:
        for part in reader.partitions():
            for batch in reader.read(part):
                writer.write_batch(batch)
