"""Lists of a feed's tables: searched, sorted, a page at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from .model.tables import TableList, TablesQuery, TableStatus

_KEYS: Final[dict[str, Callable[[TableStatus], float | str]]] = {
    "name": lambda table: table.name,
    "lag": lambda table: -1.0 if table.lag_seconds is None else table.lag_seconds,
    "rows": lambda table: table.inserts + table.updates + table.deletes,
    "state": lambda table: table.state,
    "since": lambda table: table.since,
}


def listed(tables: Sequence[TableStatus], query: TablesQuery) -> TableList:
    """Return what a query asks for of tables, which come by name; those that are equal in it stay so."""
    search = query.search.lower()
    matching = [
        table
        for table in tables
        if (not search or search in table.name.lower()) and query.state in ("", table.state)
    ]
    matching.sort(key=_KEYS[query.sort], reverse=query.order == "desc")  # equal ones stay by name
    page = matching[query.offset : query.offset + query.limit]
    return TableList(page, len(matching), dict(Counter(table.state for table in tables)))
