"""Tables of a feed."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

MAX_LIMIT: Final = 1_000


class TableStatus(Struct, frozen=True):
    name: str
    state: Literal["loading", "following", "paused", "failed", "removed"]
    since: float
    position: str
    ts: int
    lag_seconds: float | None
    inserts: int
    updates: int
    deletes: int
    error: str
    rows_loaded: int
    rows_estimated: int


class TableList(Struct, frozen=True):
    tables: list[TableStatus]
    total: int
    """Number of tables that match, on all pages."""
    states: dict[str, int]
    """Number of all tables of the feed by state."""


class TablesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    search: str = ""
    """Part of the full name, in upper or lower case."""
    state: Literal["", "loading", "following", "paused", "failed", "removed"] = ""
    """Empty: any."""
    sort: Literal["name", "lag", "rows", "state", "since"] = "name"
    order: Literal["asc", "desc"] = "asc"
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT)] = 100
    offset: Annotated[int, Meta(ge=0)] = 0
