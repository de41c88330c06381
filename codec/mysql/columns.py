"""The row images of a table as Arrow columns: by numpy for all rows at once, without a Python value.

Only what is regular is read here. Where a value has no place in its Arrow type, or bytes aren't a value,
NotColumnar is raised: then the rows are decoded one by one, and what can't be read is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from ...events import not_a_member
from ..arrow_arrays import int64_array
from .column_code import PRINTERS, value_reader
from .field import COMPRESSED, Field, Type
from .values import set_printer
from .walk import widths_of

if TYPE_CHECKING:
    import numpy.typing as npt

Ints: TypeAlias = "npt.NDArray[np.int64]"
Bools: TypeAlias = "npt.NDArray[np.bool_]"

_DIGITS: Final = 18
"""Maximum digits of a decimal that fits into 64 bits."""
_WORD_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_PADDING: Final = bytes(16)
"""Read beyond the last row where its last columns are NULL."""
_FRACTION_MICROS: Final = (1, 10_000, 100, 1)
_DAY: Final = 86_400_000_000
_ASCII: Final = ("ascii", "latin1")
"""Character sets whose first 128 are ASCII's; the other characters are left to the row decoder."""
_INTEGERS: Final = {Type.TINY: 1, Type.SHORT: 2, Type.LONG: 4, Type.LONGLONG: 8}


class NotColumnar(Exception):
    """These rows are to be decoded one by one."""


