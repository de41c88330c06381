"""Decoding of raw changes of one table, at one version of its schema, into row changes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final

from ...errors import SourceError
from ...events import PUT, Block, KvChange, Op, RowChange
from ..native import library
from ..plain_blocks import PlainBlock
from .layout import may_have_other_columns
from .native_rows import NativeTable
from .row_code import Pair
from .row_decoder import RowDecoder
from .table_info import TableInfo

TABLE_BYTES: Final = 9
"""Length of the part of a key that names the table."""

_HOW_TO_CONTINUE: Final = (
    "correct it there, then begin with an empty target: until then this version of the row is read again"
)


class ChangesDecoder:
    """Decodes the changes of one table, by the native decoder or by one generated for the table."""

    def __init__(self, schema: str, info: TableInfo, *, only: Collection[str] | None = None) -> None:
        """With `only`, rows have just the columns with these names and those of the key. Raises SourceError
        for a column of an unknown type."""
        self.schema: Final = schema
        self.info: Final = info
        self.rows: Final = RowDecoder(schema, info, only=only)
        self.table: Final = self.rows.table
        self.lock: Final = Lock()
        """Held to decode runs, which several sinks may ask for at once."""

    def read(self, changes: Block) -> list[RowChange | None]:
        """Return each change of a row; None for a row inserted and deleted in the same transaction.

        Raises SourceError that names table, key and ts if one can't be decoded.
        """
        if isinstance(changes, PlainBlock):
            return self.read_each([*changes])
        prefixes = changes.by_prefix(TABLE_BYTES)
        with locating(dict.fromkeys(prefixes, self), prefixes):
            tables = dict.fromkeys(prefixes, self.native_table(None))
            return library.native.tidb_changes(changes, tables, RowChange)

    def native_table(self, block: object) -> NativeTable:
        """Return what the native module reads rows by; `block` is what the runs have that it makes."""
        layout = self.rows.layout
        return None if layout is None else layout.native, self.table, self.rows.row, block

    def is_fill(self, update: KvChange) -> bool:
        """Return True if an update changes no visible column, as where TiDB fills one that isn't public yet.

        Raises SourceError if the row can't be decoded.
        """
        if not may_have_other_columns(update.old_value, update.value):
            return False
        (row,) = self.read_each([update])
        return row is not None and row.before == row.after

    def read_each(self, changes: Sequence[KvChange]) -> list[RowChange | None]:
        """Return what `read` does, of changes in any order."""
        with locating({b"": self}, {b"": changes}):
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

    def find_unreadable(self, changes: Iterable[KvChange]) -> None:
        """Raise SourceError for the first change that can't be decoded, with its ts."""
        for change in changes:
            try:
                self.rows.decode(_images(change))
            except SourceError as error:
                raise SourceError(f"at ts {change.commit_ts} {error}; {_HOW_TO_CONTINUE}") from error


@contextmanager
def locating(
    decoders: Mapping[bytes, ChangesDecoder | None], changes: Mapping[bytes, Iterable[KvChange]]
) -> Iterator[None]:
    """Add the ts to the SourceError of a change that can't be decoded; both arguments are by table."""
    try:
        yield
    except SourceError:
        for prefix, decoder in decoders.items():
            if decoder is not None:
                decoder.find_unreadable(changes[prefix])
        raise


def _images(change: KvChange) -> list[Pair]:
    """Return the key with the row before and after a change, as far as there are such rows."""
    images = [(change.key, change.old_value)] if change.old_value else []
    return [*images, (change.key, change.value)] if change.op == PUT else images


def op_of(change: KvChange) -> Op | None:
    """Return the operation; None for a row inserted and deleted in the same transaction."""
    if change.op == PUT:
        return "update" if change.old_value else "insert"
    return "delete" if change.old_value else None
