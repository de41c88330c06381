"""Errors of a backfill."""

from __future__ import annotations

from ...errors import SourceError, TidemillError


class NotLoadable(SourceError):
    """The tables' rows can't be brought to one position; the snapshot of an ordinary feed loads them."""


class SchemaChanged(TidemillError):
    """A table was altered while it was read: it no longer has the planned definition."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was altered while it was read")
        self.name = name
