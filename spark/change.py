"""The exact bytes of a change: what a sink needs of a row or a schema change.

A row's bytes have no column names; a separate layout describes how to decode them. The layout has the
source's identity and the table, compressed: 150 to 300 bytes for a table of eight columns, encoded once for
all its rows. Rows keep the bytes of their source as far as possible; otherwise they are MessagePack.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from ..codec.mysql.layout import TableLayout
from ..codec.mysql.result_rows import ResultRowsDecoder
from ..codec.mysql.run import EventRun, ResultRun
from ..codec.row_bytes import RowBytes
from ..errors import SinkError, SourceError
from ..events import Chunk, Op, Table, Ts

if TYPE_CHECKING:
    from ..codec.tidb.changes import ChangesDecoder
    from ..codec.tidb.packed import PackedRun

NO_LAYOUT: Final = b""
"""The layout of a schema change, whose bytes are complete without one."""

_MAX_LAYOUTS: Final = 1000
_MAX_LAYOUT_BYTES: Final = 64 << 20
"""Maximum length of a column layout; a table has at most 4,096 columns."""
_BINARY: Final = 1
"""Form of packets in the binary protocol."""
_encode = msgspec.msgpack.Encoder().encode


class _Layout(msgspec.Struct, frozen=True, array_like=True):
    source: str
    described: msgspec.Raw
    """A Table; the payload of a Table_map; or a schema with TiDB's description of a table."""
    chunk: Chunk | None = None
    """Set if the rows are part of a snapshot and keep their source's bytes."""
    form: int = 0
    """Form of snapshot rows of MySQL and MariaDB, _BINARY; 0 if there are none."""


_read_layout = msgspec.msgpack.Decoder(_Layout).decode
_read_described = msgspec.msgpack.Decoder(Table | bytes | tuple[str, msgspec.Raw]).decode


class EventBytes:
    """Decodes rows of one table of one source from the bytes of its binlog.

    A change has its row images, two in sequence for an update. The layout has the source's identity and the
    table's Table_map, compressed.
    """

    chunk: Final = None

    def __init__(self, source: str, payload: bytes) -> None:
        self.source = source
        self.rows = TableLayout(payload)
        self.table = self.rows.table
        self.layout = zlib.compress(_encode((source, payload)), 9)

    def run(self, changes: pa.Array, op: Op, commit_ts: Ts, start_ts: Ts) -> EventRun:
        """Return changes of one operation as a run. Raises SinkError if the bytes aren't one change each."""
        run = self.rows.images_run(_joined(changes), op, commit_ts, start_ts)
        _check_count(run, len(changes))
        return run


class ResultBytes:
    """Decodes rows of a snapshot of MySQL or MariaDB from the packets of a result.

    A change has the packets of one row. The layout has the source's identity, the table and the chunk,
    compressed.
    """

    def __init__(self, source: str, rows: ResultRowsDecoder, chunk: Chunk) -> None:
        self.source = source
        self.rows = rows
        self.table = rows.table
        self.chunk = chunk

    def run(self, changes: pa.Array, op: Op, commit_ts: Ts, start_ts: Ts) -> ResultRun:
        """Return the rows as a run. Raises SinkError if the bytes aren't one row each."""
        if op != "insert":
            raise SinkError(f"the column op is {op} for a row of a snapshot: keep it as it was read, insert")
        run = ResultRun(commit_ts, start_ts, self.table, op, None, self.rows, _joined(changes))
        _check_count(run, len(changes))
        return run


class KvBytes:
    """Decodes rows of one table of one source from the bytes of TiKV.

    A change is packed as `codec.tidb.packed` describes. The layout has the source's identity, the schema and
    TiDB's description of the table, and the chunk of a snapshot's rows, compressed.
    """

    def __init__(self, source: str, rows: ChangesDecoder, chunk: Chunk | None) -> None:
        self.source = source
        self.rows = rows
        self.table = rows.table
        self.chunk = chunk

    def run(self, changes: pa.Array, op: Op, commit_ts: Ts, start_ts: Ts) -> PackedRun:
        """Return changes of one operation as a run. Each is checked when it is decoded."""
        from ..codec.tidb.packed import PackedRun

        return PackedRun(commit_ts, start_ts, self.table, op, None, self.rows, changes)


SourceBytes: TypeAlias = EventBytes | ResultBytes | KvBytes
"""Codecs of rows that keep the bytes of their source."""


def _check_count(run: EventRun | ResultRun, count: int) -> None:
    """Raise SinkError if the run, made of the column's bytes, doesn't have a change for each line."""
    try:
        rows = len(run)
    except SourceError as error:
        raise SinkError(f"the column change isn't as it was read: {error}") from None
    if rows != count:
        raise SinkError(f"the column change holds {rows} rows of {run.table.full_name} in {count}")


