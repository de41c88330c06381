"""Native writing of a column's times as text."""

from __future__ import annotations

import pyarrow as pa

from .library import native


def time_texts(values: pa.Array, scale: int) -> pa.Array:
    """Return dates, timestamps or durations as large_string, with `scale` digits of a second's fraction.

    The values are date32, timestamp[us] or duration[us]. Raises ValueError for a date outside of the years 1
    to 9999.
    """
    type_, count, first = values.type, len(values), values.offset
    if pa.types.is_date(type_):
        output = native.AS_DATE
    else:
        output = native.AS_DURATION if pa.types.is_duration(type_) else native.AS_DATETIME
    validity, numbers = values.buffers()
    offsets, texts = native.time_texts(output, type_.bit_width // 8, scale, first + count, validity, numbers)
    buffers = [validity, pa.py_buffer(offsets), pa.py_buffer(texts)]
    return pa.Array.from_buffers(pa.large_string(), count, buffers, offset=first)