class ColumnsDecoder:
    """Reads the row images of one layout."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._widths = widths_of(fields)
        self._bitmap_bytes = (len(fields) + 7) // 8

    def decode(self, images: bytes, starts: Ints) -> list[pa.Array]:
        """An array for each column of the table; `starts` is where each image begins. Raises NotColumnar."""
        try:
            with np.errstate(over="ignore"):
                return self._decode(_Data(images + _PADDING), starts)
        except (pa.ArrowException, ValueError, LookupError, OverflowError) as error:
            raise NotColumnar(str(error)) from None

    def _decode(self, data: _Data, starts: Ints) -> list[pa.Array]:
        bitmaps = data.take(starts, self._bitmap_bytes)
        at = starts + self._bitmap_bytes
        arrays = []
        for i, (field, width) in enumerate(zip(self._fields, self._widths, strict=True)):
            null = (bitmaps[:, i // 8] >> (i % 8) & 1).astype(bool)
            valid = ~null if null.any() else None
            if width.counted:
                sizes = data.uint(at, width.fixed)
                begin = at + width.fixed
                if valid is not None:
                    begin, sizes = np.where(valid, begin, at), np.where(valid, sizes, 0)
                at = begin + sizes
                if not field.hidden:
                    arrays.append(_counted(field, data, begin, at, valid))
            else:
                if not field.hidden:
                    arrays.append(_fixed(field, data, at, valid, width.fixed))
                at = at + (width.fixed if valid is None else np.where(valid, width.fixed, 0))
        return arrays


class _Data:
    def __init__(self, data: bytes) -> None:
        self.bytes = data

    def take(self, starts: Ints, size: int) -> npt.NDArray[np.uint8]:
        """`size` bytes from each place, as rows of a matrix."""
        windows: npt.NDArray[np.void] = np.ndarray(
            (len(self.bytes) - size + 1,), f"V{size}", self.bytes, strides=(1,)
        )
        return windows[starts].view(np.uint8).reshape(len(starts), size)

    def uint(self, starts: Ints, size: int, order: str = "<") -> Ints:
        """Unsigned numbers of `size` bytes as int64; 8 bytes as uint64."""
        taken = self.take(starts, size)
        if size == 8:
            return taken.reshape(-1).view(f"{order}u8").astype(np.uint64)
        room = np.zeros((len(starts), 8), np.uint8)
        if order == "<":
            room[:, :size] = taken
        else:
            room[:, 8 - size :] = taken
        return room.reshape(-1).view(f"{order}i8").astype(np.int64)


def _array(kind: pa.DataType, values: Ints, valid: Bools | None) -> pa.Array:
    bits = None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [bits, pa.py_buffer(np.ascontiguousarray(values))])


def _require(good: Bools, valid: Bools | None) -> None:
    if not (good if valid is None else good | ~valid).all():
        raise NotColumnar


# --- text and bytes -------------------------------------------------------------------------------


def _counted(field: Field, data: _Data, begin: Ints, end: Ints, valid: Bools | None) -> pa.Array:
    """Begins and ends in turn are the offsets of an array in which every second value is one of ours."""
    column = field.column
    offsets = np.empty(2 * len(begin), np.int64)
    offsets[::2], offsets[1::2] = begin, end
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data.bytes)]
    every = pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    places = int64_array(np.arange(0, len(offsets), 2), None if valid is None else ~valid)
    values = every.take(places)
    if field.type in COMPRESSED or column.kind in PRINTERS:
        convert = value_reader(field)
        made = [None if value is None else convert(value) for value in values.to_pylist()]
        return pa.array(
            made, pa.large_binary() if column.kind in ("varbinary", "blob") else pa.large_string()
        )
    if column.kind == "binary":  # without its zeros at the end
        if ((end - begin)[slice(None) if valid is None else valid] != field.size).any():
            padded = [None if v is None else v.ljust(field.size, b"\0") for v in values.to_pylist()]
            values = pa.array(padded, pa.large_binary())
        return values
    if column.charset is None:
        return values
    if column.charset in _ASCII:
        if not all(text is None or text.isascii() for text in values.to_pylist()):
            raise NotColumnar
    elif column.charset not in ("utf8mb4", "utf8mb3"):
        raise NotColumnar
    return values.cast(pa.large_string())


# --- columns of fixed width -----------------------------------------------------------------------


def _fixed(field: Field, data: _Data, starts: Ints, valid: Bools | None, size: int) -> pa.Array:
    column = field.column
    match field.type:
        case Type.TINY | Type.SHORT | Type.LONG | Type.LONGLONG:
            letter = "u" if column.unsigned else "i"
            values = data.take(starts, size).reshape(-1).view(f"<{letter}{size}")
            return _array(getattr(pa, f"{'u' * column.unsigned}int{8 * size}")(), values, valid)
        case Type.INT24:
            values = data.uint(starts, 3)
            if column.unsigned:
                return _array(pa.uint32(), values.astype(np.uint32), valid)
            return _array(pa.int32(), (values - (values >> 23 << 24)).astype(np.int32), valid)
        case Type.FLOAT | Type.DOUBLE:
            values = data.take(starts, size).reshape(-1).view(f"<f{size}")
            return _array(pa.float32() if size == 4 else pa.float64(), values, valid)
        case Type.NEWDECIMAL:
            return _decimal(data, starts, column.length, column.scale, valid)
        case Type.BIT:
            return _array(pa.uint64(), data.uint(starts, size, ">").astype(np.uint64), valid)
        case Type.YEAR:
            values = data.uint(starts, 1)
            return _array(pa.int16(), np.where(values, values + 1900, 0).astype(np.int16), valid)
        case Type.DATE | Type.NEWDATE:
            values = data.uint(starts, 3)
            days = _days(values >> 9, values >> 5 & 15, values & 31, valid)
            return _array(pa.date32(), days.astype(np.int32), valid)
        case Type.TIME2:
            return _time(data, starts, size, valid)
        case Type.DATETIME2:
            return _array(pa.timestamp("us"), _datetime(data, starts, size, valid), valid)
        case Type.TIMESTAMP2 | Type.TIMESTAMP:
            seconds = data.uint(starts, 4, ">" if field.type == Type.TIMESTAMP2 else "<")
            _require(seconds != 0, valid)  # 0 stands for the zero date
            micros = seconds * 1_000_000 + _fraction(data, starts + 4, size - 4)
            return _array(pa.timestamp("us", "UTC"), micros, valid)
        case Type.ENUM:
            members = pa.array((not_a_member(column.members), *column.members), pa.large_string())
            return members.take(_places(data.uint(starts, size), valid))
        case Type.SET:
            bits = data.uint(starts, size).astype(np.uint64)
            kinds, places = np.unique(bits if valid is None else bits[valid], return_inverse=True)
            printed = pa.array([set_printer(column.members)(int(kind)) for kind in kinds], pa.large_string())
            if valid is None:
                return printed.take(pa.array(places))
            every = np.zeros(len(bits), np.int64)
            every[valid] = places
            return printed.take(_places(every, valid))
    raise NotColumnar


def _places(values: Ints, valid: Bools | None) -> pa.Array:
    return pa.array(values, mask=None if valid is None else ~valid)


def _decimal(data: _Data, starts: Ints, digits: int, scale: int, valid: Bools | None) -> pa.Array:
    """See column_code: words of nine digits; of a negative number all bits are inverted."""
    if digits > _DIGITS:
        raise NotColumnar
    whole = digits - scale
    words = [d for d in (whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9) if d]
    total: Any = 0
    negative: Any = None
    for k, word_digits in enumerate(words):
        size = _WORD_BYTES[word_digits]
        word, ones = data.uint(starts, size, ">"), (1 << 8 * size) - 1
        if negative is None:
            sign = 1 << 8 * size - 1
            negative = word & sign == 0
            word = np.where(negative, word ^ ones, word) & ~sign
        else:
            word = np.where(negative, word ^ ones, word)
        total = total + word * 10 ** sum(words[k + 1 :])
        starts = starts + size
    _require((total >= 0) & (total < 10**digits), valid)
    numbers = np.empty((len(total), 2), np.int64)
    numbers[:, 0] = np.where(negative, -total, total)
    numbers[:, 1] = numbers[:, 0] >> 63
    return _array(pa.decimal128(digits, scale), numbers.reshape(-1, 2), valid)


def _days(years: Ints, months: Ints, days: Ints, valid: Bools | None) -> Ints:
    """Days since 1970 of dates that the calendar has; others raise NotColumnar."""
    _require((years >= 1) & (years <= 9999) & (months >= 1) & (months <= 12) & (days >= 1), valid)
    month = (years - 1970) * 12 + months - 1
    first = _first_days(month)
    _require(days <= _first_days(month + 1) - first, valid)
    return first + days - 1


def _first_days(months: Ints) -> Ints:
    """Return the first day of months since 1970, in days since then."""
    days: Ints = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    return days


def _datetime(data: _Data, starts: Ints, size: int, valid: Bools | None) -> Ints:
    packed = data.uint(starts, 5, ">") - (1 << 39)
    months, clock = packed >> 22, packed & 0x1FFFF
    hours, minutes, seconds = clock >> 12, clock >> 6 & 63, clock & 63
    micros = _fraction(data, starts + 5, size - 5)
    _require((hours <= 23) & (minutes <= 59) & (seconds <= 59) & (micros <= 999_999), valid)
    days = _days(months // 13, months % 13, packed >> 17 & 31, valid)
    microseconds: Ints = days * _DAY + ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros
    return microseconds


def _time(data: _Data, starts: Ints, size: int, valid: Bools | None) -> pa.Array:
    packed = data.uint(starts, size, ">") - (1 << 8 * size - 1)
    bits = 8 * (size - 3)
    unsigned = np.abs(packed)
    clock = unsigned >> bits
    micros = (unsigned & (1 << bits) - 1) * _FRACTION_MICROS[size - 3]
    minutes, seconds = clock >> 6 & 63, clock & 63
    _require((minutes <= 59) & (seconds <= 59) & (micros <= 999_999), valid)
    value = (((clock >> 12) * 60 + minutes) * 60 + seconds) * 1_000_000 + micros
    return _array(pa.duration("us"), np.where(packed < 0, -value, value), valid)


def _fraction(data: _Data, starts: Ints, size: int) -> Ints:
    return data.uint(starts, size, ">") * _FRACTION_MICROS[size] if size else np.zeros(len(starts), np.int64)
