"""Decoding of raw changes of one table, at one version of its schema, into row changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from ...codec.tidb.row_decoder import RowDecoder
from ...errors import SourceError
from ...events import PUT, KvChange, RowChange
from .history import TableAt

_HOW_TO_CONTINUE: Final = (
    "correct it there, then begin with an empty target: until then this version of the row is read again"
)

_Op: TypeAlias = Literal["insert", "update", "delete"]


class RowReader:
    """Decodes the changes of one table by a decoder generated for it."""

    def __init__(self, table: TableAt) -> None:
        """Raises SourceError for a column of an unknown type."""
        self._decoder: Final = RowDecoder(table.schema, table.info)

    def read(self, changes: Sequence[KvChange]) -> list[RowChange | None]:
        """Return each change of a row; None for one that changes no visible column.

        TiDB writes such changes when it fills a column that isn't public yet, and for a row inserted and
        deleted in the same transaction. Raises SourceError that names table, key and ts if one can't be
        decoded.
        """
        images = []
        for change in changes:
            if change.old_value:
                images.append((change.key, change.old_value))
            if change.op == PUT:
                images.append((change.key, change.value))
        try:
            rows = iter(self._decoder.decode(images))
        except SourceError:
            self._find_unreadable(changes)
            raise
        table = self._decoder.table
        read: list[RowChange | None] = []
        for change in changes:
            before = next(rows) if change.old_value else None
            after = next(rows) if change.op == PUT else None
            if before == after:
                read.append(None)
                continue
            op: _Op = "insert" if before is None else "delete" if after is None else "update"
            read.append(RowChange(change.commit_ts, change.start_ts, table, op, before, after))
        return read

    def _find_unreadable(self, changes: Sequence[KvChange]) -> None:
        """Raise SourceError for the first change that can't be decoded, with its ts."""
        for change in changes:
            images = [(change.key, change.old_value)] if change.old_value else []
            images += [(change.key, change.value)] if change.op == PUT else []
            try:
                self._decoder.decode(images)
            except SourceError as error:
                raise SourceError(f"at ts {change.commit_ts} {error}; {_HOW_TO_CONTINUE}") from error
