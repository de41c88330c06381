"""Keys as bytes that sort alike."""

from __future__ import annotations

from typing import Final

from ..events import KeyPart, OrderedKey

_INTEGER_BYTES: Final = 9
"""Bytes of an integer: enough for unsigned and negative 64-bit ones."""
_LEAST: Final = 1 << 64
"""Number added to an integer, to have it positive."""
_INTEGER: Final = b"\x01"
_TEXT: Final = b"\x02"
_ZERO: Final = b"\x00"
_ESCAPED: Final = b"\x00\xff"
_END: Final = b"\x00\x01"


def encode_key(key: OrderedKey) -> bytes:
    """Encode a key: two of one table sort as their encoded forms do."""
    return b"".join(map(_encode, key))


def _encode(part: KeyPart) -> bytes:
    if isinstance(part, int):
        return _INTEGER + (part + _LEAST).to_bytes(_INTEGER_BYTES, "big")
    return _TEXT + part.encode("utf-8", "surrogatepass").replace(_ZERO, _ESCAPED) + _END


def decode_key(data: bytes) -> OrderedKey:
    parts: list[KeyPart] = []
    offset = 0
    while offset < len(data):
        tag, offset = data[offset : offset + 1], offset + 1
        if tag == _INTEGER:
            end = offset + _INTEGER_BYTES
            parts.append(int.from_bytes(data[offset:end], "big") - _LEAST)
        else:
            end = data.index(_END, offset) + len(_END)
            text = data[offset : end - len(_END)].replace(_ESCAPED, _ZERO)
            parts.append(text.decode("utf-8", "surrogatepass"))
        offset = end
    return tuple(parts)
