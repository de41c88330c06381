"""Decoding of rows events of the binlog to row changes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from shlex import quote
from struct import Struct as Packing
from threading import Lock
from typing import Final

from ...errors import SourceError
from ...events import Op, RowChange, Ts
from ..native import library
from ..native.library import native
from .field import TableMap, visible
from .native_rows import ImageLayout, image_reader
from .row_code import Images, RowsReader, compile_rows, unreadable_column
from .values import UNREADABLE
from .walk import Walk, compile_walk

OPS: Final[dict[int, Op]] = {
    23: "insert",
    24: "update",
    25: "delete",
    30: "insert",
    31: "update",
    32: "delete",
    39: "update",
}
"""Rows events by type: those of MariaDB and MySQL up to 5.5, those of MySQL since 5.6, and MySQL's update
with changes of JSON documents."""
_PARTIAL: Final = 39
_KINDS: Final[dict[Op, int]] = {"insert": 23, "update": 24, "delete": 25}
_EXTENSIBLE: Final = 30
"""From this type on, the head may contain more than table and flags."""

_MAX_OTHER_READERS: Final = 500
"""Kept readers of images that lack columns."""

_HEAD_BYTES: Final = 19 + 8  # header, table id, flags
_CHECKSUM_BYTES: Final = 4
_event_bytes = Packing("<9xI").unpack_from
_extra_bytes = Packing(f"<{_HEAD_BYTES}xH").unpack_from


def op_of(event: bytes) -> Op | None:
    """Return the operation of a rows event; None for any other event."""
    return OPS.get(event[4]) if len(event) > _HEAD_BYTES else None


class RowsDecoder:
    """Decodes the rows events that follow one Table_map."""

    def __init__(self, table_map: TableMap, payload: bytes = b"", *, needs_schema: bool = False) -> None:
        """`payload` is what `table_map` was parsed from; `needs_schema` is True if not from that alone."""
        self.payload: Final = payload
        self.needs_schema: Final = needs_schema
        self._table = table_map.table
        self.fields = table_map.fields
        count = len(table_map.fields)
        self._width = bytes((count,)) if count < 251 else b"\xfc" + count.to_bytes(2, "little")
        self._bitmap_bytes = (count + 7) // 8
        self._readers: dict[int, tuple[bytes, RowsReader]] = {}
        self._other_readers: dict[bytes, tuple[RowsReader, bool]] = {}
        self.lock: Final = Lock()
        """Held to decode a run, which several sinks may ask for at once."""

    def decode(self, event: bytes, commit_ts: Ts, start_ts: Ts) -> list[RowChange]:
        """Return the changes of one rows event, in order; the event has its header but no checksum.

        Raises SourceError, naming the table and if possible the column, for an event that is incomplete,
        whose rows lack columns or whose bytes are no values.
        """
        start, whole = 0, False
        try:
            read, start, whole = self._begin(event)
            if _event_bytes(event)[0] - len(event) not in (0, _CHECKSUM_BYTES):
                raise ValueError
            return read(event, start, len(event), commit_ts, start_ts)
        except UNREADABLE:
            raise self._unreadable(event, start if whole else 0) from None

    def decode_all(
        self, events: list[bytes], commit_ts: list[Ts], start_ts: list[Ts]
    ) -> Sequence[list[RowChange] | None]:
        """Return the changes of each event; None for those to be decoded one by one."""
        if self.layout is None:
            return [None] * len(events)
        return native.event_changes(self._readers, events, commit_ts, start_ts)

    def counts(self, events: list[bytes]) -> Sequence[int]:
        """Return the number of changes of each event; -1 for those to be looked at one by one."""
        if self.layout is None:
            return [-1] * len(events)
        return native.event_counts(self._readers, events)

    def starts(self, event: bytes) -> Sequence[int] | None:
        """Where each row image of the event begins, an update's two after each other; None if the images lack
        columns or contain changes of documents.

        Raises SourceError or one of UNREADABLE for an event that isn't whole; `decode` says of it what is
        wrong. The values aren't looked at.
        """
        _, start, whole = self._begin(event)
        if _event_bytes(event)[0] - len(event) not in (0, _CHECKSUM_BYTES):
            raise ValueError
        if not whole:
            return None
        return self._walk(event, start, len(event))

    def event(self, images: bytes, op: Op) -> bytes:
        """A rows event with these images, as `decode` takes it; without a place in the binlog."""
        kind = _KINDS[op]
        columns, _ = self._readers.get(kind) or self._reader(kind)
        size = _HEAD_BYTES + len(columns) + len(images)
        return b"".join(
            (bytes((0, 0, 0, 0, kind)), bytes(4), size.to_bytes(4, "little"), bytes(14), columns, images)
        )

    def _begin(self, event: bytes) -> tuple[RowsReader, int, bool]:
        """Return the reader of the row images, their start, and True if they are whole rows."""
        kind = event[4]
        columns, read = self._readers.get(kind) or self._reader(kind)
        offset = _HEAD_BYTES + (_extra_bytes(event)[0] if kind >= _EXTENSIBLE else 0)
        end = offset + len(columns)
        if event.startswith(columns, offset) and kind != _PARTIAL:
            return read, end, True
        bitmaps = event[offset:end]
        read, whole = self._other_readers.get(event[4:5] + bitmaps) or self._other_reader(kind, bitmaps)
        return read, end, whole

    @cached_property
    def layout(self) -> ImageLayout | None:
        """The native layout of rows with all columns; None if the native decoder isn't in use."""
        return ImageLayout(self.fields) if library.in_use else None

    @cached_property
    def _walk(self) -> Walk:
        return compile_walk(self.fields) if self.layout is None else self.layout.starts

    def _reader(self, kind: int) -> tuple[bytes, RowsReader]:
        """Return the column bitmaps of an event with all columns, and the reader of its rows."""
        op = OPS.get(kind)
        if op is None:
            raise SourceError(f"table {self._table.full_name}: binlog event {kind} holds no rows")
        count = len(self.fields)
        # MariaDB leaves bits without a column unset.
        every = ((1 << count) - 1).to_bytes(self._bitmap_bytes, "little")
        columns = self._width + every * (2 if op == "update" else 1)
        reader = self._readers[kind] = columns, self._compile(op)
        return reader

    def _compile(self, op: Op, images: Images | None = None) -> RowsReader:
        """Compile the reader of images with these columns, or with all of them."""
        if library.in_use and not (images and images.partial):
            every = tuple(range(len(self.fields)))
            return image_reader(self._table, self.fields, op, images or Images(every, every))
        return compile_rows(self._table, self.fields, op, images)

    def _other_reader(self, kind: int, bitmaps: bytes) -> tuple[RowsReader, bool]:
        """Return the reader of images that may lack columns, and True if they are whole rows.

        Raises SourceError if values are missing that aren't known from the image before an update.
        """
        op, width, size = OPS[kind], len(self._width), self._bitmap_bytes
        count = 2 if op == "update" else 1
        if not bitmaps.startswith(self._width) or len(bitmaps) != width + count * size:
            raise ValueError
        bits = [
            int.from_bytes(bitmaps[offset : offset + size], "little")
            for offset in range(width, len(bitmaps), size)
        ]
        fields = self.fields
        present = [tuple(i for i in range(len(fields)) if image >> i & 1) for image in bits]
        images = Images(present[0], present[-1], kind == _PARTIAL)
        self._require(op, images)
        whole = len(images.before) == len(images.after) == len(fields) and not images.partial
        reader = self._reader(kind)[1] if whole else self._compile(op, images)
        if len(self._other_readers) >= _MAX_OTHER_READERS:
            self._other_readers.clear()
        entry = self._other_readers[bytes((kind,)) + bitmaps] = reader, whole
        return entry

    def _require(self, op: Op, images: Images) -> None:
        for i in visible(self.fields):
            column = self.fields[i].column
            if i in images.before and (i in images.after or not column.generated):
                continue
            kind = f"{op}s" if i not in images.before else "images after an update"
            whose = f"table {self._table.full_name}: the binlog holds {kind} without column {column.name}"
            if column.generated:
                raise SourceError(
                    f"{whose}, which the server computes itself: set source.generated_columns = "
                    "'leave_out' to copy the table without such columns, or leave the table out"
                )
            again = f"tidemill resume FEED --resnapshot {quote(self._table.full_name)}"
            raise SourceError(
                f"{whose}: the session that wrote them left values out; set binlog_row_image = FULL, also in "
                f"open sessions, and load the table again ({again}), or begin with empty targets"
            )

    def _unreadable(self, event: bytes, start: int) -> SourceError:
        """Return the error for an event; `start` is the start of the row images, 0 if unknown."""
        unreadable = unreadable_column(self.fields, event, start, len(event)) if start else None
        where = "to its end"
        if unreadable is not None:
            column, offset = unreadable[0].column, unreadable[1]
            where = f"at column {column.name} ({column.kind}), byte {offset} of the event"
        return SourceError(f"table {self._table.full_name}: a rows event can't be read {where}")
