"""Collation ids, as row metadata and connections carry them, to names.

The numbering is that of MariaDB's strings/ctype.c: a charset's own collations are below 128, its Unicode
tailorings start at a base per charset, 1024 is added for the NOPAD variant, and from 2048 on are the uca1400
collations, whose ids consist of charset, tailoring and three flags. Ids 255 to 323 are MySQL 8's
utf8mb4_*_0900_* collations.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

BINARY: Final = 63
"""The collation id of binary strings."""

_NOPAD: Final = 1024
_0900_BIN: Final = 309

_OWN: Final = """
big5 1 chinese_ci 84 bin; latin2 2 czech_cs 9 general_ci 21 hungarian_ci 27 croatian_ci 77 bin;
dec8 3 swedish_ci 69 bin; cp850 4 general_ci 80 bin; hp8 6 english_ci 72 bin; koi8r 7 general_ci 74 bin;
latin1 5 german1_ci 8 swedish_ci 15 danish_ci 31 german2_ci 47 bin 48 general_ci 49 general_cs
94 spanish_ci; swe7 10 swedish_ci 82 bin; ascii 11 general_ci 65 bin; ujis 12 japanese_ci 91 bin;
sjis 13 japanese_ci 88 bin; cp1251 14 bulgarian_ci 23 ukrainian_ci 50 bin 51 general_ci 52 general_cs;
hebrew 16 general_ci 71 bin; tis620 18 thai_ci 89 bin; euckr 19 korean_ci 85 bin;
latin7 20 estonian_cs 41 general_ci 42 general_cs 79 bin; koi8u 22 general_ci 75 bin;
gb2312 24 chinese_ci 86 bin; greek 25 general_ci 70 bin; gbk 28 chinese_ci 87 bin;
cp1250 26 general_ci 34 czech_cs 44 croatian_ci 66 bin 99 polish_ci;
cp1257 29 lithuanian_ci 58 bin 59 general_ci; latin5 30 turkish_ci 78 bin;
armscii8 32 general_ci 64 bin; utf8mb3 33 general_ci 83 bin 223 general_mysql500_ci;
ucs2 35 general_ci 90 bin 159 general_mysql500_ci; cp866 36 general_ci 68 bin;
keybcs2 37 general_ci 73 bin; macce 38 general_ci 43 bin; macroman 39 general_ci 53 bin;
cp852 40 general_ci 81 bin; utf8mb4 45 general_ci 46 bin; utf16 54 general_ci 55 bin;
utf16le 56 general_ci 62 bin; cp1256 57 general_ci 67 bin; utf32 60 general_ci 61 bin;
geostd8 92 general_ci 93 bin; cp932 95 japanese_ci 96 bin; eucjpms 97 japanese_ci 98 bin;
gb18030 248 chinese_ci 249 bin 250 unicode_520_ci
"""

_TAILORINGS: Final = """
unicode icelandic latvian romanian slovenian polish estonian spanish swedish turkish czech danish
lithuanian slovak spanish2 roman persian esperanto hungarian sinhala german2 croatian_mysql561
unicode_520 vietnamese
"""
_TAILORING_BASES: Final = {"utf16": 101, "ucs2": 128, "utf32": 160, "utf8mb3": 192, "utf8mb4": 224}

_LATER: Final = ("croatian_ci", "myanmar_ci", "thai_520_w2")
_LATER_BASES: Final = {"utf8mb3": 576, "utf8mb4": 608, "ucs2": 640, "utf16": 672, "utf32": 736}

_UCA1400_CHARSETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")


class Charset(Struct, frozen=True):
    """A character set with a collation of it, as a table's or database's default."""

    name: str
    collation: str | None = None
    """None if it isn't known."""


def collation(number: int) -> tuple[str, str | None]:
    """Return the charset and the collation of an id; the collation is None for those of MySQL's utf8mb4 that
    keys can't be compared by.

    Raises LookupError for an unknown id.
    """
    if number >= 2048:
        return _uca1400(number - 2048)
    if 255 <= number <= 323:
        return "utf8mb4", "utf8mb4_0900_bin" if number == _0900_BIN else None
    charset, name = _COLLATIONS[number & ~_NOPAD]
    if number & _NOPAD:
        stem, _, ending = name.rpartition("_")
        name = f"{stem}_nopad_{ending}"
    return charset, name


def collation_id(name: str) -> int:
    """Return the id of a collation that a charset has of its own, or a Unicode tailoring of it.

    Raises LookupError for another one.
    """
    return _IDS[name]


def _uca1400(number: int) -> tuple[str, str]:
    charset = _UCA1400_CHARSETS[number >> 8]
    name = [charset, "uca1400"]
    if tailoring := number >> 3 & 31:
        name.append("croatian" if tailoring == 24 else _TAILORINGS.split()[tailoring])
    if number & 4:
        name.append("nopad")
    name += ["as" if number & 2 else "ai", "cs" if number & 1 else "ci"]
    return charset, "_".join(name)


def _collations() -> Iterator[tuple[int, str, str]]:
    yield BINARY, "binary", "binary"
    for group in _OWN.split(";"):
        charset, *pairs = group.split()
        for number, name in zip(pairs[::2], pairs[1::2], strict=True):
            yield int(number), charset, name
    for charset, base in _TAILORING_BASES.items():
        for i, name in enumerate(_TAILORINGS.split()):
            yield base + i, charset, f"{name}_ci"
    for charset, base in _LATER_BASES.items():
        for i, name in enumerate(_LATER):
            yield base + i, charset, name


_COLLATIONS: Final = {
    number: (charset, name if number == BINARY else f"{charset}_{name}")
    for number, charset, name in _collations()
}
_IDS: Final = {name: number for number, (_, name) in _COLLATIONS.items()}
