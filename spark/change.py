"""The exact bytes of a change: what a sink needs of a row or a schema change, as MessagePack.

A row's bytes have no column names; a separate layout describes how to decode them. The layout has the
source's identity and the table, compressed: about 150 bytes for a table of eight columns, encoded once for
all its rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Final

import msgspec

from ..codec.mysql.layout import Layout
from ..codec.mysql.run import EventRun
from ..codec.row_bytes import RowBytes
from ..errors import SinkError, SourceError
from ..events import Op, Table, Ts

NO_LAYOUT: Final = b""
"""The layout of a schema change, whose bytes are complete without one."""

_MAX_LAYOUTS: Final = 1000
_encode = msgspec.msgpack.Encoder().encode


class EventBytes:
    """Decodes rows of one table of one source from the bytes of its binlog.

    A change has its row images, two in sequence for an update. The layout has the source's identity and the
    table's Table_map, compressed.
    """

    def __init__(self, source: str, payload: bytes) -> None:
        self.source = source
        self.rows = Layout(payload)
        self.table = self.rows.table
        self.layout = zlib.compress(_encode((source, payload)), 9)

    def run(self, changes: Sequence[bytes], op: Op, commit_ts: Ts, start_ts: Ts) -> EventRun:
        """Return changes of one operation as a run. Raises SinkError if the bytes aren't one change each."""
        run = self.rows.images_run(b"".join(changes), op, commit_ts, start_ts)
        try:
            found = len(run)
        except SourceError as error:
            raise SinkError(f"the column change isn't as it was read: {error}") from None
        if found != len(changes):
            raise SinkError(
                f"the column change holds {found} rows of {self.table.full_name} in {len(changes)}"
            )
        return run


class Layouts:
    """Cache of row codecs: by table for encoding, by the layout's bytes for decoding."""

    def __init__(self) -> None:
        self._by_table: dict[tuple[str, Table], RowBytes] = {}
        self._by_layout: dict[bytes, RowBytes | EventBytes] = {}
        self._by_event: dict[tuple[str, bytes], EventBytes] = {}

    def of_event(self, source: str, payload: bytes) -> EventBytes:
        """Return the codec of a Table_map's payload."""
        key = source, payload
        found = self._by_event.get(key)
        if found is None:
            if len(self._by_event) >= _MAX_LAYOUTS:
                self._by_event.clear()
            found = self._by_event[key] = EventBytes(source, payload)
        return found

    def of(self, source: str, table: Table) -> RowBytes:
        key = source, table
        found = self._by_table.get(key)
        if found is None:
            if len(self._by_table) >= _MAX_LAYOUTS:
                self._by_table.clear()
            found = self._by_table[key] = RowBytes(source, table)
        return found

    def read(self, layout: bytes) -> RowBytes | EventBytes:
        """Return the codec of a layout. Raises SinkError if the bytes aren't a layout."""
        found = self._by_layout.get(layout)
        if found is None:
            if len(self._by_layout) >= _MAX_LAYOUTS:
                self._by_layout.clear()
            try:
                source, table = msgspec.msgpack.decode(
                    zlib.decompress(layout), type=tuple[str, Table | bytes]
                )
                found = RowBytes(source, table) if isinstance(table, Table) else EventBytes(source, table)
            except (zlib.error, msgspec.MsgspecError, SourceError) as error:
                raise SinkError(f"the column layout holds what tidemill didn't write: {error}") from None
            self._by_layout[layout] = found
        return found
