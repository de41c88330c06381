"""A task that reads a part of a TiKV table's snapshot."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Final

import pyarrow as pa

from ...codec.tidb.changes import ChangesDecoder
from ...codec.tidb.run import inserts
from ...errors import SourceError
from ...events import Table
from ...puller.tikv.client import connected, held
from ...puller.tikv.options import TikvOptions
from ...snapshot.tikv.reads import Pairs, all_rows
from ..read.options import ReadOptions
from ..read.pick import Pick
from ..read.schema_changes import EVOLVE
from ..read.typed import TypedEncoder
from .inserts import Inserts
from .partition import TikvPartition

_BATCH_ROWS: Final = 4096
_BATCH_BYTES: Final = 1 << 20
"""Rows, or bytes of values, after which a batch is complete."""


def rows(options: ReadOptions, part: TikvPartition, table: Table) -> Generator[pa.RecordBatch]:
    """Yield the rows of the part with the columns of `table`, as inserts in key order.

    Only these columns, and the key's, are decoded. Closing the iterator ends the scan. Raises SourceError if
    a column had another type at the part's ts, Retryable after `sourceTimeout`, and Fatal.
    """
    source = options.source_as(TikvOptions)
    seconds = options.source_timeout
    source = replace(source, pd_retry_seconds=seconds, store_retry_seconds=seconds)
    with connected(source) as client:
        if (cluster := f"tikv cluster {client.pd.cluster_id}") != part.at.source:
            raise SourceError(f"{source.address} is {cluster}, and the read was planned on {part.at.source}")
        with held(client, options.name, part.at.ts):
            encoder = _Encoder(options, part, table)
            for pairs in all_rows(client, part.ranges, part.at.ts, _BATCH_ROWS, _BATCH_BYTES):
                yield encoder.batch(pairs)


class _Encoder:
    """Encodes keys and values as batches."""

    def __init__(self, options: ReadOptions, part: TikvPartition, table: Table) -> None:
        names = [column.name for column in table.columns]
        self._decoder = ChangesDecoder(part.schema, part.info, only=names)
        self._ts = part.at.ts
        self._encoder = TypedEncoder(
            table,
            Pick(),
            invalid_dates=options.invalid_dates,
            widens=options.schema_changes == EVOLVE,
        )
        self._inserts = Inserts(self._encoder.schema, part.number, part.at.ts)

    def batch(self, pairs: Pairs) -> pa.RecordBatch:
        run = inserts(self._decoder, self._ts, *pairs)
        _, after = self._encoder.images([run])
        return self._inserts.batch(after if after.type.num_fields else pa.nulls(len(run), after.type))
