"""The head of a row of format 2, and the encoding of the whole row.

The format: 0x80, a byte of flags, the numbers of columns with a value and of NULL columns, the ids of both in
order, the end of each value, the values. Ids take one byte and ends two, or both four in a big row. With a
checksum a header byte and one or two CRC32 follow. All numbers have the low byte first. Source: TiDB's
rowcodec package.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Packing
from struct import pack
from typing import Final

from msgspec import Struct

VERSION: Final = 0x80
BIG: Final = 1
CHECKSUM: Final = 2

SECOND_CHECKSUM: Final = 8
"""Bit of a checksum's header: a second checksum follows."""

HEAD: Final = Packing("<BBHH")
_FIRST: Final = bytes((VERSION,))
_SMALL_ID: Final = 255
_SMALL_DATA_BYTES: Final = 65535


class ValueLayout(Struct, frozen=True):
    """The part that all rows with the same `head` have in common."""

    head: bytes
    """The bytes up to and including the ids."""
    ids: tuple[int, ...]
    """Ids of columns with a value, in the order of the values."""
    nulls: tuple[int, ...]
    big: bool
    checksum: bool

    @property
    def data(self) -> int:
        """Offset of the values."""
        return len(self.head) + len(self.ids) * (4 if self.big else 2)


def layout_of(value: bytes) -> ValueLayout:
    """Read a row's head. Raises ValueError if it isn't one of format 2, or is cut off."""
    if len(value) < HEAD.size or value[0] != VERSION:
        raise ValueError("this isn't a row of format 2")
    _, flags, count, null_count = HEAD.unpack_from(value)
    if flags & ~(BIG | CHECKSUM):
        raise ValueError(f"flags {flags:#04x} of a row aren't known")
    big = bool(flags & BIG)
    ids = Packing(f"<{count + null_count}{'I' if big else 'B'}")
    if len(value) < HEAD.size + ids.size:
        raise ValueError("the row is cut off in its column ids")
    all_ids = ids.unpack_from(value, HEAD.size)
    head = value[: HEAD.size + ids.size]
    return ValueLayout(head, all_ids[:count], all_ids[count:], big, bool(flags & CHECKSUM))


def may_have_other_columns(value: bytes, other: bytes) -> bool:
    """Return False if two rows have as many columns with a value, and as many that are NULL."""
    return value[2 : HEAD.size] != other[2 : HEAD.size] or not value[:1] == other[:1] == _FIRST


def cells_of(layout: ValueLayout, value: bytes) -> dict[int, bytes]:
    """Return each column's bytes by its id. Raises ValueError for a row that is cut off or has invalid
    ends."""
    ends = Packing(f"<{len(layout.ids)}{'I' if layout.big else 'H'}")
    if len(value) < layout.data:
        raise ValueError("the row is cut off before its values")
    cells, start = {}, layout.data
    for id_, end in zip(layout.ids, ends.unpack_from(value, len(layout.head)), strict=True):
        stop = layout.data + end
        if not start <= stop <= len(value):
            raise ValueError(f"the value of column id {id_} is cut off")
        cells[id_] = value[start:stop]
        start = stop
    if start + tail_bytes(layout, value, start) != len(value):
        raise ValueError(f"{len(value) - start} bytes follow the values")
    return cells


def tail_bytes(layout: ValueLayout, value: bytes, offset: int) -> int:
    """Return the size of the checksums at `offset`."""
    if not layout.checksum:
        return 0
    return 9 if offset < len(value) and value[offset] & SECOND_CHECKSUM else 5


def build_row(cells: dict[int, bytes], nulls: Sequence[int], checksums: Sequence[int] = ()) -> bytes:
    """Build a row of format 2 from columns by id, with up to two checksums over its columns."""
    ids, absent = sorted(cells), sorted(nulls)
    data = [cells[id_] for id_ in ids]
    ends, end = [], 0
    for cell in data:
        end += len(cell)
        ends.append(end)
    big = end > _SMALL_DATA_BYTES or max((*ids, *absent), default=0) > _SMALL_ID
    flags = (BIG if big else 0) | (CHECKSUM if checksums else 0)
    id_letter, end_letter = ("I", "I") if big else ("B", "H")
    head = HEAD.pack(VERSION, flags, len(ids), len(absent))
    head += pack(f"<{len(ids) + len(absent)}{id_letter}", *ids, *absent)
    return b"".join((head, pack(f"<{len(ids)}{end_letter}", *ends), *data, _tail(checksums)))


def _tail(checksums: Sequence[int]) -> bytes:
    if not checksums:
        return b""
    header = SECOND_CHECKSUM if len(checksums) > 1 else 0
    return pack(f"<B{len(checksums)}I", header, *checksums)
