"""The Japanese character sets ujis and eucjpms, character for character as MariaDB and MySQL convert them.

Both have areas of private use that Python's euc_jp lacks. In eucjpms the characters of JIS X 0208 are those
of cp932, and IBM's extensions come after those of JIS X 0212.
"""

from __future__ import annotations

import re
from typing import Final

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
    if character := _private(one):
        return character
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
