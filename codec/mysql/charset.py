"""Decoding of text in the server's character sets to str, character for character as the server converts it.

A byte that the server has no character for becomes "?", as the server prints it.
"""

from __future__ import annotations

import re
from codecs import charmap_decode
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

from .charset_euc import decode_eucjpms, decode_ujis
from .charset_tables import TABLES

TextDecoder: TypeAlias = Callable[[bytes], str]

_UNICODE: Final = {
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "euckr": "cp949",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "gb18030": "gb18030",
    "cp932": "cp932",
}
"""Charsets for which Python's codec equals the server's."""

_ONE_BYTE: Final = {
    "ascii": ("ascii", {}),
    "cp1250": ("cp1250", {}),
    "cp1251": ("cp1251", {}),
    "cp1256": ("cp1256", dict.fromkeys(b"\x8a\x8f\x98\x9a\x9f\xaa\xc0\xff", "?")),
    "cp1257": ("cp1257", {}),
    "cp850": ("cp850", {}),
    "cp852": ("cp852", {}),
    "cp866": ("cp866", {0xFC: "\u207f", 0xFD: "\xb2"}),
    "greek": ("iso8859-7", {0xA1: "\u02bd", 0xA2: "\u02bc", 0xA4: "?", 0xA5: "?", 0xAA: "?"}),
    "hebrew": ("iso8859-8", {0xAF: "\u203e"}),
    "hp8": ("hp-roman8", {}),
    "koi8r": ("koi8-r", {}),
    "koi8u": ("koi8-u", {0x95: "\u2022"}),
    "latin1": ("cp1252", {byte: chr(byte) for byte in b"\x81\x8d\x8f\x90\x9d"}),
    "latin2": ("iso8859-2", {}),
    "latin5": ("iso8859-9", {}),
    "latin7": ("iso8859-13", {}),
    "macce": ("mac-latin2", {}),
    "macroman": ("mac-roman", {}),
    "tis620": ("tis-620", dict.fromkeys(b"\xa0\xdb\xdc\xdd\xde\xfc\xfd\xfe\xff", "\ufffd")),
}  # fmt: skip
"""Python's codec, and the bytes for which the server differs."""

_MANY_BYTES: Final = {
    "big5": ("big5", rb"[\0-\x80\xff]|..", {
        b"\xa1\x5a": "\ufffd", b"\xa1\xc3": "\ufffd", b"\xa1\xc5": "\ufffd", b"\xa1\xfe": "\ufffd",
        b"\xa2\x40": "\ufffd", b"\xa2\xcc": "\ufffd", b"\xa2\xce": "\ufffd", b"\xf9\xd6": "\u7881",
        b"\xf9\xd7": "\u92b9", b"\xf9\xd8": "\u88cf", b"\xf9\xd9": "\u58bb", b"\xf9\xda": "\u6052",
        b"\xf9\xdb": "\u7ca7", b"\xf9\xdc": "\u5afa",
    }),
    "sjis": ("shift_jis", rb"[\0-\x80\xa0-\xdf\xfd-\xff]|..", {b"\x81\x5f": "\\"}),
}  # fmt: skip
"""Python's codec, the pattern of one character, and the characters for which the server differs."""

_EUC: Final[dict[str, TextDecoder]] = {"ujis": decode_ujis, "eucjpms": decode_eucjpms}

_MAX_BYTES: Final = {
    "big5": 2, "cp932": 2, "eucjpms": 3, "euckr": 2, "gb18030": 4, "gb2312": 2, "gbk": 2, "sjis": 2,
    "ucs2": 2, "ujis": 3, "utf16": 4, "utf16le": 4, "utf32": 4, "utf8mb3": 3, "utf8mb4": 4,
}  # fmt: skip


def max_bytes(charset: str) -> int:
    """Return the maximum number of bytes per character."""
    return _MAX_BYTES.get(charset, 1)


@cache
def text_decoder(charset: str) -> TextDecoder:
    """Return a decoder of `charset` to str; it raises UnicodeDecodeError for bytes that aren't text.

    Raises LookupError if Python has no codec for the charset.
    """
    if charset in _UNICODE:
        codec = _UNICODE[charset]
        return lambda text: text.decode(codec)
    if charset in _EUC:
        return _EUC[charset]
    if charset in TABLES:
        return _table_decoder(TABLES[charset])
    if charset in _ONE_BYTE:
        return _one_byte_decoder(*_ONE_BYTE[charset])
    return _many_bytes_decoder(*_MANY_BYTES[charset])


def _one_byte_decoder(codec: str, differing: dict[int, str]) -> TextDecoder:
    table = "".join(
        differing.get(byte) or bytes((byte,)).decode(codec, "replace").replace("\ufffd", "?")
        for byte in range(256)
    )
    return _table_decoder(table)


def _table_decoder(table: str) -> TextDecoder:
    return lambda text: charmap_decode(text, "strict", table)[0]


def _many_bytes_decoder(codec: str, character: bytes, differing: dict[bytes, str]) -> TextDecoder:
    suspicious = re.compile(b"|".join(map(re.escape, differing))).search
    characters = re.compile(character + b"|.", re.DOTALL).findall  # what is incomplete isn't passed over

    def decode(text: bytes) -> str:
        if suspicious(text) is None:
            return text.decode(codec)
        # One of the sequences occurs, perhaps only across two characters.
        return "".join([differing.get(one) or one.decode(codec) for one in characters(text)])

    return decode
