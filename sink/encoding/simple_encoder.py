"""The simple protocol without the form of its messages, which is JSON or Avro."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import islice, repeat
from typing import Final, Self

from ...events import Ddl, Op, RowChange, Table, Ts
from ...events.per_table import PerTable
from .claims import Claim, ClaimStore
from .columns import Parts, RowParts, joined
from .compression import Compress, compressor
from .definition import Definition, Describe, definition_of
from .definitions import Effect, TableDefinitions
from .encoder import Message, Milliseconds, groups, in_order
from .options import SimpleOptions
from .oversize import LargeRows
from .statement_kind import statement_kind

NAME: Final = "simple"


class AnySimpleEncoder(ABC):
    """Writes no keys. A table's definition comes with each statement that changes it, before its first rows,
    and again as the options say."""

    name = NAME

    def __init__(
        self,
        options: SimpleOptions,
        now: Milliseconds,
        describe: Describe = definition_of,
        claims: ClaimStore | None = None,
    ) -> None:
        self._options: Final = options
        self._now: Final = now
        self._definitions: Final = TableDefinitions(describe)
        self._compress: Final = compressor(options.large_message_handle_compression)
        self._large: Final = LargeRows(NAME, options, claims)
        self._tables: Final = PerTable(lambda table: self._form(self._definitions.of(table)))
        self._bootstraps: Final = Bootstraps(options, now)

    def __copy__(self) -> Self:
        """Return an encoder that sends definitions again."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, _bootstraps=Bootstraps(self._options, self._now))
        return copy

    def rows(self, changes: Sequence[RowChange], last: bool = True) -> list[Message]:  # noqa: ARG002
        now = self._now()
        values = in_order(changes, lambda table, op, group: self._tables[table].values(op, group, now))
        messages = map(Message, repeat(None), values)
        sent: list[Message] = []
        for table, _, group in groups(changes):
            if self._bootstraps.due(table, len(group)):
                sent += self.bootstrap(table)
            sent += islice(messages, len(group))
        return sent

    def ddl(self, ddl: Ddl) -> list[Message]:
        effects = self._definitions.effects(ddl)
        effect = effects[0] if effects else Effect(None, None)
        if effect.after is not None:
            self._bootstraps.tell(effect.after.table)
        if ddl.query:
            return self._without_rows(self._ddl(statement_kind(ddl).name, ddl, self._now(), effect))
        return [] if effect.after is None else self.bootstrap(effect.after.table)  # as a snapshot found it

    def bootstrap(self, table: Table) -> list[Message]:
        """Return a message with a table's definition."""
        return self._without_rows(self._bootstrap(self._now(), self._definitions.of(table)))

    def watermark(self, ts: Ts) -> list[Message]:
        return self._without_rows(self._watermark(ts, self._now()))

    def _without_rows(self, value: bytes) -> list[Message]:
        return [Message(None, one, 0) for one in self._compress([value])]

    @abstractmethod
    def _form(self, definition: Definition) -> SimpleTable: ...

    @abstractmethod
    def _ddl(self, kind: str, ddl: Ddl, now: int, effect: Effect) -> bytes: ...

    @abstractmethod
    def _bootstrap(self, now: int, definition: Definition) -> bytes: ...

    @abstractmethod
    def _watermark(self, ts: Ts, now: int) -> bytes: ...


class SimpleTable(ABC):
    """The form of one table's rows."""

    def __init__(
        self, definition: Definition, options: SimpleOptions, compress: Compress, large: LargeRows
    ) -> None:
        self._definition: Final = definition
        self._options: Final = options
        self._compress: Final = compress
        self._large: Final = large
        self._start: Final = self._head()
        self._columns: Final = self._fields(range(len(definition.table.columns)))
        self._keys: Final = self._fields(definition.handle_key)
        self._whole: Final = self._mark(only_key=False, location="")

    def values(self, op: Op, changes: list[RowChange], now: int) -> list[bytes]:
        texts = self._compress(
            joined(len(changes), self._parts(op, changes, now, self._columns, self._whole))
        )

        def short(place: int, location: str) -> bytes:
            mark = self._mark(only_key=True, location=location)
            (value,) = self._compress(joined(1, self._parts(op, [changes[place]], now, self._keys, mark)))
            return value

        def claim(place: int) -> Claim:
            change = changes[place]
            (stamp,) = joined(1, self._parts(op, [change], 0, self._columns, self._whole))
            return Claim(change.commit_ts, None, texts[place], stamp)

        definition = self._definition
        self._large.replace(definition.table, texts, len, short, claim, has_key=bool(definition.handle_key))
        return texts

    @abstractmethod
    def _head(self) -> bytes:
        """Return the bytes before the operation."""

    @abstractmethod
    def _fields(self, places: Sequence[int]) -> RowParts: ...

    @abstractmethod
    def _mark(self, *, only_key: bool, location: str) -> bytes:
        """Return the bytes after the version of the definition: are the columns those of the key only, and
        where is the whole message, if it is stored?"""

    @abstractmethod
    def _parts(self, op: Op, changes: list[RowChange], now: int, columns: RowParts, mark: bytes) -> Parts: ...


class Bootstraps:
    """Counts rows and seconds since each table's definition was sent. It is due before the first rows, unless
    it is never sent again and a statement has told it."""

    def __init__(self, options: SimpleOptions, now: Milliseconds) -> None:
        self._rows: Final = options.send_bootstrap_in_msg_count
        self._milliseconds: Final = options.send_bootstrap_interval_in_sec * 1000
        self._now: Final = now
        self._sent: Final[PerTable[_Sent]] = PerTable(lambda _: _Sent())

    def due(self, table: Table, rows: int) -> bool:
        """Return True if the definition is to be sent before the next `rows` rows, which are counted."""
        sent, now = self._sent[table], self._now()
        if sent.at is None:
            is_due = not sent.is_told or bool(self._rows or self._milliseconds)
        else:
            is_due = bool(self._rows and sent.rows >= self._rows) or bool(
                self._milliseconds and now - sent.at >= self._milliseconds
            )
        if is_due:
            sent.at, sent.rows = now, 0
        sent.rows += rows
        return is_due

    def tell(self, table: Table) -> None:
        """Note that a statement told the definition. Consumers that begin later need it again."""
        self._sent[table].is_told = True


class _Sent:
    def __init__(self) -> None:
        self.at: int | None = None
        self.is_told = False
        self.rows = 0
