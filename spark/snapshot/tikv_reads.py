"""Connections to a TiKV cluster for reads at one ts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import Random

from ...actors import SystemClock
from ...codec.tidb.table_info import TableInfo, holds_rows
from ...events import Ts
from ...puller.tikv.client import TikvClient
from ...puller.tikv.options import TikvOptions
from ...puller.tikv.pd.safe_point import SafePoint
from ...puller.tikv.schema import TableNames, Wanted


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

    def __init__(self, wanted: Wanted) -> None:
        super().__init__(wanted)
        self.tables: list[tuple[str, TableInfo]] = []

    def follow(self, schema: str, info: TableInfo) -> None:
        if holds_rows(info):
            self.tables.append((schema, info))
