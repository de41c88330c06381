"""Connections to a TiKV cluster for reads at one ts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, contextmanager
from random import Random
from typing import Final, TypeAlias

from ...actors import SystemClock
from ...chain.selection.tables import TablePatterns
from ...codec.tidb.table_info import TableInfo, holds_rows
from ...events import Ts
from ...puller.tikv.client import TikvClient
from ...puller.tikv.options import TikvOptions
from ...puller.tikv.pd.safe_point import SafePoint
from ...puller.tikv.schema import TableNames
from .key_ranges import RawRange

_GROWTH: Final = 4
"""Maximum size of a request, in multiples of the option `scan_page`: a scan takes two thirds of the time."""

Pairs: TypeAlias = tuple[list[bytes], list[bytes]]
"""Keys, and the value of each."""


@contextmanager
def connected(options: TikvOptions) -> Iterator[TikvClient]:
    """Connect to the cluster. Raises Retryable and Fatal."""
    client = TikvClient(options, SystemClock(), Random())
    client.start()
    with closing(_Stopped(client)):
        yield client


class _Stopped:
    def __init__(self, client: TikvClient) -> None:
        self.close = client.stop


@contextmanager
def held(client: TikvClient, name: str, ts: Ts) -> Iterator[None]:
    """Keep the versions at `ts` readable, until `gc_ttl_seconds` after the end, for the feed `name`.

    Raises SourceError if they were already collected, or at the end if they may have been meanwhile.
    """
    safe_point = SafePoint(client.options, client.pd, client.clock, f"tidemill-{name}", lambda: ts)
    client.run(safe_point.start(ts))
    errors: list[BaseException] = []
    client.on_error = errors.append
    client.loop.submit(safe_point.run(), "hold the GC safe point")
    yield
    if errors:
        raise errors[0]


class RowTables(TableNames):
    """The followed tables that have rows in TiKV, with their schemas."""

    def __init__(self, wanted: TablePatterns) -> None:
        super().__init__(wanted)
        self.tables: list[tuple[str, TableInfo]] = []

    def follow(self, schema: str, info: TableInfo) -> None:
        if holds_rows(info):
            self.tables.append((schema, info))


def read_pairs(
    client: TikvClient, ranges: Sequence[RawRange], ts: Ts, rows: int, max_bytes: int
) -> Iterator[Pairs]:
    """Yield the rows of the ranges at `ts` in pieces of about `rows`, or of `max_bytes` of values.

    The next piece is read meanwhile. Raises Retryable and Fatal.
    """
    pairs = _scan(client, ranges, ts)
    following = client.loop.begin(_take(pairs, rows, max_bytes))
    while taken := following.result():
        following = client.loop.begin(_take(pairs, rows, max_bytes))
        yield taken


async def _scan(client: TikvClient, ranges: Sequence[RawRange], ts: Ts) -> AsyncIterator[Pairs]:
    """Yield the pairs of one request after the other."""
    for start, end in ranges:
        async for page in client.kv.pages(start, end, ts, _GROWTH):
            yield page


async def _take(found: AsyncIterator[Pairs], rows: int, max_bytes: int) -> Pairs | None:
    """Return the pairs of a piece; None at the end."""
    keys: list[bytes] = []
    values: list[bytes] = []
    size = 0
    async for more_keys, more in found:
        keys += more_keys
        values += more
        size += sum(map(len, more))
        if len(keys) >= rows or size >= max_bytes:
            break
    return (keys, values) if keys else None
