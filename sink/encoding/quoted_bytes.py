"""Bytes as the inside of a Go string literal (strconv.Quote)."""

from __future__ import annotations

import re
from typing import Final

_SHORT: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
    "\\": "\\\\", '"': '\\"',
}  # fmt: skip
_PLAIN: Final = re.compile(rb"[ !#-\[\]-~]*")
_ESCAPED: Final = range(0xDC80, 0xDD00)
"""Code points that stand for bytes that aren't UTF-8."""


def quoted_bytes(value: bytes) -> str:
    """Return printable UTF-8 as it is, and other bytes and characters as escapes."""
    if _PLAIN.fullmatch(value):
        return value.decode()
    return "".join(map(_character, value.decode("utf-8", "surrogateescape")))


def _character(one: str) -> str:
    if one in _SHORT:
        return _SHORT[one]
    if one.isprintable():
        return one
    code = ord(one)
    if code in _ESCAPED:
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
