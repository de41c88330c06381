"""A table altered while it is read."""

from __future__ import annotations

from ...errors import TidemillError


class SchemaChanged(TidemillError):
    """The table no longer has the planned definition."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was altered while it was read")
        self.name = name
