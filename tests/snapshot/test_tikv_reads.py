"""Pieces of rows at one ts, however many come in one answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from tidemill.snapshot.tikv.reads import Pairs, all_rows, first_rows


class Cluster:
    """TiKV with keys of one byte, and a value of as many bytes as it says; `page` keys an answer."""

    def __init__(self, page: int) -> None:
        self.kv = self
        self._page = page
        self._loop = asyncio.new_event_loop()

    def run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    def close(self) -> None:
        self._loop.close()

    def begin(self, work: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(self.run(work))
        return done

    async def pages(self, start: bytes, end: bytes, ts: int, _growth: int) -> AsyncIterator[Pairs]:
        assert ts == 5
        numbers = range(start[0], end[0])
        for first in range(0, len(numbers), self._page):
            some = numbers[first : first + self._page]
            yield [bytes([number]) for number in some], [b"v" * number for number in some]


@pytest.fixture(params=[1, 3, 7, 50])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    cluster = Cluster(request.param)
    yield cluster
    cluster.close()


RANGES = [(b"\x01", b"\x08"), (b"\x10", b"\x10"), (b"\x10", b"\x1b")]


def test_all_rows_come_once_and_in_order(cluster: Cluster) -> None:
    pieces = list(all_rows(cluster, RANGES, 5, 4, 10**6))
    assert [len(keys) for keys, _ in pieces] == [4, 4, 4, 4, 2]
    found = [(key[0], len(value)) for piece in pieces for key, value in zip(*piece, strict=True)]
    assert found == [(number, number) for number in (*range(1, 8), *range(16, 27))]


def test_the_first_rows_are_as_many_as_wanted(cluster: Cluster) -> None:
    assert [key[0] for key in first_rows(cluster, RANGES, 5, 9)[0]] == [*range(1, 8), 16, 17]
    assert len(first_rows(cluster, RANGES, 5, 100)[0]) == 18
    assert first_rows(cluster, [], 5, 100) == ([], [])
    sizes = [sum(map(len, values)) for _, values in all_rows(cluster, RANGES, 5, 100, 30)]
    assert all(size >= 30 for size in sizes[:-1])
