"""The protocol of encoders, which turn rows and schema changes into messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NoReturn, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from ...errors import SinkError
from ...events import Ddl, Op, Row, RowChange, Table, Ts


class NotEncodable(SinkError):
    """An encoding can't represent a table, a column or a value."""

    def __init__(self, encoding: str, table: str, column: str, reason: str) -> None:
        where = f"column {column} of table {table}" if column else f"table {table}"
        super().__init__(
            f"{encoding} can't represent {where}: {reason}; choose another encoding, or leave the table out"
        )
        self.encoding = encoding
        self.table = table
        self.column = column
        self._reason = reason

    def of(self, encoding: str) -> NotEncodable:
        """Return the same refusal by another encoding."""
        return NotEncodable(encoding, self.table, self.column, self._reason)


class Message(Struct, frozen=True, gc=False):
    """One message. A key or value of None is absent, which differs from empty."""

    key: bytes | None
    value: bytes | None
    rows: int = 1
    """Number of row changes in the message; 0 for a schema change or a watermark."""
    headers: list[tuple[str, str | bytes | None]] | None = None
    """Headers that a sink adds to it."""


Milliseconds: TypeAlias = Callable[[], int]
"""Returns the wall-clock time in Unix milliseconds."""


class Encoder(Protocol):
    """Turns changes into messages. Not thread-safe. A copy of one (`copy.copy`) goes on from its state."""

    name: str
    """Name of the encoding, as users write it."""

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:
        """Return messages with these changes, which may belong to several transactions, in their order.

        `last` is True if a transaction ends with them. Raises NotEncodable before any message is returned.
        """

    def ddl(self, ddl: Ddl) -> list[Message]:
        """Return the messages of a schema change; none if there are no such. Raises NotEncodable."""

    def watermark(self, ts: Ts) -> list[Message]:
        """Return the messages that say that all changes up to `ts` were sent; none if there are no such."""


T = TypeVar("T")
_GROUP: Final = attrgetter("table", "op", "commit_ts")


def groups(changes: Sequence[RowChange]) -> Iterator[tuple[Table, Op, list[RowChange]]]:
    """Yield consecutive changes of one table version and transaction by one operation."""
    for (table, op, _), members in groupby(changes, _GROUP):
        yield table, op, list(members)


def in_order(
    changes: Sequence[RowChange], encode: Callable[[Table, Op, list[RowChange]], Iterable[T]]
) -> list[T]:
    """Return the result for each change. `encode` returns those of all changes of one table and operation."""
    if not changes:
        return []
    # lists of tuples would keep the garbage collector busy
    tables, ops = [id(change.table) for change in changes], [change.op for change in changes]
    if tables.count(tables[0]) == ops.count(ops[0]) == len(changes):
        return list(encode(changes[0].table, changes[0].op, list(changes)))
    places: dict[tuple[int, Op], list[int]] = defaultdict(list)
    for place, kind in enumerate(zip(tables, ops, strict=True)):
        places[kind].append(place)
    results: dict[int, T] = {}
    for members in places.values():
        group = [changes[place] for place in members]
        results.update(zip(members, encode(group[0].table, group[0].op, group), strict=True))
    return [results[place] for place in range(len(changes))]


def by_transaction(changes: Sequence[RowChange], text: Callable[[RowChange], T]) -> T | list[T]:
    """Return what all changes have in common with others of their transaction: for all, or for each."""
    commits, starts = [change.commit_ts for change in changes], [change.start_ts for change in changes]
    if commits.count(commits[0]) == starts.count(starts[0]) == len(changes):
        return text(changes[0])
    made: dict[tuple[Ts, Ts], T] = {}
    results: list[T] = []
    for change, stamp in zip(changes, zip(commits, starts, strict=True), strict=True):
        if stamp not in made:
            made[stamp] = text(change)
        results.append(made[stamp])
    return results


def befores(changes: list[RowChange]) -> list[Row]:
    """Return the rows before these updates or deletes."""
    return [change.before for change in changes]  # type: ignore[misc]


def afters(changes: list[RowChange]) -> list[Row]:
    """Return the rows after these inserts or updates."""
    return [change.after for change in changes]  # type: ignore[misc]


def refuse(encoding: str, table: Table, column: str, reason: str) -> NoReturn:
    raise NotEncodable(encoding, table.full_name, column, reason)
