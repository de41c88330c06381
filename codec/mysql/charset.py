"""Decoding of text in the server's character sets to str, character for character as the server converts it.

A byte that the server has no character for becomes "?", as the server prints it.
"""

from __future__ import annotations

import re
from codecs import charmap_decode
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

_CHARACTER: Final = re.compile(rb"[\0-\x8d\x90-\xa0\xff]|\x8f..|..|.", re.DOTALL)
_CELLS: Final = range(0xA1, 0xFF)
_PRIVATE_ROWS: Final = range(0xF5, 0xFF)

_IBM: Final = bytes.fromhex("""
2170 2171 2172 2173 2174 2175 2176 2177 2178 2179 2160 2161 2162 2163 2164 2165 2166 2167 2168 2169
ff07 ff02 3231 2116 2121 70bb 4efc 50f4 51ec 5307 5324 fa0e 548a 5759 fa0f fa10 589e 5bec 5cf5 5d53
fa11 5fb7 6085 6120 654e 663b 6665 fa12 f929 6801 fa13 fa14 6a6b 6ae2 6df8 6df2 7028 fa15 fa16 7501
7682 769e fa17 7930 fa18 fa19 fa1a fa1b 7ae7 fa1c fa1d 7da0 7dd6 fa1e 8362 fa1f 85b0 fa20 fa21 8807
fa22 8b7f 8cf4 8d76 fa23 fa24 fa25 90de fa26 9115 fa27 fa28 9592 f9dc fa29 973b 974d 9751 fa2a fa2b
fa2c 999e 9ad9 9b72 fa2d 9ed1
""").decode("utf-16-be")
"""The characters from 8F F3 F3 on."""
_IBM_BEGIN: Final = 0xF3 * 94 + 0xF3


def decode_ujis(text: bytes) -> str:
    return text.decode("ascii") if text.isascii() else "".join(map(_ujis, _CHARACTER.findall(text)))


def decode_eucjpms(text: bytes) -> str:
    return text.decode("ascii") if text.isascii() else "".join(map(_eucjpms, _CHARACTER.findall(text)))


def _ujis(one: bytes) -> str:
    return "\\" if one == b"\xa1\xc0" else _private(one) or one.decode("euc_jp")


def _eucjpms(one: bytes) -> str:
    if char := _private(one):
        return char
    if len(one) == 2 and one[0] in _CELLS and one[1] in _CELLS:
        return _shifted(*one).decode("cp932")
    if one == b"\x8f\xa2\xb7":
        return "\uff5e"
    if one == b"\x8f\xa2\xc3":
        return "\uffe4"
    if len(one) == 3 and one[1] in (0xF3, 0xF4) and one[2] in _CELLS:
        number = one[1] * 94 + one[2] - _IBM_BEGIN
        if number >= 0:
            return _IBM[number]
    return one.decode("euc_jp")


def _private(one: bytes) -> str:
    """Return a character of private use; empty if it is none."""
    if len(one) == 1 or one[-2] not in _PRIVATE_ROWS or one[-1] not in _CELLS:
        return ""
    return chr((0xE000 if len(one) == 2 else 0xE3AC) + (one[-2] - 0xF5) * 94 + one[-1] - 0xA1)


def _shifted(first: int, second: int) -> bytes:
    """Return the character of JIS X 0208 in the encoding of cp932."""
    row, cell = first - 0xA0, second - 0xA0
    lead = (row - 1) // 2 + 0x81
    trail = cell + (0x3F + (cell >= 0x40) if row % 2 else 0x9E)
    return bytes((lead + 0x40 * (lead > 0x9F), trail))


ASCII: Final = "".join(map(chr, range(0x80)))
_CONTROLS: Final = "".join(map(chr, range(0x80, 0xA0)))

# ruff: noqa: RUF001
TABLES: Final = {
    "armscii8": (
        ASCII + _CONTROLS + "\xa0❁§։)(»«—.՝,-՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէ"
        "ԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշ"
        "ՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’'"
    ),
    "dec8": (
        ASCII + _CONTROLS + "\xa0¡¢£?¥?§¤©ª«????°±²³?µ¶·?¹º»¼½?¿"
        "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ?ÑÒÓÔÕÖŒØÙÚÛÜŸ?ß"
        "àáâãäåæçèéêëìíîï?ñòóôõöœøùúûüÿ??"
    ),
    "geostd8": (
        ASCII + "€?‚?„…†‡?‰?‹?????‘’“”•–—???›????"
        "\xa0¡¢£¤¥¦§¨©ª«¬\xad®¯°±²³´µ¶·¸¹º»¼½¾¿"
        "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწ"
        "ჭხჴჯჰჵ???????????????????????№??"
    ),
    "keybcs2": (
        ASCII + "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘť"
        "áíóúňŇŮÔšřŕŔ¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐"
        "└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
        "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\xa0"
    ),
    "swe7": ASCII[:64] + "É" + ASCII[65:91] + "ÄÖÅÜ_é" + ASCII[97:123] + "äöåü" + "?" * 129,
}
"""The characters of all bytes; "?" where there is none."""


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
