"""Rows of a TiKV cluster at one ts, in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from math import inf
from typing import Final, Protocol, TypeAlias, TypeVar

from ...events import Ts
from .ranges import RawRange

_GROWTH: Final = 4
"""Maximum size of a request, in multiples of the option `scan_page`: a scan takes two thirds of the time."""

Pairs: TypeAlias = tuple[list[bytes], list[bytes]]
"""Keys, and the value of each."""

_T = TypeVar("_T")


class Pages(Protocol):
    def pages(self, start: bytes, end: bytes, ts: Ts, growth: int, /) -> AsyncIterator[Pairs]:
        """Yield the pairs in [start, end) at `ts`, as they come in one answer."""
        ...


class Cluster(Protocol):
    """The part of a TikvClient that is used here."""

    @property
    def kv(self) -> Pages: ...

    def run(self, work: Coroutine[object, None, _T], /) -> _T: ...

    def begin(self, work: Coroutine[object, None, _T], /) -> Future[_T]: ...


class _Pieces:
    """The pairs of ranges, one after the other. For the loop's thread."""

    def __init__(self, kv: Pages, ranges: Sequence[RawRange], ts: Ts) -> None:
        self._pages = self._scan(kv, ranges, ts)
        self._keys: list[bytes] = []
        self._values: list[bytes] = []

    async def take(self, rows: int, max_bytes: float) -> Pairs:
        """Return the next pairs: at most `rows`, of about `max_bytes` of values; none at the end."""
        keys, values = self._keys, self._values
        size = sum(map(len, values))
        while len(keys) < rows and size < max_bytes:
            page = await anext(self._pages, None)
            if page is None:
                break
            keys += page[0]
            values += page[1]
            size += sum(map(len, page[1]))
        self._keys, self._values = keys[rows:], values[rows:]
        return keys[:rows], values[:rows]

    @staticmethod
    async def _scan(kv: Pages, ranges: Sequence[RawRange], ts: Ts) -> AsyncIterator[Pairs]:
        for start, end in ranges:
            async for page in kv.pages(start, end, ts, _GROWTH):
                yield page


def first_rows(
    cluster: Cluster, ranges: Sequence[RawRange], ts: Ts, rows: int, max_bytes: float = inf
) -> Pairs:
    """Return the first rows of ranges at `ts`: at most `rows`, of about `max_bytes` of values. Raises
    Retryable and Fatal."""
    return cluster.run(_Pieces(cluster.kv, ranges, ts).take(rows, max_bytes))


def all_rows(
    cluster: Cluster, ranges: Sequence[RawRange], ts: Ts, rows: int, max_bytes: int
) -> Iterator[Pairs]:
    """Yield all rows of ranges at `ts` in such pieces. The next piece is read meanwhile. Raises Retryable and
    Fatal."""
    pieces = _Pieces(cluster.kv, ranges, ts)
    following = cluster.begin(pieces.take(rows, max_bytes))
    while (taken := following.result())[0]:
        following = cluster.begin(pieces.take(rows, max_bytes))
        yield taken