def _joined(changes: pa.Array) -> bytes:
    """Return the bytes of all values of an array of binary."""
    _, ends, data = changes.buffers()
    if data is None:
        return b""
    first, last = np.frombuffer(ends, np.int32)[[changes.offset, changes.offset + len(changes)]]
    joined: bytes = data[first:last].to_pybytes()
    return joined


class RowCodecs:
    """Cache of row codecs: by table for encoding, by the layout's bytes for decoding."""

    def __init__(self) -> None:
        self._by_table: dict[tuple[str, Table], RowBytes] = {}
        self._by_layout: dict[bytes, RowBytes | SourceBytes] = {}
        self._by_event: dict[tuple[str, bytes], EventBytes] = {}
        self._of_kv: dict[tuple[str, int], tuple[ChangesDecoder, bytes]] = {}
        self._decoders: dict[bytes, object] = {}
        """Decoders of rows of TiKV and of snapshots, by the bytes in the layout that describe them."""

    def of_event(self, source: str, payload: bytes) -> EventBytes:
        """Return the codec of a Table_map's payload."""
        key = source, payload
        event = self._by_event.get(key)
        if event is None:
            _make_room(self._by_event)
            event = self._by_event[key] = EventBytes(source, payload)
        return event

    def of_result(self, source: str, table: Table, chunk: Chunk) -> bytes:
        """Return the layout of a snapshot's rows that keep their packets."""
        return _layout(source, table, chunk, _BINARY)

    def of_kv(self, source: str, decoder: ChangesDecoder, chunk: Chunk | None) -> bytes:
        """Return the layout of changes that `decoder` reads."""
        from ..codec.tidb.table_info import row_info

        if chunk is not None:
            return _layout(source, (decoder.schema, row_info(decoder.info)), chunk)
        key = source, id(decoder)
        held = self._of_kv.get(key)
        if held is None:
            _make_room(self._of_kv)
            layout = _layout(source, (decoder.schema, row_info(decoder.info)))
            held = self._of_kv[key] = decoder, layout  # the decoder, so that its id stays its own
        return held[1]

    def of(self, source: str, table: Table) -> RowBytes:
        key = source, table
        row_bytes = self._by_table.get(key)
        if row_bytes is None:
            _make_room(self._by_table)
            row_bytes = self._by_table[key] = RowBytes(source, table)
        return row_bytes

    def read(self, layout: bytes) -> RowBytes | SourceBytes:
        """Return the codec of a layout. Raises SinkError if the bytes aren't a layout."""
        read_layout = self._by_layout.get(layout)
        if read_layout is None:
            _make_room(self._by_layout)
            try:
                read_layout = self._codec(_read_layout(_uncompressed(layout)))
            except (zlib.error, msgspec.MsgspecError, SourceError) as error:
                raise SinkError(f"the column layout holds what tidemill didn't write: {error}") from None
            self._by_layout[layout] = read_layout
        return read_layout

    def _codec(self, layout: _Layout) -> RowBytes | SourceBytes:
        source, chunk = layout.source, layout.chunk
        what = _read_described(layout.described)
        if isinstance(what, bytes):
            return EventBytes(source, what)
        if isinstance(what, tuple):
            return KvBytes(source, self._decoder(layout.described, lambda: _changes_decoder(*what)), chunk)
        if chunk is None:
            return RowBytes(source, what)
        if layout.form != _BINARY:
            raise SourceError(f"rows of a snapshot have form {layout.form}, not {_BINARY}: read them again")
        return ResultBytes(source, self._decoder(layout.described, lambda: ResultRowsDecoder(what)), chunk)

    def _decoder(self, described: msgspec.Raw, make: Callable[[], Any]) -> Any:
        """Return the decoder of what `described` describes: layouts differ by chunk, too."""
        key = bytes(described)
        if key not in self._decoders:
            _make_room(self._decoders)
            self._decoders[key] = make()
        return self._decoders[key]


def _uncompressed(layout: bytes) -> bytes:
    stream = zlib.decompressobj()
    content = stream.decompress(layout, _MAX_LAYOUT_BYTES)
    if not stream.eof:
        raise zlib.error("it is incomplete or too long")
    return content


def _make_room(cache: dict[Any, Any]) -> None:
    if len(cache) >= _MAX_LAYOUTS:
        cache.clear()


def _layout(source: str, described: object, chunk: Chunk | None = None, form: int = 0) -> bytes:
    parts = source, described, chunk, form
    return zlib.compress(_encode(parts if form else parts[: 2 if chunk is None else 3]), 9)


def _changes_decoder(schema: str, info: msgspec.Raw) -> ChangesDecoder:
    from ..codec.tidb.changes import ChangesDecoder
    from ..codec.tidb.table_info import TableInfo

    return ChangesDecoder(schema, msgspec.msgpack.decode(info, type=TableInfo))
