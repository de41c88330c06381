"""Arrow arrays of numpy's numbers, and of few values.

`pa.array` and `pa.scalar` do the same, but import pandas, to see if the values are its own: 0.2 s of each new
process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import SourceError

_MOST_BYTES: Final = (1 << 31) - 1
"""Maximum bytes of the values in an array of string or binary."""


def in_type(column: str, kind: pa.DataType, values: Callable[[pa.DataType], pa.Array]) -> pa.Array:
    """Return the values of a column in a type. Raises SourceError about the column if the type can't hold one
    of them."""
    try:
        return values(kind)
    except (pa.ArrowException, OverflowError) as error:
        raise SourceError(f"column {column} has a value that {kind} can't hold: {error}") from error


def int64_array(
    values: npt.ArrayLike, absent: npt.NDArray[np.bool_] | None = None, kind: pa.DataType | None = None
) -> pa.Array:
    """Return numbers as int64, or a type that stores it; null where `absent` is true."""
    numbers = np.ascontiguousarray(values, np.int64)
    valid = None if absent is None else _bits(~absent)
    return pa.Array.from_buffers(kind or pa.int64(), len(numbers), [valid, pa.py_buffer(numbers)])


def bool_array(values: npt.ArrayLike) -> pa.Array:
    bits = np.ascontiguousarray(values, np.bool_)
    return pa.Array.from_buffers(pa.bool_(), len(bits), [None, _bits(bits)])


def binary_array(values: Sequence[bytes]) -> pa.Array:
    """Return bytes as large_binary."""
    ends = np.fromiter(accumulate(map(len, values), initial=0), np.int64, len(values) + 1)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.large_binary(), len(values), buffers)


def repeated(
    values: Sequence[Any], sizes: Sequence[int] | npt.NDArray[np.int64], kind: pa.DataType
) -> pa.Array:
    """Return each value repeated as often as its size. The type is int64, bool, string or binary."""
    if kind == pa.int64():
        return int64_array(np.repeat(np.fromiter(values, np.int64, len(values)), sizes))
    if kind == pa.bool_():
        return bool_array(np.repeat(np.asarray(values, np.bool_), sizes))
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    if len(places) == 1:
        return _constant(values[0], int(np.sum(sizes)), kind)
    stored = [value.encode() if isinstance(value, str) else value or b"" for value in places]
    ends = np.fromiter(accumulate(map(len, stored), initial=0), np.int32)
    valid = _bits(np.array([value is not None for value in places], np.bool_))
    buffers = [valid, pa.py_buffer(ends), pa.py_buffer(b"".join(stored))]
    distinct = pa.Array.from_buffers(kind, len(stored), buffers)
    return distinct.take(int64_array(np.repeat([places[value] for value in values], sizes)))


def _constant(value: str | bytes | None, count: int, kind: pa.DataType) -> pa.Array:
    """Return an array of string or binary, in a quarter of the time of `take`."""
    if value is None:
        return pa.nulls(count, kind)
    stored = value.encode() if isinstance(value, str) else value
    if count * len(stored) > _MOST_BYTES:
        raise pa.ArrowCapacityError(f"{count} values of {len(stored)} bytes are too large for one array")
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(len(stored))
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(ends), pa.py_buffer(stored * count)])


def counted(firsts: Sequence[int], sizes: Sequence[int] | npt.NDArray[np.int64]) -> pa.Array:
    """Return ascending numbers from each first one, as many as its size."""
    ends = np.cumsum(sizes)
    return int64_array(
        np.arange(ends[-1]) + np.repeat(np.fromiter(firsts, np.int64, len(firsts)) - (ends - sizes), sizes)
    )


def int64_values(array: pa.Array) -> npt.NDArray[np.int64]:
    """Return the numbers of an int64 array without nulls, uncopied."""
    return np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array)]


def _bits(values: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))
