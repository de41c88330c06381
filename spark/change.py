"""The exact bytes of a change: what a sink needs of a row or a schema change, as MessagePack.

A row's bytes have no column names; a separate layout describes how to decode them. The layout has the
source's identity and the table, compressed: 150 to 300 bytes for a table of eight columns, encoded once for
all its rows. Rows of a log keep the bytes of their source.
"""

from __future__ import annotations

import zlib
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from ..codec.mysql.layout import Layout
from ..codec.mysql.run import EventRun
from ..codec.row_bytes import RowBytes
from ..codec.tidb.changes import ChangesDecoder
from ..codec.tidb.packed import PackedRun
from ..codec.tidb.table_info import TableInfo, row_info
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

    def run(self, changes: pa.Array, op: Op, commit_ts: Ts, start_ts: Ts) -> EventRun:
        """Return changes of one operation as a run. Raises SinkError if the bytes aren't one change each."""
        run = self.rows.images_run(_joined(changes), op, commit_ts, start_ts)
        try:
            found = len(run)
        except SourceError as error:
            raise SinkError(f"the column change isn't as it was read: {error}") from None
        if found != len(changes):
            raise SinkError(
                f"the column change holds {found} rows of {self.table.full_name} in {len(changes)}"
            )
        return run


class KvBytes:
    """Decodes rows of one table of one source from the bytes of TiKV.

    A change is packed as `codec.tidb.packed` describes. The layout has the source's identity, the schema and
    TiDB's description of the table, compressed.
    """

    def __init__(self, source: str, schema: str, info: TableInfo) -> None:
        self.source = source
        self.rows = ChangesDecoder(schema, info)
        self.table = self.rows.table

    def run(self, changes: pa.Array, op: Op, commit_ts: Ts, start_ts: Ts) -> PackedRun:
        """Return changes of one operation as a run. Each is checked when it is decoded."""
        return PackedRun(commit_ts, start_ts, self.table, op, None, self.rows, changes)


def _joined(changes: pa.Array) -> bytes:
    """Return the bytes of all values of an array of binary."""
    _, ends, data = changes.buffers()
    if data is None:
        return b""
    first, last = np.frombuffer(ends, np.int32)[[changes.offset, changes.offset + len(changes)]]
    joined: bytes = data[first:last].to_pybytes()
    return joined


class Layouts:
    """Cache of row codecs: by table for encoding, by the layout's bytes for decoding."""

    def __init__(self) -> None:
        self._by_table: dict[tuple[str, Table], RowBytes] = {}
        self._by_layout: dict[bytes, RowBytes | EventBytes | KvBytes] = {}
        self._by_event: dict[tuple[str, bytes], EventBytes] = {}
        self._of_kv: dict[tuple[str, int], tuple[ChangesDecoder, bytes]] = {}

    def of_event(self, source: str, payload: bytes) -> EventBytes:
        """Return the codec of a Table_map's payload."""
        key = source, payload
        found = self._by_event.get(key)
        if found is None:
            if len(self._by_event) >= _MAX_LAYOUTS:
                self._by_event.clear()
            found = self._by_event[key] = EventBytes(source, payload)
        return found

    def of_kv(self, source: str, decoder: ChangesDecoder) -> bytes:
        """Return the layout of changes that `decoder` reads."""
        key = source, id(decoder)
        found = self._of_kv.get(key)
        if found is None:
            if len(self._of_kv) >= _MAX_LAYOUTS:
                self._of_kv.clear()
            layout = zlib.compress(_encode((source, (decoder.schema, row_info(decoder.info)))), 9)
            found = self._of_kv[key] = decoder, layout  # the decoder, so that its id stays its own
        return found[1]

    def of(self, source: str, table: Table) -> RowBytes:
        key = source, table
        found = self._by_table.get(key)
        if found is None:
            if len(self._by_table) >= _MAX_LAYOUTS:
                self._by_table.clear()
            found = self._by_table[key] = RowBytes(source, table)
        return found

    def read(self, layout: bytes) -> RowBytes | EventBytes | KvBytes:
        """Return the codec of a layout. Raises SinkError if the bytes aren't a layout."""
        found = self._by_layout.get(layout)
        if found is None:
            if len(self._by_layout) >= _MAX_LAYOUTS:
                self._by_layout.clear()
            try:
                found = _read(zlib.decompress(layout))
            except (zlib.error, msgspec.MsgspecError, SourceError) as error:
                raise SinkError(f"the column layout holds what tidemill didn't write: {error}") from None
            self._by_layout[layout] = found
        return found


def _read(layout: bytes) -> RowBytes | EventBytes | KvBytes:
    source, what = msgspec.msgpack.decode(layout, type=tuple[str, Table | bytes | tuple[str, TableInfo]])
    if isinstance(what, Table):
        return RowBytes(source, what)
    return EventBytes(source, what) if isinstance(what, bytes) else KvBytes(source, *what)
