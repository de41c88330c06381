"""Texts that a collation may call equal, folded to the same text.

A fold may map different texts to one, which makes transactions wait for no reason; it never maps equal ones
to two. Only printable ASCII is folded: how a collation treats any other character, which may equal nothing or
several letters (ß and ss), isn't known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias

Fold: TypeAlias = Callable[[str], str | None]
"""Return the folded text; None if it may equal any text."""

_PLAIN: Final = re.compile(r"[ -~]*").fullmatch
_CASE_ONLY: Final = re.compile(
    r"(?:utf8mb4|utf8mb3|utf8|ucs2|utf16|utf32|latin1|ascii)_"
    r"(?:(?:general|unicode|unicode_520|general1400)(?:_nopad)?|0900|uca1400(?:_nopad)?)"
    r"(?:_ai|_as)?_c[is]"
    r"|latin1_swedish(?:_nopad)?_ci",
    re.I,
)
"""Collations in which printable ASCII characters are equal only to themselves in the other case; those of a
language may equal i and y, or u and v."""


def fold_of(collation: str) -> Fold:
    """Return the fold of a collation; trailing spaces never count, as in most of them."""
    if collation == "binary" or collation.lower().endswith("_bin"):
        return _without_trailing_spaces
    return _lower if _CASE_ONLY.fullmatch(collation) else _unknown


def _without_trailing_spaces(text: str) -> str:
    return text.rstrip(" ")


def _lower(text: str) -> str | None:
    return text.lower().rstrip(" ") if _PLAIN(text) else None


def _unknown(text: str) -> str | None:  # noqa: ARG001
    return None
