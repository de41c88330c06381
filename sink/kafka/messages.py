"""Messages of items, by topic and partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Final, TypeAlias

from msgspec.structs import replace

from ...errors import Retryable
from ...events import Ddl, Item, RowChange, Table, Transaction, Ts
from ...events.per_table import PerTable
from ..encoding.encoder import Encoder, Message
from .options import BATCHING, KEYED
from .outbox import Outgoing, Partition
from .route import Destinations, PartitionRoute
from .template import HEADER_NAMES, Template
from .topics import Topics

_TOGETHER: Final = 1_000
"""Rows after which no further transaction is encoded with them: 10,000 at once take a fifth longer each, as
they don't fit into the processor's cache."""

_Found: TypeAlias = dict[Partition, list[Message]]


class Messages:
    """Encodes items, and gives each message its topic and partition. Not thread-safe."""

    def __init__(
        self,
        make: Callable[[], Encoder],
        destinations: Destinations,
        topics: Topics,
        *,
        ddl_to_all: bool,
        headers: Mapping[str, str],
    ) -> None:
        self._make: Final = make
        self._destinations: Final = destinations
        self._topics: Final = topics
        self._ddl_to_all: Final = ddl_to_all
        self._headers: Final = [(name, Template(text, HEADER_NAMES, name)) for name, text in headers.items()]
        self._routes: Final = PerTable(self._route)
        self.start()

    def start(self) -> None:
        """Forget unfinished transactions: they come again from their first row."""
        self._encoder = self._make()
        self._stamp: tuple[Ts, Ts] = 0, 0  # of the transaction encoded last, which may come in parts
        self._next_row = 0

    def of(self, items: Iterable[Item]) -> Outgoing:
        """Return the messages of items. Raises NotEncodable, and as Topics does.

        After Retryable, also of a schema registry or a store of claim checks, the same items may come again.
        """
        before = copy(self._encoder), self._stamp, self._next_row
        try:
            return self._encoded(items)
        except Retryable:
            self._encoder, self._stamp, self._next_row = before
            raise

    def _encoded(self, items: Iterable[Item]) -> Outgoing:
        by_partition: _Found = defaultdict(list)
        for item in _merged(items):
            if isinstance(item, Ddl):
                self._ddl(item, by_partition)
            elif self._encoder.name in BATCHING:
                for transaction in item:
                    self._grouped(transaction, by_partition)
            else:
                self._rows(item, by_partition)
        return by_partition

    def watermark(self, ts: Ts) -> Outgoing:
        """Return the messages that say that all changes up to `ts` were written, for all known topics."""
        messages = self._encoder.watermark(ts)
        if not messages:
            return {}
        topics = self._topics.data.items()
        return {(topic, number): messages for topic, count in topics for number in range(count)}

    def _route(self, table: Table) -> PartitionRoute:
        destination = self._destinations.of(table.schema, table.name)
        count = self._topics.partitions(destination.topic)
        return PartitionRoute(table, destination, count, is_keyed=self._encoder.name in KEYED)

    def _ddl(self, ddl: Ddl, by_partition: _Found) -> None:
        if messages := self._encoder.ddl(ddl):
            topic = self._destinations.of(ddl.schema, ddl.table).topic
            count = self._topics.partitions(topic)
            for number in range(count if self._ddl_to_all else 1):
                by_partition[topic, number] += messages

    def _rows(self, items: list[Transaction], by_partition: _Found) -> None:
        """Encode the rows in their order: some encoders number them."""
        changes: list[RowChange] = []
        partitions: list[Partition] = []
        ends: list[int] = []
        for item in items:
            for run in item.runs:
                route = self._routes[run.table]
                distributed, numbers = route.distribute(run.changes())
                changes += distributed
                partitions += [route.partitions[number] for number in numbers]
            ends.append(len(changes))
        messages = self._encoder.rows(changes, items[-1].last)
        rows = [message for message in messages if message.rows]
        if len(rows) < len(messages):
            self._add_definitions(messages, partitions, by_partition)
        if self._headers:
            rows = [
                message
                for item, start, end in zip(items, [0, *ends], ends, strict=False)
                for message in self._with_headers(item, changes[start:end], rows[start:end])
            ]
        for partition, message in zip(partitions, rows, strict=True):
            by_partition[partition].append(message)

    def _add_definitions(
        self, messages: list[Message], partitions: list[Partition], by_partition: _Found
    ) -> None:
        """Add messages without rows to every partition of the next row's topic, before all of these rows."""
        row = 0
        for message in messages:
            if message.rows:
                row += 1
                continue
            topic = partitions[row][0]
            for number in range(self._topics.partitions(topic)):
                by_partition[topic, number].append(message)

    def _grouped(self, item: Transaction, by_partition: _Found) -> None:
        groups: dict[Partition, list[RowChange]] = defaultdict(list)
        for run in item.runs:
            route = self._routes[run.table]
            for change, number in zip(*route.distribute(run.changes()), strict=True):
                groups[route.partitions[number]].append(change)
        for partition, changes in groups.items():
            messages = self._encoder.rows(changes, item.last)
            if self._headers:
                headers = self._header_values(item, changes[0])
                messages = [replace(message, headers=headers) for message in messages]
            by_partition[partition] += messages

    def _with_headers(
        self, item: Transaction, changes: Sequence[RowChange], messages: list[Message]
    ) -> Iterator[Message]:
        stamp = item.commit_ts, item.start_ts
        if stamp != self._stamp:
            self._stamp, self._next_row = stamp, 0
        for change, message in zip(changes, messages, strict=True):
            yield replace(message, headers=self._header_values(item, change, self._next_row))
            self._next_row += 1

    def _header_values(
        self, item: Transaction, change: RowChange, row: int = 0
    ) -> list[tuple[str, str | bytes | None]]:
        table = change.table
        header_values = (table.schema, table.name, change.op, item.commit_ts, row)
        values = dict(zip(HEADER_NAMES, header_values, strict=True))
        return [(name, text.fill(values).encode("utf-8", "surrogatepass")) for name, text in self._headers]


def _merged(items: Iterable[Item]) -> Iterator[Ddl | list[Transaction]]:
    """Yield schema changes, and transactions with rows, which are encoded together.

    A chunk of a snapshot is one by itself: it may have the ts of the one before it.
    """
    transactions: list[Transaction] = []
    rows = 0
    for item in items:
        joins = isinstance(item, Transaction) and item.chunk is None
        if transactions and (rows >= _TOGETHER or not joins):
            yield transactions
            transactions, rows = [], 0
        if isinstance(item, Ddl):
            yield item
        elif joins:
            transactions += [item] if item.rows else []
            rows += len(item.rows)
        elif item.rows:
            yield [item]
    if transactions:
        yield transactions
