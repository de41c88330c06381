"""Decoding of the rows of a pump's binlogs, of one table at one version of its schema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from ...codec.proto import binlog
from ...codec.tidb.columns import primary_index
from ...codec.tidb.field import UNREADABLE
from ...codec.tidb.mutation import split_inserted, split_updated, without_handle
from ...codec.tidb.row_decoder import RowDecoder
from ...errors import SourceError
from ...events import Row, RowChange, Ts
from .history import TableAt

_KIND: Final = binlog.MutationType

_Pairs: TypeAlias = list[tuple[bytes, bytes]]


class BinlogReader:
    """Decodes TableMutations by decoders generated for the table."""

    def __init__(self, table: TableAt) -> None:
        """Raises SourceError for a column of an unknown type."""
        info = table.info
        self._name: Final = table.name
        self._inserted: Final = RowDecoder(table.schema, info)
        self._images: Final = RowDecoder(table.schema, info, keyless=True)
        index = primary_index(info) if info.is_common_handle else None
        self._key_columns: Final = len(index.columns) if index is not None else 0
        self._has_hidden_handle: Final = not info.pk_is_handle and not info.is_common_handle

    def read(self, mutation: Any, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        """Return the rows of a binlog.TableMutation in the order of their statements.

        Raises SourceError if one can't be decoded, or for kinds of rows that TiDB no longer writes.
        """
        table = self._inserted.table
        inserted = iter(self._decode(self._inserted, mutation.inserted_rows, self._insert))
        updated = iter(self._decode(self._images, mutation.updated_rows, self._update))
        deleted = iter(self._decode(self._images, mutation.deleted_rows, self._delete))
        rows = []
        try:
            for kind in mutation.sequence:
                if kind == _KIND.Insert:
                    row = RowChange(commit_ts, start_ts, table, "insert", None, next(inserted))
                elif kind == _KIND.Update:
                    before = next(updated)
                    row = RowChange(commit_ts, start_ts, table, "update", before, next(updated))
                elif kind == _KIND.DeleteRow:
                    row = RowChange(commit_ts, start_ts, table, "delete", next(deleted), None)
                else:
                    raise self._unreadable(f"a deletion without its row (kind {kind}), as of TiDB before 2.0")
                rows.append(row)
        except StopIteration:
            raise self._unreadable("it lists more rows than it has") from None
        if any(next(rest, None) is not None for rest in (inserted, updated, deleted)):
            raise self._unreadable("it has more rows than it lists")
        return rows

    def _decode(
        self, decoder: RowDecoder, rows: Sequence[bytes], split: Callable[[bytes], _Pairs]
    ) -> list[Row]:
        if not rows:
            return []
        pairs: _Pairs = []
        try:
            for row in rows:
                pairs += split(row)
        except UNREADABLE as error:
            raise self._unreadable(f"{error}: {rows[0][:64].hex()}") from error
        return decoder.decode(pairs)

    def _insert(self, row: bytes) -> _Pairs:
        return [split_inserted(row, 0, self._key_columns)]

    def _update(self, row: bytes) -> _Pairs:
        before, after = split_updated(row)
        return [(b"", before), (b"", after)]

    def _delete(self, row: bytes) -> _Pairs:
        return [(b"", without_handle(row) if self._has_hidden_handle else row)]

    def _unreadable(self, why: str) -> SourceError:
        return SourceError(f"rows of {self._name} can't be read: {why}")
