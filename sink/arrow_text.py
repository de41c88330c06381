"""Arrow columns of temporal values as the source prints them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from ..codec.native import library
from ..codec.native.time_texts import time_texts
from ..codec.text import time_text


def as_text(values: pa.Array, scale: int) -> pa.Array:
    """Return dates, timestamps or durations as large_string, with `scale` digits of a second's fraction.

    Raises ValueError for a date outside of the years 1 to 9999.
    """
    return time_texts(values, scale) if library.in_use else as_text_by_python(values, scale)


def as_text_by_python(values: pa.Array, scale: int) -> pa.Array:
    """Return what `as_text` does, of values of any unit and in any year."""
    if pa.types.is_duration(values.type):
        texts = [None if value is None else time_text(value, scale) for value in values.to_pylist()]
        return pa.array(texts, pa.large_string())
    if pa.types.is_date(values.type):
        return values.cast(pa.large_string())
    naive = values.cast(pa.timestamp("us"))
    if not scale:
        return naive.cast(pa.timestamp("s"), safe=False).cast(pa.large_string())
    return pc.utf8_slice_codeunits(naive.cast(pa.large_string()), 0, 20 + scale)
