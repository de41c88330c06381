"""Division of a TiKV cluster's tables among tasks, into key ranges of about the same size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ...chain.selection.tables import TablePatterns
from ...codec.tidb.key import record_span
from ...codec.tidb.table_info import TableInfo, partition_ids
from ...events import Ts
from ...puller.tikv.client import TikvClient
from ...puller.tikv.kv.region_bounds import region_bounds
from ...puller.tikv.schema import TableNames, read_schema, schema_version
from ...puller.tikv.span import table_span

REGION: Final = 16
"""Weight of a region of a table with several regions; a table within a single region has weight 1."""

LOOK_SECONDS: Final = 60.0
"""Minimum interval between requests to PD for the regions, which are slow for 10,000 tables."""


class Ranges:
    """Computes the bounds between ranges. Used only in the loop's thread."""

    def __init__(self, client: TikvClient, wanted: TablePatterns, count: int) -> None:
        """`count` is the maximum number of ranges."""
        self._client = client
        self._wanted = wanted
        self._count = count
        self._version = -1
        self._keys: list[_Keys] = []
        self._next = 0.0
        self._bounds: tuple[bytes, ...] = ()

    async def bounds(self, start: Ts, end: Ts) -> tuple[bytes, ...] | None:
        """Return the raw keys between the ranges for the changes in (start, end], in order.

        None if the schema changes in between: after a TRUNCATE, for instance, the rows have other keys, and
        only a single task keeps their order. Raises Retryable, SourceError.
        """
        kv, clock = self._client.kv, self._client.clock
        version = await schema_version(kv, end)
        if start != end and await schema_version(kv, start) != version:
            return None
        if version != self._version:
            tables = TableNames(self._wanted)
            await read_schema(kv, end, tables)
            self._version, self._keys = version, sorted(_keys(tables.with_rows))
        elif clock.now() < self._next:
            return self._bounds
        self._bounds = tuple(even(await self._pieces(), self._count))
        self._next = clock.now() + LOOK_SECONDS
        return self._bounds

    async def _pieces(self) -> list[RangePiece]:
        spans = [table_span(keys.id) for keys in self._keys]
        pieces = []
        for keys, bounds in zip(self._keys, await region_bounds(self._client.cache, spans), strict=True):
            start, _ = record_span(keys.id)
            weight = REGION if bounds else 1
            if keys.divisible:
                pieces += [RangePiece(key, weight) for key in (start, *bounds)]
            else:
                pieces.append(RangePiece(start, weight * (1 + len(bounds))))
        return pieces


class RangePiece(Struct, frozen=True):
    """An indivisible unit: a table or one of its regions."""

    start: bytes
    """Raw key."""
    weight: int


def even(pieces: Sequence[RangePiece], count: int) -> list[bytes]:
    """Return the bounds that divide the pieces into at most `count` ranges of about the same weight."""
    total = sum(piece.weight for piece in pieces)
    bounds: list[bytes] = []
    before = 0
    for piece in pieces:
        if before * count >= total * (len(bounds) + 1):
            bounds.append(piece.start)
        before += piece.weight
    return bounds


class _Keys(Struct, frozen=True, order=True):
    """The keys of a table, or of one of its partitions."""

    id: int
    divisible: bool


def _keys(tables: Iterable[tuple[str, TableInfo]]) -> Iterator[_Keys]:
    for _, info in tables:
        divisible = _is_divisible(info)
        yield from (_Keys(id_, divisible) for id_ in partition_ids(info) or (info.id,))


def _is_divisible(info: TableInfo) -> bool:
    """True if rows are unique only by their keys. Otherwise a unique value may move from one row to another,
    and the order of these two changes matters."""
    is_clustered = info.pk_is_handle or info.is_common_handle
    return not any(index.unique and not (index.primary and is_clustered) for index in info.indexes)
