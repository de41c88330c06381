"""Rows as TiDB writes them to pumps: handles, pairs of images, and the handle of a deleted row.

An inserted row is its handle's datums and a row of format 1 without the key's columns. An updated row is the
old and the new image, and a deleted row the old one: rows of format 1 with all columns.
"""

from __future__ import annotations

from typing import Final

from .datum import Flag, datum_end, decode_datum, encode_datum
from .key import record_key

_KEY_FLAGS: Final = {Flag.COMPACT_BYTES: Flag.BYTES, Flag.VARINT: Flag.INT, Flag.UVARINT: Flag.UINT}
"""Flags of a datum in a key, by its flag elsewhere."""

_EXTRA_HANDLE: Final = b"\x08\x01\x08"
"""Column id -1, and the flag of its value: the hidden handle, after the columns of a deleted row."""


def split_inserted(data: bytes, table_id: int, key_columns: int) -> tuple[bytes, bytes]:
    """Return key and value of an inserted row, whose clustered key has this number of columns; 0 for an
    integer handle.

    Raises LookupError or ValueError.
    """
    if not key_columns:
        flag, handle, offset = decode_datum(data)
        if flag is not Flag.VARINT or not isinstance(handle, int):
            raise ValueError(f"a datum of the kind {flag.name} is in the place of the handle")
        return record_key(table_id, handle), data[offset:]
    offset, parts = 0, []
    for _ in range(key_columns):
        flag, bare, offset = decode_datum(data, offset)
        parts.append(encode_datum(_KEY_FLAGS.get(flag, flag), bare))
    return record_key(table_id, b"".join(parts)), data[offset:]


def split_updated(data: bytes) -> tuple[bytes, bytes]:
    """Return the old and the new image. Raises LookupError or ValueError.

    Both have the same columns in the same order, so the new one begins with the id of the first column.
    """
    first = data[: datum_end(data, 0)]
    offset, size, columns = datum_end(data, len(first)), len(data), 1
    while offset < size and not data.startswith(first, offset):
        offset = datum_end(data, datum_end(data, offset))
        columns += 1
    middle = offset
    for _ in range(columns):
        offset = datum_end(data, datum_end(data, offset))
    if offset != size:
        raise ValueError(f"the old image has {columns} columns, and the new one others")
    return data[:middle], data[middle:]


def without_handle(data: bytes) -> bytes:
    """Return a deleted row without its hidden handle, if it has one at its end."""
    offset = len(data) - 1
    if offset < 0 or data[offset] > 127:
        return data
    while offset and data[offset - 1] > 127:
        offset -= 1
    start = offset - len(_EXTRA_HANDLE)
    return data[:start] if start >= 0 and data.startswith(_EXTRA_HANDLE, start) else data
