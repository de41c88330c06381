"""The elements that a source submits to a merge."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from msgspec import Struct

EntryPart: TypeAlias = Literal["begin", "rows", "end", "whole", "other"]
"""A part of a transaction, a whole one, or something outside transactions: a schema change, a heartbeat."""


class Entry(Struct, frozen=True):
    """One event of a source, with its time."""

    ts: int
    part: EntryPart = "other"
    item: Any = None

    @property
    def begins(self) -> bool:
        """True if it is the first part of a transaction, or all of it."""
        return self.part in ("begin", "whole")

    @property
    def ends(self) -> bool:
        """True if it is the last part of a transaction, or all of it."""
        return self.part in ("end", "whole")
