"""Chunks of a TiKV cluster's tables: planned by regions, read at one ts."""

from __future__ import annotations

from itertools import count, pairwise
from typing import Final, TypeAlias

from ...chain.selection.tables import TablePatterns
from ...codec.tidb.column_type import ColumnFlag
from ...codec.tidb.key import record_span
from ...codec.tidb.table import to_table
from ...codec.tidb.table_info import TableInfo, encode_table_info, partition_ids
from ...errors import ConfigError, SourceError
from ...events import Ts
from ...failpoint import reach
from ...puller.tikv.client import TikvClient
from ...puller.tikv.kv.region_bounds import region_bounds
from ...puller.tikv.options import TikvOptions
from ...puller.tikv.schema import read_schema
from ...puller.tikv.span import table_span
from ...sources.source import no_table_matches
from ..snapshot.tikv_reads import RowTables, connected, read_pairs
from .chunk_file import PIECE_BYTES, ChunkWriter
from .directory import READ, Directory
from .options import BackfillOptions
from .plan import STRIDE, ChunkPlan, Plan, TablePlan, new_uid

_PIECE_ROWS: Final = 1000
_Pair: TypeAlias = tuple[bytes, bytes]


def plan_tikv(client: TikvClient, wanted: TablePatterns, settings: BackfillOptions, ts: Ts) -> Plan:
    """Plan the chunks at `ts`; 0: now.

    Raises ConfigError for patterns and a future ts, Retryable and SourceError.
    """
    now = client.run(client.pd.tso())
    if ts > now:
        raise ConfigError(f"option ts = {ts}: it is yet to come, the cluster has come to {now}")
    at = ts or now
    schema = RowTables(wanted)
    client.run(read_schema(client.kv, at, schema))
    if unmatched := wanted.unmatched(schema.names):
        raise ConfigError(no_table_matches(unmatched, schema.names))
    numbers = count()
    tables = []
    for name, info in schema.tables:
        own = next(numbers)
        spans = [
            span
            for physical_id in partition_ids(info) or (info.id,)
            for span in _chunks(client, physical_id, settings.chunk_regions)
        ]
        chunks = tuple(ChunkPlan(next(numbers), start=start, end=end) for start, end in spans)
        table = to_table(name, info)
        tables.append(TablePlan(own, table, chunks, _by_handle(info), info=encode_table_info(info)))
    after = next(numbers)
    return Plan(
        "tikv",
        new_uid(),
        f"tikv cluster {client.pd.cluster_id}",
        wanted.patterns,
        str(at),
        "",
        at - after * STRIDE,
        tuple(tables),
        after,
    )


def _by_handle(info: TableInfo) -> bool:
    """True if the keys sort as integer handles in one keyspace."""
    wanted = ColumnFlag.PRI_KEY | ColumnFlag.UNSIGNED
    unsigned = any(column.flags & wanted == wanted for column in info.columns)
    return info.pk_is_handle and not partition_ids(info) and not unsigned


def _chunks(client: TikvClient, physical_id: int, regions: int) -> list[_Pair]:
    """Cut the raw keys at the bounds of every n-th region."""
    (bounds,) = client.run(region_bounds(client.cache, [table_span(physical_id)]))
    start, end = record_span(physical_id)
    return list(pairwise([start, *bounds[regions - 1 :: regions], end]))


def read_tikv(options: TikvOptions, directory: Directory, plan: Plan, number: int) -> None:
    """Read one chunk. Raises Retryable and Fatal."""
    table, chunk = plan.find(number)
    with connected(options) as client:
        if f"tikv cluster {client.pd.cluster_id}" != plan.source:
            raise SourceError(f"{options.address} isn't {plan.source}, which the backfill is of")
        writer = ChunkWriter(directory, READ, plan, table, number)
        try:
            ranges = [(chunk.start, chunk.end)]
            for pairs in read_pairs(client, ranges, int(plan.position), _PIECE_ROWS, PIECE_BYTES):
                writer.add_pairs(*pairs)
            reach("snapshot.chunk_read")
            writer.finish(plan.position, plan.position)
        except BaseException:
            writer.discard()
            raise
