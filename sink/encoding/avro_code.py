"""Python expressions for Avro's bytes, in which nearly all values need no call of a function."""

from __future__ import annotations

from typing import Any, Final

from .avro_bytes import SMALL, Lengths, double_bytes, float_bytes, long_bytes, unscaled_bytes

SCOPE: Final[dict[str, Any]] = {
    "small": SMALL,
    "lengths": Lengths(),
    "long_bytes": long_bytes,
    "float_bytes": float_bytes,
    "double_bytes": double_bytes,
    "unscaled_bytes": unscaled_bytes,
}
"""Names in the expressions."""


def long_code(var: str) -> str:
    """Return an expression for an int or a long."""
    return f"(small[{var} << 1] if 0 <= {var} < {len(SMALL) // 2} else long_bytes({var}))"


def bytes_code(value: str) -> str:
    """Return an expression for bytes, with their length."""
    return f"lengths[len(t := {value})] + t"


def text_code(value: str) -> str:
    """Return an expression for text."""
    return bytes_code(f"({value}).encode()")
