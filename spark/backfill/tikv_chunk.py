"""Chunks of a TiKV cluster's tables: planned by regions, read at one ts."""

from __future__ import annotations

from itertools import count, pairwise
from typing import Final

from ...chain.selection.tables import TablePatterns
from ...codec.tidb.table import to_table
from ...codec.tidb.table_info import encode_table_info
from ...errors import ConfigError, SourceError
from ...events import Ts
from ...failpoint import reach
from ...puller.tikv.client import TikvClient, connected
from ...puller.tikv.kv.region_bounds import region_bounds
from ...puller.tikv.options import TikvOptions
from ...puller.tikv.schema import TableNames, read_schema
from ...puller.tikv.span import raw_span
from ...snapshot.tikv.ranges import RawRange, has_integer_order, row_ranges
from ...snapshot.tikv.reads import all_rows
from ...sources.source import no_table_matches
from .chunk_file import PIECE_BYTES, ChunkWriter
from .directory import READ, BackfillDirectory
from .options import BackfillOptions
from .plan import STRIDE, BackfillPlan, ChunkPlan, TablePlan, new_uid

_PIECE_ROWS: Final = 1000


def plan_tikv(client: TikvClient, wanted: TablePatterns, settings: BackfillOptions, ts: Ts) -> BackfillPlan:
    """Plan the chunks at `ts`; 0: now.

    Raises ConfigError for patterns and a future ts, Retryable and SourceError.
    """
    now = client.run(client.pd.tso())
    if ts > now:
        raise ConfigError(f"option ts = {ts}: it is yet to come, the cluster has come to {now}")
    at = ts or now
    schema = TableNames(wanted)
    client.run(read_schema(client.kv, at, schema))
    if unmatched := wanted.unmatched(schema.names):
        raise ConfigError(no_table_matches(unmatched, schema.names))
    numbers = count()
    tables = []
    for name, info in schema.with_rows:
        own = next(numbers)
        spans = [span for rows in row_ranges(info) for span in _chunks(client, rows, settings.chunk_regions)]
        chunks = tuple(ChunkPlan(next(numbers), start=start, end=end) for start, end in spans)
        table = to_table(name, info)
        tables.append(TablePlan(own, table, chunks, has_integer_order(info), info=encode_table_info(info)))
    after = next(numbers)
    return BackfillPlan(
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


def _chunks(client: TikvClient, rows: RawRange, regions: int) -> list[RawRange]:
    """Cut the raw keys at the bounds of every n-th region."""
    (bounds,) = client.run(region_bounds(client.cache, [raw_span(*rows)]))
    start, end = rows
    return list(pairwise([start, *bounds[regions - 1 :: regions], end]))


def read_tikv(options: TikvOptions, directory: BackfillDirectory, plan: BackfillPlan, number: int) -> None:
    """Read one chunk. Raises Retryable and Fatal."""
    table, chunk = plan.find(number)
    with connected(options) as client:
        if f"tikv cluster {client.pd.cluster_id}" != plan.source:
            raise SourceError(f"{options.address} isn't {plan.source}, which the backfill is of")
        writer = ChunkWriter(directory, READ, plan, table, number)
        try:
            ranges = [(chunk.start, chunk.end)]
            for pairs in all_rows(client, ranges, int(plan.position), _PIECE_ROWS, PIECE_BYTES):
                writer.add_pairs(*pairs)
            reach("snapshot.chunk_read")
            writer.finish(plan.position, plan.position)
        except BaseException:
            writer.discard()
            raise
