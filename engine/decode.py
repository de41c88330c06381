"""The actor that makes items of the sorter's output, once for all sinks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from ..actors import PooledActor, PooledRef
from ..codec.item_passes import whole
from ..events import Item, Sorted, Transaction
from ..sink import Deliver
from ..sources.source import Rank, Source


class DeliveredCounts:
    """Numbers of items passed to the sinks."""

    rows = 0
    transactions = 0
    """Number of transactions with rows; a large one counts at its end."""
    _has_rows = False

    def add(self, items: Sequence[Item]) -> None:
        first = whole(items)
        if first.number < len(items) or self._has_rows:
            self._add_each(items)
        else:  # as nearly always
            self.rows += first.rows
            self.transactions += first.number - first.empty

    def _add_each(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Transaction):
                count = len(item.rows)
                self.rows += count
                self._has_rows = self._has_rows or count > 0
                if item.last:
                    self.transactions += self._has_rows
                    self._has_rows = False


class DecodeActor(PooledActor[Sorted | Deliver]):
    """Makes items of the sorter's output and passes them to every sink.

    With `until`, the rank of a position, transactions that begin after it are dropped, except while tables
    are `loading`: a snapshot includes earlier changes, and is passed whole.
    """

    def __init__(
        self,
        source: Source,
        sinks: Sequence[PooledRef[Deliver]],
        counts: DeliveredCounts,
        until: Rank | None,
        loading: bool,
        before_sinks: Callable[[list[Item]], list[Item]] | None = None,
        count: Callable[[Sequence[Item]], object] = len,
    ) -> None:
        """`before_sinks` is applied to the items of the sorter's output; `count` gets those for the sinks."""
        super().__init__()
        self._until = until
        self._passed = False
        self._loading = loading
        self._source = source
        self._sinks = sinks
        self._counts = counts
        self._before_sinks = before_sinks
        self._count = count

    def on_receive(self, message: Sorted | Deliver) -> None:
        match message:
            case Sorted():
                items = self._mounted(message)
            case Deliver():
                items = message.items
            case _:
                assert_never(message)
        if self._until is not None:
            items = self._up_to(items, self._until)
        if not items:
            return
        self._counts.add(items)
        self._count(items)
        deliver = Deliver(items)
        for sink in self._sinks:
            self.send(sink, deliver)

    def _mounted(self, released: Sorted) -> list[Item]:
        items = self._source.mount(released)
        return items if self._before_sinks is None else self._before_sinks(items)

    def _up_to(self, items: list[Item], until: Rank) -> list[Item]:
        if self._passed:
            return []
        last = items[-1].position if items and not self._loading else ""
        if last and self._source.rank(last) < until:
            return items  # positions only grow
        for number, item in enumerate(items):
            if self._loading:
                self._loading = not _ends_snapshot(item)
            if not self._loading and item.position and self._source.rank(item.position) >= until:
                self._passed = True
                # Others of the same ts included: the checkpoint advances past all of them.
                return items[:number] + [one for one in items[number:] if one.commit_ts == item.commit_ts]
        return items


def _ends_snapshot(item: Item) -> bool:
    return isinstance(item, Transaction) and item.chunk is not None and not item.chunk.table
