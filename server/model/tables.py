"""Tables of a feed."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from ...engine.tables import TableState
from ...engine.tables import TableStatus as TableStatus

MAX_LIMIT: Final = 1_000


class TableList(Struct, frozen=True):
    tables: list[TableStatus]
    total: int
    """Number of tables that match, on all pages."""
    states: dict[str, int]
    """Number of all tables of the feed by state."""


class TablesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    search: str = ""
    """Part of the full name, in upper or lower case."""
    state: Literal[""] | TableState = ""
    """Empty: any."""
    sort: Literal["name", "lag", "rows", "state", "since"] = "name"
    order: Literal["asc", "desc"] = "asc"
    limit: Annotated[int, Meta(ge=1, le=MAX_LIMIT)] = 100
    offset: Annotated[int, Meta(ge=0)] = 0
