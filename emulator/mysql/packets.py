"""Packets of the MySQL protocol, from the server's side.

Source: the MySQL client/server protocol: "Connection Phase", "Text Resultset", "Binary Protocol Resultset".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from decimal import Decimal
from enum import IntFlag
from hashlib import sha1
from typing import Final

from ...codec.mysql.collation import BINARY, collation_id
from ...codec.mysql.field import Type
from ...codec.mysql.result_rows import result_type
from ...events import Row, Table
from .bits import lenenc, string
from .log import VERSIONS, Vendor

PLUGIN: Final = b"mysql_native_password"
_UTF8MB4: Final = collation_id("utf8mb4_general_ci")
_AUTOCOMMIT: Final = 2
_HEADER_BYTES: Final = 4


class Ability(IntFlag):
    """Capabilities of the server, or of a client."""

    LONG_PASSWORD = 1
    LONG_FLAG = 4
    CONNECT_WITH_DB = 8
    PROTOCOL_41 = 0x200
    TRANSACTIONS = 0x2000
    SECURE_CONNECTION = 0x8000
    PLUGIN_AUTH = 0x80000
    CONNECT_ATTRS = 0x100000
    LENENC_AUTH = 0x200000


_ABILITIES: Final = (
    Ability.LONG_PASSWORD | Ability.LONG_FLAG | Ability.CONNECT_WITH_DB | Ability.PROTOCOL_41
    | Ability.TRANSACTIONS | Ability.SECURE_CONNECTION | Ability.PLUGIN_AUTH | Ability.CONNECT_ATTRS
    | Ability.LENENC_AUTH
)  # fmt: skip


class PacketReader:
    """Cuts what a client sends into payloads."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the payload of each packet that is complete.

        A payload of 16 MiB comes in parts; no statement that is understood here is as long.
        """
        self._data += data
        while len(self._data) >= _HEADER_BYTES:
            size = int.from_bytes(self._data[:3], "little")
            end = _HEADER_BYTES + size
            if len(self._data) < end:
                return
            number, payload = self._data[3], bytes(self._data[_HEADER_BYTES:end])
            del self._data[:end]
            yield number, payload


def greeting(vendor: Vendor, thread: int, salt: bytes) -> bytes:
    version = ("5.5.5-" if vendor == "MariaDB" else "") + VERSIONS[vendor]
    head = b"\x0a" + version.encode() + b"\0" + struct.pack("<I", thread) + salt[:8] + b"\0"
    low, high = _ABILITIES & 0xFFFF, _ABILITIES >> 16
    settings = struct.pack("<HBHHB10x", low, _UTF8MB4, _AUTOCOMMIT, high, len(salt) + 1)
    return head + settings + salt[8:] + b"\0" + PLUGIN + b"\0"


def scramble(password: str, salt: bytes) -> bytes:
    """Return what a client with this password sends."""
    if not password:
        return b""
    once = sha1(password.encode()).digest()
    mask = sha1(salt + sha1(once).digest()).digest()
    return bytes(a ^ b for a, b in zip(once, mask, strict=True))


def read_login(payload: bytes) -> tuple[str, bytes]:
    """Return the user and the scrambled password. Raises ValueError or LookupError for other bytes."""
    abilities = Ability(int.from_bytes(payload[:4], "little") & _ABILITIES)
    end = payload.index(b"\0", 32)
    size = payload[end + 1]  # of 20 bytes at most: one byte in either encoding
    return payload[32:end].decode(), payload[end + 2 : end + 2 + size] if abilities else b""


def ok() -> bytes:
    return b"\0\0\0" + struct.pack("<HH", _AUTOCOMMIT, 0)


def eof() -> bytes:
    return b"\xfe" + struct.pack("<HH", 0, _AUTOCOMMIT)


def error(number: int, text: str) -> bytes:
    state = b"28000" if number == 1045 else b"HY000"
    return b"\xff" + number.to_bytes(2, "little") + b"#" + state + text.encode()


def text_rows(names: Sequence[str], rows: Sequence[Row]) -> Iterator[bytes]:
    """Yield the payloads of a result in the text protocol."""
    yield lenenc(len(names))
    for place, name in enumerate(names):
        yield _definition(name, _type_of([row[place] for row in rows]))
    yield eof()
    for row in rows:
        yield b"".join(b"\xfb" if value is None else string(_text(value)) for value in row)
    yield eof()


def definitions(table: Table) -> Iterator[bytes]:
    """Yield the payloads of the columns of a result in the binary protocol, and their end."""
    for column in table.columns:
        yield _definition(column.name, result_type(column))
    yield eof()


def prepared(statement: int, columns: int) -> bytes:
    """Return the first payload of the answer to COM_STMT_PREPARE, of a statement without parameters."""
    return struct.pack("<BIHHBH", 0, statement, columns, 0, 0, 0)


def _definition(name: str, type_: int) -> bytes:
    charset = _UTF8MB4 if type_ == Type.VAR_STRING else BINARY
    shown = string(name.encode())
    head = string(b"def") + string(b"") * 3 + shown + shown
    return head + b"\x0c" + struct.pack("<HIBHB2x", charset, 0, type_, 0, 0)


def _type_of(values: Sequence[object]) -> int:
    values = [value for value in values if value is not None]
    if values and all(isinstance(value, int) for value in values):
        return Type.LONGLONG
    if values and all(isinstance(value, Decimal) for value in values):
        return Type.NEWDECIMAL
    return Type.VAR_STRING


def _text(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="surrogateescape")
