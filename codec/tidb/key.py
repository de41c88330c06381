"""Keys of TiDB's tables, and the memory-comparable encoding that PD and the index keys use.

A record's key is `t`, the table's id, `_r` and the handle: eight bytes for an integer, else the encoded
datums of a clustered key (see datum.py). Integers are big-endian with the sign bit flipped.
"""

from __future__ import annotations

from struct import Struct as Packing
from typing import Final

_GROUP: Final = 8
"""Bytes are encoded in groups of this size, each followed by 0xFF minus its padding."""

_UINT64: Final = Packing(">Q")
_SIGN: Final = 1 << 63

_TABLE: Final = b"t"
_RECORD: Final = b"_r"
_RECORD_END: Final = b"_s"
_PREFIX_BYTES: Final = 11
"""Length of `t`, the table's id and `_r`."""


def encode_bytes(data: bytes) -> bytes:
    """Encode bytes so that the order is kept and no encoding is a prefix of another."""
    whole = len(data) - len(data) % _GROUP
    groups = [data[offset : offset + _GROUP] for offset in range(0, whole, _GROUP)]
    rest = data[whole:]
    padding = _GROUP - len(rest)
    tail = rest + b"\0" * padding + bytes([0xFF - padding])
    return b"\xff".join([*groups, tail])


def decode_bytes(data: bytes, offset: int = 0) -> tuple[bytes, int]:
    """Return the bytes encoded from `offset` on, and the end of the encoding. Raises ValueError for anything
    else."""
    groups = []
    while True:
        end = offset + _GROUP
        if end >= len(data):
            raise ValueError(f"encoded bytes are cut off after {len(data)} bytes: {data.hex()}")
        padding = 0xFF - data[end]
        if not padding:
            groups.append(data[offset:end])
            offset = end + 1
            continue
        if padding > _GROUP or any(data[end - padding : end]):
            raise ValueError(f"bytes at {offset} aren't memory-comparable: {data.hex()}")
        groups.append(data[offset : end - padding])
        return b"".join(groups), end + 1


def encode_int(n: int) -> bytes:
    """Encode a signed 64-bit integer as eight bytes in its order."""
    return _UINT64.pack(n + _SIGN)


def decode_int(data: bytes, offset: int = 0) -> int:
    """Return the integer in the eight bytes from `offset` on. Raises ValueError if there are fewer."""
    if len(data) < offset + 8:
        raise ValueError(f"an integer of eight bytes is cut off at {offset}: {data.hex()}")
    number: int = _UINT64.unpack_from(data, offset)[0]
    return number - _SIGN


def table_prefix(table_id: int) -> bytes:
    """Return the prefix of all keys of a table."""
    return _TABLE + encode_int(table_id)


def record_prefix(table_id: int) -> bytes:
    """Return the prefix of the keys of a table's rows."""
    return table_prefix(table_id) + _RECORD


def record_key(table_id: int, handle: int | bytes) -> bytes:
    """Return the key of a row; the handle is an integer, or the datums of a clustered key."""
    return record_prefix(table_id) + (encode_int(handle) if isinstance(handle, int) else handle)


def record_span(table_id: int) -> tuple[bytes, bytes]:
    """Return the first possible key of a table's rows, and the first key after all of them."""
    prefix = table_prefix(table_id)
    return prefix + _RECORD, prefix + _RECORD_END


def decode_record_key(raw: bytes) -> tuple[int, int | bytes]:
    """Return table id and handle of a row's key. Raises ValueError for another kind of key.

    A clustered key is never eight bytes long: each datum takes a flag byte and at least eight more.
    """
    if raw[:1] != _TABLE or raw[9:_PREFIX_BYTES] != _RECORD or len(raw) < _PREFIX_BYTES + 8:
        raise ValueError(f"this isn't the key of a row: {raw.hex()}")
    handle: int | bytes = raw[_PREFIX_BYTES:]
    if len(raw) == _PREFIX_BYTES + 8:
        handle = decode_int(raw, _PREFIX_BYTES)
    return decode_int(raw, 1), handle
