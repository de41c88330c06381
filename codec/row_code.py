"""Generated code: one expression per table, compiled once, without dispatch on types per row (1 µs for a row
of 8 columns)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date
from typing import Any

from ..events import Row
from .text import datetime_text, time_text

SCOPE: dict[str, Any] = {"date": date, "datetime_text": datetime_text, "time_text": time_text}
"""Names for expressions, besides the row's values c0, c1, …"""


def compile_rows(width: int, expression: str, scope: dict[str, Any]) -> Callable[[Iterable[Row]], list[Any]]:
    """Return a function that maps rows of `width` values to a list of the expression's values."""
    names = "".join(f"c{i}," for i in range(width))
    namespace = SCOPE | scope
    exec(f"def render(rows):\n    return [{expression} for {names} in rows]\n", namespace)
    return namespace["render"]  # type: ignore[no-any-return]
