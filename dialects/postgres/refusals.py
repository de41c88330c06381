"""Values that PostgreSQL can't store."""

from __future__ import annotations

from ...events import WITH_DATE, Column, RowChange
from .types import TEXTS


def refused_column(change: RowChange, *, dates_as_text: bool) -> str:
    """Return why a new value of the change can't be stored, with its column; empty if each can."""
    for column, value in zip(change.table.columns, change.after or (), strict=False):
        if reason := reason_of_refusal(column, value, dates_as_text=dates_as_text):
            return f"column {column.name}: {reason}"
    return ""


def reason_of_refusal(column: Column, value: object, *, dates_as_text: bool) -> str:
    if not isinstance(value, str):
        return ""
    if column.kind in WITH_DATE and not dates_as_text:
        return (
            f"PostgreSQL has no {column.kind} {value!r}: name an empty target, with dates = 'text' in the "
            "sink's section"
        )
    if column.kind in TEXTS and "\0" in value:
        return "PostgreSQL can't store the character NUL in a text"
    return ""
