"""Native reading of the row images of MySQL and MariaDB."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from ...events import Op, RowChange, Table, not_a_member
from ..native.column import Description, decimal
from ..native.library import native
from .charset import text_decoder
from .column_code import PRINTERS, value_reader
from .field import COMPRESSED, Field, Type, visible
from .row_code import Images, RowsReader, fixed_reader
from .values import set_printer
from .walk import Width

if TYPE_CHECKING:
    from ..native.arrow import Assembly

_ASCII: Final = bytes(range(128))
_UTF8: Final = ("utf8mb4", "utf8mb3")


def image_reader(table: Table, fields: Sequence[Field], op: Op, images: Images) -> RowsReader:
    """Return the twin of what `compile_rows` returns; the images after an update must not be partial."""
    return native.ImageReader(_layout(fields), RowChange, table, op, images.before, images.after)


class ImageLayout:
    """The layout of a table's row images, for all of their columns."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._descriptions = tuple(map(_describe, fields))
        self._layout = native.Layout(self._descriptions)

    def starts(self, event: bytes, start: int, end: int) -> array[int]:
        """Return where each row image begins, as int64; raises ValueError for bytes that aren't images."""
        return array("q", native.image_starts(self._layout, event, start, end))

    def columns(self, events: Sequence[bytes], starts: Sequence[array[int]]) -> list[object]:
        """Return the Arrow array of each column of the table; `starts` has the begins of each event's images.

        Raises ValueError, or an error of Arrow, for rows that are to be read one by one.
        """
        places = tuple([one.tobytes() for one in starts])
        parts = native.image_columns(self._layout, tuple(events), places)
        return self._assembly.arrays(parts, sum(map(len, starts)))

    @cached_property
    def _assembly(self) -> Assembly:
        from ..native.arrow import Assembly  # here, as it needs pyarrow

        places = visible(self._fields)
        columns = [self._fields[i].column for i in places]
        return Assembly(columns, [self._descriptions[i] for i in places])


def _layout(fields: Sequence[Field]) -> native.Layout:
    return native.Layout(tuple(map(_describe, fields)))


def _describe(field: Field) -> Description:
    flags = native.NULLABLE * field.column.nullable | native.HIDDEN * field.hidden
    width = Width(0, field)
    if width.counted:
        reader = value_reader(field)
        input_, output = native.COUNTED, _output(field)
        padding = field.size if field.column.kind == "binary" else 0
        return Description(input_, output, width.fixed, padding=padding, flags=flags, reader=reader)
    return _fixed(field, width.fixed)._replace(flags=flags, reader=fixed_reader(field))


def _output(field: Field) -> int:
    """Return what is made of text or bytes."""
    column = field.column
    is_plain = column.kind not in PRINTERS or (column.kind == "json" and field.type != Type.JSON)
    if field.type in COMPRESSED or not is_plain:
        return native.AS_OTHER
    if column.charset in _UTF8 or (column.charset is None and column.kind == "json"):
        return native.AS_TEXT
    if column.charset is not None:
        return native.AS_ASCII if _keeps_ascii(column.charset) else native.AS_OTHER
    return native.AS_BYTES


def _keeps_ascii(charset: str) -> bool:
    """Return True if each byte below 128 is ASCII's character."""
    try:
        return text_decoder(charset)(_ASCII) == _ASCII.decode()
    except UnicodeDecodeError:
        return False


def _fixed(field: Field, size: int) -> Description:
    column = field.column
    match field.type:
        case Type.TINY | Type.SHORT | Type.INT24 | Type.LONG | Type.LONGLONG:
            output = native.AS_UINT if column.unsigned else native.AS_INT
            return Description(native.LITTLE_ENDIAN_INT, output, size, width=4 if size == 3 else size)
        case Type.BIT:
            return Description(native.BIG_ENDIAN_INT, native.AS_UINT, size, width=8)
        case Type.YEAR:
            return Description(native.YEAR_BYTE, native.AS_INT, width=2)
        case Type.FLOAT:
            return Description(native.FLOAT_BYTES, native.AS_DOUBLE, width=4)
        case Type.DOUBLE:
            return Description(native.DOUBLE_BYTES, native.AS_DOUBLE, width=8)
        case Type.NEWDECIMAL if column.length <= native.MAX_DIGITS:
            return decimal(native.PACKED_DECIMAL, column.length, column.scale)
        case Type.DATE | Type.NEWDATE:
            return Description(native.PACKED_DATE, native.AS_DATE, width=4)
        case Type.DATETIME2:
            return Description(native.PACKED_DATETIME, native.AS_DATETIME, scale=column.scale, width=8)
        case Type.TIMESTAMP2:
            return Description(native.PACKED_TIMESTAMP, native.AS_TIMESTAMP, scale=column.scale, width=8)
        case Type.TIMESTAMP:
            return Description(native.UNIX_SECONDS, native.AS_TIMESTAMP, width=8)
        case Type.TIME2:
            return Description(native.PACKED_TIME, native.AS_DURATION, scale=column.scale, width=8)
        case Type.ENUM:
            members = (not_a_member(column.members), *column.members)
            return Description(native.LITTLE_ENDIAN_INT, native.AS_MEMBER, size, width=4, members=members)
        case Type.SET:
            printer = set_printer(column.members)
            return Description(native.LITTLE_ENDIAN_INT, native.AS_MEMBERS, size, width=8, members=printer)
    return Description(native.FIXED, native.AS_OTHER, size)
