"""Compression of single messages: LZ4 frames and Snappy blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Compress: TypeAlias = Callable[[bytes], bytes]


def compressor(name: str) -> Compress:
    """Return a function that compresses a message; `name` is none, lz4 or snappy.

    Raises ImportError if pyarrow is missing, which has the codecs.
    """
    if name == "none":
        return bytes  # which returns bytes as they are
    import pyarrow as pa

    codec = pa.Codec(name)
    return lambda value: codec.compress(value, asbytes=True)
