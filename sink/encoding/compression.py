"""Compression of messages, each by itself: LZ4 frames and Snappy blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Compress: TypeAlias = Callable[[list[bytes]], list[bytes]]


def compressor(name: str) -> Compress:
    """Return a function that compresses messages; `name` is none, lz4 or snappy.

    Raises ImportError if pyarrow is missing, which has the codecs.
    """
    if name == "none":
        return lambda values: values
    import pyarrow as pa

    codec = pa.Codec(name)
    return lambda values: [codec.compress(value, asbytes=True) for value in values]
