"""Errors of reading chunks."""

from __future__ import annotations

from ..errors import TidemillError


class TableAltered(TidemillError):
    """A table doesn't have the planned definition any more."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was altered while it was read")
        self.name = name
