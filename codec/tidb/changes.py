"""Decoding of raw changes of one table, at one version of its schema, into row changes."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final

from ...errors import SourceError
from ...events import PUT, KvChange, Op, RowChange
from .layout import may_have_other_columns
from .row_code import Pair
from .row_decoder import RowDecoder
from .table_info import TableInfo

_HOW_TO_CONTINUE: Final = (
    "correct it there, then begin with an empty target: until then this version of the row is read again"
)


class ChangesDecoder:
    """Decodes the changes of one table, by the native decoder or by one generated for the table."""

    def __init__(self, schema: str, info: TableInfo) -> None:
        """Raises SourceError for a column of an unknown type."""
        self.schema: Final = schema
        self.info: Final = info
        self.rows: Final = RowDecoder(schema, info)
        self.table: Final = self.rows.table
        self.lock: Final = Lock()
        """Held to decode runs, which several sinks may ask for at once."""

    def read(self, changes: Sequence[KvChange]) -> list[RowChange | None]:
        """Return each change of a row; None for a row inserted and deleted in the same transaction.

        Raises SourceError that names table, key and ts if one can't be decoded.
        """
        layout = self.rows.layout
        try:
            if layout is not None:
                return layout.changes(changes, self.table, self.rows.row)
            return self._read(changes)
        except SourceError:
            self._find_unreadable(changes)
            raise

    def is_fill(self, update: KvChange) -> bool:
        """Return True if an update changes no visible column, as where TiDB fills one that isn't public yet.

        Raises SourceError if the row can't be decoded.
        """
        if not may_have_other_columns(update.old_value, update.value):
            return False
        (row,) = self.read([update])
        return row is not None and row.before == row.after

    def _read(self, changes: Sequence[KvChange]) -> list[RowChange | None]:
        rows = iter(self.rows.decode([image for change in changes for image in _images(change)]))
        table = self.table
        read: list[RowChange | None] = []
        for change in changes:
            op = op_of(change)
            if op is None:
                read.append(None)
                continue
            before = next(rows) if change.old_value else None
            after = next(rows) if change.op == PUT else None
            read.append(RowChange(change.commit_ts, change.start_ts, table, op, before, after))
        return read

    def _find_unreadable(self, changes: Sequence[KvChange]) -> None:
        """Raise SourceError for the first change that can't be decoded, with its ts."""
        for change in changes:
            try:
                self.rows.decode(_images(change))
            except SourceError as error:
                raise SourceError(f"at ts {change.commit_ts} {error}; {_HOW_TO_CONTINUE}") from error


def _images(change: KvChange) -> list[Pair]:
    """Return the key with the row before and after a change, as far as there are such rows."""
    images = [(change.key, change.old_value)] if change.old_value else []
    return [*images, (change.key, change.value)] if change.op == PUT else images


def op_of(change: KvChange) -> Op | None:
    """Return the operation; None for a row inserted and deleted in the same transaction."""
    if change.op == PUT:
        return "update" if change.old_value else "insert"
    return "delete" if change.old_value else None
