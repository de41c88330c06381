"""Tables and row counts of a binlog's raw changes, which have neither in their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ...codec.mysql.entry import COMMIT, DDL, RESULT_ROWS, ROLLBACK_MARKER
from ...codec.mysql.layout_file import LayoutRecord
from ...codec.mysql.rows import RowsDecoder, op_of
from ...codec.mysql.table_map import map_of_widths
from ...codec.mysql.values import UNREADABLE
from ...errors import SourceError
from ...events import KvChange

UNKNOWN: Final = -1
"""Table id of a change whose table isn't known."""
FIRST_ID: Final = -2
"""Id of the first table of a binlog; the next ones are below. Ids of TiDB's tables are above 0."""
_ENTRY_KEY_BYTES: Final = 9
_PACKET_HEAD_BYTES: Final = 4


class TableRows(Struct, frozen=True):
    """Table and rows of one raw change."""

    table: int
    rows: int | None
    """None if unknown."""
    deletes: int = 0


_NO_ROWS: Final = TableRows(UNKNOWN, 0)
_UNKNOWN_ROWS: Final = TableRows(UNKNOWN, None)


class BinlogTables:
    """Finds table and rows of raw changes by the layouts of the process that received them."""

    def __init__(self, records: Sequence[LayoutRecord]) -> None:
        self._lanes = max([record.lanes for record in records], default=1)
        self._records = {(record.lane, record.number): record for record in records}
        names = sorted({record.name for record in records})
        self._ids = {name: FIRST_ID - place for place, name in enumerate(names)}
        self._decoders: dict[bytes, RowsDecoder] = {}

    @property
    def names(self) -> dict[int, str]:
        return {number: name for name, number in self._ids.items()}

    def rows_of(self, change: KvChange) -> TableRows:
        """Return the table with its rows: none in a commit or a statement, unknown without a layout."""
        kind = change.key[-1] if len(change.key) == _ENTRY_KEY_BYTES else 0
        if kind in (COMMIT, DDL, ROLLBACK_MARKER):
            return _NO_ROWS
        record = self._records.get((change.commit_ts % self._lanes, change.region_id))
        if record is None:
            return _UNKNOWN_ROWS
        table = self._ids[record.name]
        if kind == RESULT_ROWS:
            return TableRows(table, _result_rows(change.value))
        try:
            count = self._event_rows(record.table_map, change)
        except (SourceError, *UNREADABLE):
            return TableRows(table, None)
        return TableRows(table, count, count if op_of(change.value) == "delete" else 0)

    def _event_rows(self, table_map: bytes, change: KvChange) -> int:
        decoder = self._decoders.get(table_map)
        if decoder is None:
            decoder = self._decoders[table_map] = RowsDecoder(map_of_widths(table_map), table_map)
        starts = decoder.starts(change.value)
        if starts is None:  # images that lack columns
            return len(decoder.decode(change.value, change.commit_ts, change.start_ts))
        return len(starts) // 2 if op_of(change.value) == "update" else len(starts)


def _result_rows(packets: bytes) -> int:
    count = at = 0
    while at < len(packets):
        at += _PACKET_HEAD_BYTES + int.from_bytes(packets[at : at + 3], "little")
        count += 1
    return count
