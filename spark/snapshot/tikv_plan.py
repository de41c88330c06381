"""Division of a TiKV table's snapshot into parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import groupby, pairwise

from pyspark.sql.datasource import Filter

from ...chain.selection.tables import TablePatterns
from ...codec.tidb.columns import columns_of
from ...codec.tidb.key import encode_bytes
from ...codec.tidb.table import to_table
from ...codec.tidb.table_info import TableInfo, partition_ids
from ...errors import ConfigError
from ...puller.tikv.client import TikvClient, held
from ...puller.tikv.kv.region_bounds import region_bounds
from ...puller.tikv.schema import TableNames, read_schema
from ...puller.tikv.span import raw_span
from ...snapshot.tikv.ranges import RawRange
from ...sources.source import no_table_matches
from ..offsets.tikv import TikvOffsets
from ..read.options import ReadOptions
from .key_ranges import key_ranges
from .partition import TikvPartition
from .row_filter import row_filters


def plan(options: ReadOptions, filters: Sequence[Filter]) -> list[TikvPartition]:
    """Divide the rows of the option `table` as of its `ts`, or of now, by regions.

    The table has its definition as of then; a table that didn't exist has no rows. Raises Retryable and
    Fatal.
    """
    with closing(TikvOffsets(options)) as offsets:
        at = offsets.at(options.ts) if options.ts else offsets.latest()
        client = offsets.client
        with held(client, options.name, at.ts):
            wanted = TablePatterns.parse(options.patterns)
            names = TableNames(wanted)
            client.run(read_schema(client.kv, at.ts, names))
            if not options.ts and (unmatched := wanted.unmatched(names.names)):
                raise ConfigError(no_table_matches(unmatched, names.names))
            return [
                TikvPartition(number, schema, info, at, ranges)
                for schema, info in names.with_rows
                for number, ranges in enumerate(_parts(options, client, schema, info, filters))
            ]


def _parts(
    options: ReadOptions, client: TikvClient, schema: str, info: TableInfo, filters: Sequence[Filter]
) -> list[list[RawRange]]:
    """Return the ranges of up to `partitions` parts, with about the same number of regions."""
    conditions = row_filters(to_table(schema, info), filters)
    ranges = key_ranges(columns_of(schema, info), partition_ids(info) or (info.id,), conditions)
    count = options.partitions if options.split_tables else 1
    regions = [ranges] if count == 1 and ranges else client.run(_by_region(client, ranges))
    count = min(count, len(regions))
    edges = [number * len(regions) // count for number in range(count)] + [len(regions)]
    return [[one for region in regions[low:high] for one in region] for low, high in pairwise(edges)]


async def _by_region(client: TikvClient, ranges: Sequence[RawRange]) -> list[list[RawRange]]:
    """Cut the ranges, which are in key order, at the bounds of regions; return those of each region."""
    bounds = await region_bounds(client.cache, [raw_span(*one) for one in ranges])
    pieces = [
        piece
        for (start, end), inner in zip(ranges, bounds, strict=True)
        for piece in pairwise([start, *inner, end])
    ]
    ids = [(await client.cache.locate(encode_bytes(start))).id for start, _ in pieces]
    regions = groupby(zip(ids, pieces, strict=True), key=lambda one: one[0])
    return [[piece for _, piece in group] for _, group in regions]
