"""Deletion vectors of Delta tables: which rows of a data file are gone, by the protocol's bytes.

https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Deletion Vectors"
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote
from uuid import UUID, uuid4

from pyroaring import BitMap64

from .....errors import SinkError
from ...store import Store

_MAGIC: Final = struct.pack("<I", 1681511377)
"""Begins a portable roaring bitmap of 64 bits."""
_VERSION: Final = b"\x01"
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""The digits of Z85, in which a log writes bytes: five for four bytes."""
_ID_DIGITS: Final = 20
"""Digits of a UUID."""

Descriptor = Mapping[str, Any]
"""`deletionVector` of an action."""


def read_vector(store: Store, folder: str, descriptor: Descriptor) -> BitMap64:
    """Return the numbers of the rows that are gone. Raises SinkError if damaged, and as Store does."""
    kind, place = descriptor["storageType"], descriptor["pathOrInlineDv"]
    if kind == "i":
        return _bitmap(folder, _from_digits(place)[: descriptor["sizeInBytes"]])
    own = vector_file(descriptor)
    if own is None:
        raise SinkError(f"{folder} has a deletion vector outside of its folder: {place}")
    path = f"{folder}/{own}"
    start, size = descriptor.get("offset") or 0, descriptor["sizeInBytes"]
    with store.open(path) as file:
        file.seek(start)
        content = file.read(4 + size + 4)
    data = content[4 : 4 + size]
    if content[:4] != struct.pack(">I", size) or content[4 + size :] != struct.pack(">I", zlib.crc32(data)):
        raise SinkError(f"{store.name}/{path} is damaged: put back a copy of it")
    return _bitmap(path, data)


def vector_file(descriptor: Descriptor) -> str | None:
    """Return the path in its table's folder of the file that has a vector; None if it is in no such file."""
    if descriptor["storageType"] != "u":
        return None
    place: str = descriptor["pathOrInlineDv"]
    prefix, digits = place[:-_ID_DIGITS], place[-_ID_DIGITS:]
    name = _file_name(UUID(bytes=_from_digits(digits)))
    return f"{unquote(prefix)}/{name}" if prefix else name


def write_vectors(store: Store, folder: str, vectors: Sequence[BitMap64]) -> list[dict[str, Any]]:
    """Write one file with these vectors, if there are any, and return the descriptor of each. Raises as
    Store does."""
    unique = uuid4()
    content = bytearray(_VERSION)
    descriptors: list[dict[str, Any]] = []
    for vector in vectors:
        data = _MAGIC + vector.serialize()
        descriptors.append(
            {
                "storageType": "u",
                "pathOrInlineDv": _to_digits(unique.bytes),
                "offset": len(content),
                "sizeInBytes": len(data),
                "cardinality": len(vector),
            }
        )
        content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    if descriptors:
        store.write(f"{folder}/{_file_name(unique)}", bytes(content))
    return descriptors


def _file_name(unique: UUID) -> str:
    return f"deletion_vector_{unique}.bin"


def _bitmap(name: str, data: bytes) -> BitMap64:
    if data[:4] != _MAGIC:
        raise SinkError(f"{name} has a deletion vector of an unknown form")
    try:
        return BitMap64.deserialize(data[4:])
    except ValueError as error:
        raise SinkError(f"{name} has a damaged deletion vector: {error}") from error


def _to_digits(data: bytes) -> str:
    """Return bytes, a multiple of four, in digits."""
    digits = []
    for (word,) in struct.iter_unpack(">I", data):
        digits += [_DIGITS[word // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(digits)


def _from_digits(text: str) -> bytes:
    data = b""
    for start in range(0, len(text), 5):
        word = 0
        for digit in text[start : start + 5]:
            word = word * 85 + _DIGITS.index(digit)
        data += struct.pack(">I", word)
    return data
