"""Numbers of the layouts of rows, so that a raw change refers to its layout by an int."""

from __future__ import annotations

from functools import cached_property
from threading import Lock
from typing import Final

from ...events import RowChange, Table, Ts
from .rows import RowsDecoder
from .table_map import TableMap, parse_table_map
from .text_rows import TextRowsDecoder


class Layout:
    """The layout of rows of one version of a table. Decoders are created on first use, then kept."""

    def __init__(self, source: bytes | Table) -> None:
        self._source: Final = source

    @cached_property
    def table(self) -> Table:
        """The table. Raises SourceError if the Table_map can't be read or contains something unsupported."""
        return self._source if isinstance(self._source, Table) else self._table_map.table

    def decode_rows(self, event: bytes, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        """Return the row changes of one rows event (ROWS), in order; SourceError if it can't be read."""
        return self._rows.decode(event, commit_ts, start_ts)

    def decode_text_rows(self, packets: bytes, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        """Return the inserts of a chunk of snapshot rows (TEXT_ROWS); SourceError if it can't be read."""
        return self._text_rows.decode(packets, commit_ts, start_ts)

    @cached_property
    def _table_map(self) -> TableMap:
        if isinstance(self._source, Table):
            raise TypeError(f"{self._source.full_name}: a layout of snapshot rows has no Table_map")
        return parse_table_map(self._source)

    @cached_property
    def _rows(self) -> RowsDecoder:
        return RowsDecoder(self._table_map)

    @cached_property
    def _text_rows(self) -> TextRowsDecoder:
        return TextRowsDecoder(self.table)


class Layouts:
    """All layouts of the process, numbered from 1. Thread-safe; nothing is ever removed.

    There is one layout per version of a table's schema, so there are few: tables times DDLs.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers: dict[bytes | Table, int] = {}
        self._layouts: list[Layout] = []

    def number_of(self, table_map: bytes) -> int:
        """Return the number of a Table_map event's payload (its body after table id and flags)."""
        return self._numbers.get(table_map) or self._add(table_map)

    def add_table(self, table: Table) -> int:
        """Return the number of the layout of `table`'s snapshot rows."""
        return self._numbers.get(table) or self._add(table)

    def layout(self, number: int) -> Layout:
        return self._layouts[number - 1]

    def _add(self, source: bytes | Table) -> int:
        with self._lock:
            if source not in self._numbers:
                self._layouts.append(Layout(source))
                self._numbers[source] = len(self._layouts)
            return self._numbers[source]
