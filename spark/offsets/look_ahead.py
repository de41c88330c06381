"""A reader of the binlog ahead of the tasks, which finds the ends of transactions with the feed's own decoder
and clock."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ...codec.mysql.entry import COMMIT, ROLLBACK_MARKER, ROWS, position_of
from ...codec.mysql.layout import Layouts
from ...codec.mysql.position import Position, Rank
from ...codec.mysql.schema import is_user_schema
from ...events import Block, Ts, compose_ts
from ...puller.mysql.binlog import BinlogDecoder
from ...puller.mysql.commit_clock import CommitClock
from ...puller.mysql.event import FORMAT_DESCRIPTION
from ...puller.mysql.options import MysqlOptions
from ...puller.mysql.reader import BinlogReader
from ...puller.mysql.stream import Dump
from ...puller.mysql.transactions import Transactions
from ...snapshot.mysql.tables import Follows
from .offset import Offset

_MAX_PIECE: Final = 1 << 20


class TransactionEnd(Struct, frozen=True):
    """The end of a transaction, with the amount of followed changes since the previous mark."""

    ts: Ts
    position: str
    bytes: int = 0
    """Bytes of row images and statements; 0: no followed change."""
    rows: int = 0


class LookAheadReader:
    """Reads the binlog after `start`, and stays connected. Used by one thread.

    Transactions get the same ts as in a task that starts at `start`.
    """

    def __init__(self, options: MysqlOptions, follows: Follows, start: Offset, *, counts_rows: bool) -> None:
        """With `counts_rows`, rows are decoded and counted, which takes eight times as long."""
        self._counts_rows = counts_rows
        self._layouts = Layouts()
        self._transactions = Transactions(CommitClock(start.ts), _MAX_PIECE)
        self._decoder = BinlogDecoder(
            Position.parse(start.position),
            self._transactions,
            lambda schema, table: is_user_schema(schema) and follows(schema, table),
            self._layouts.number_of,
        )
        self._reader = BinlogReader(options, self._decoder)
        self._marks: list[TransactionEnd] = []
        self._bytes = self._rows = 0  # counts of the open transaction

    def marks(self, until: Rank) -> list[TransactionEnd]:
        """Return the next marks up to `until`, as many as have been read; none if there is none. Waits until
        the server has sent one.

        Raises Retryable, after which a new call continues, and SourceError if the position was purged.
        """
        while not self._marks and self._decoder.position.rank < until:
            self._reader.read()
            changes = self._decoder.take()
            if changes is not None:
                self._note(changes.changes)
        if not self._marks or self._decoder.position.rank <= until:
            return self._marks[:]
        return [mark for mark in self._marks if Position.parse(mark.position).rank <= until]

    def take(self, count: int) -> None:
        """Remove the first ones of the marks that `marks` has returned."""
        del self._marks[:count]

    def _note(self, changes: Block) -> None:
        for change in changes:
            kind = change.key[-1]
            if kind == ROLLBACK_MARKER:
                self._bytes = self._rows = 0
            elif kind != COMMIT:
                self._bytes += len(change.value)
                if kind == ROWS and self._counts_rows:
                    layout = self._layouts.layout(change.region_id)
                    self._rows += len(layout.decode_rows(change.value, 0, 0))
            if (position := position_of(change)) is not None:
                self._marks.append(TransactionEnd(change.commit_ts, position, self._bytes, self._rows))
                self._bytes = self._rows = 0

    def close(self) -> None:
        """Close the connection. Safe to repeat."""
        self._reader.close()


def created(options: MysqlOptions, file: str) -> Ts:
    """Return the creation time of a binlog file. Raises Retryable and SourceError."""
    dump = Dump(options, Position(file, 4))
    try:
        while True:
            for payload in dump.read():
                if payload[5] == FORMAT_DESCRIPTION:
                    return compose_ts(int.from_bytes(payload[1:5], "little") * 1000)
    finally:
        dump.close()
