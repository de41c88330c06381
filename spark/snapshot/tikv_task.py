"""A task that reads a part of a TiKV table's snapshot."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, cast

import pyarrow as pa

from ...codec.tidb.row_decoder import RowDecoder
from ...codec.tidb.run import PairsRun
from ...errors import SourceError
from ...events import Table, Ts
from ...puller.tikv.client import TikvClient
from ...puller.tikv.options import TikvOptions
from ..read.options import ReadOptions
from ..read.pick import Pick
from ..read.schema_changes import EVOLVE
from ..read.typed import TypedEncoder
from .inserts import Inserts
from .key_ranges import RawRange
from .partition import TikvPartition
from .tikv_reads import connected, held

_BATCH_ROWS: Final = 4096
_BATCH_BYTES: Final = 1 << 20
"""Rows, or bytes of values, after which a batch is complete."""
_GROWTH: Final = 4
"""Maximum size of a request, in multiples of the option `scan_page`: a scan takes two thirds of the time."""

_Pairs: TypeAlias = tuple[list[bytes], list[bytes]]
"""Keys, and the value of each."""


def rows(options: ReadOptions, part: TikvPartition, table: Table) -> Generator[pa.RecordBatch]:
    """Yield the rows of the part with the columns of `table`, as inserts in key order.

    Only these columns, and the key's, are decoded. Closing the iterator ends the scan. Raises SourceError if
    a column had another type at the part's ts, Retryable after `sourceTimeout`, and Fatal.
    """
    source = cast("TikvOptions", options.source_options)
    seconds = options.source_timeout
    source = replace(source, pd_retry_seconds=seconds, store_retry_seconds=seconds)
    with connected(source) as client:
        if (found := f"tikv cluster {client.pd.cluster_id}") != part.at.source:
            raise SourceError(f"{source.address} is {found}, and the read was planned on {part.at.source}")
        with held(client, options.name, part.at.ts):
            encoder = _Encoder(options, part, table)
            pairs = _scan(client, part.ranges, part.at.ts)
            following = client.loop.begin(_take(pairs))
            while taken := following.result():
                following = client.loop.begin(_take(pairs))
                yield encoder.batch(taken)


class _Encoder:
    """Encodes keys and values as batches."""

    def __init__(self, options: ReadOptions, part: TikvPartition, table: Table) -> None:
        names = [column.name for column in table.columns]
        self._rows = RowDecoder(part.schema, part.info, only=names)
        self._ts = part.at.ts
        self._encoder = TypedEncoder(
            table,
            Pick(),
            invalid_dates=options.invalid_dates,
            widens=options.schema_changes == EVOLVE,
        )
        self._inserts = Inserts(self._encoder.schema, part.number, part.at.ts)

    def batch(self, pairs: _Pairs) -> pa.RecordBatch:
        ts, decoder = self._ts, self._rows
        run = PairsRun(ts, ts, decoder.table, "insert", None, decoder, *pairs)
        _, after = self._encoder.images([run])
        return self._inserts.batch(after if after.type.num_fields else pa.nulls(len(run), after.type))


async def _scan(client: TikvClient, ranges: Sequence[RawRange], ts: Ts) -> AsyncIterator[_Pairs]:
    """Yield the pairs of one request after the other."""
    for start, end in ranges:
        async for page in client.kv.pages(start, end, ts, _GROWTH):
            yield page


async def _take(found: AsyncIterator[_Pairs]) -> _Pairs | None:
    """Return the pairs of a batch; None at the end."""
    keys: list[bytes] = []
    values: list[bytes] = []
    size = 0
    async for more_keys, more in found:
        keys += more_keys
        values += more
        size += sum(map(len, more))
        if len(keys) >= _BATCH_ROWS or size >= _BATCH_BYTES:
            break
    return (keys, values) if keys else None
