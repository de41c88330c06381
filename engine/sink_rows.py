"""The rows that a sink gets: its `rows` sections, and its share where it is one of several `urls`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from ..config import Given
from ..errors import ConfigError
from ..events import Op
from ..routing import Chosen, RowFilter, Share, TableFilter
from ..routing.table_option import EVERY_TABLE, TABLES
from .filters import OPS


def _condition(text: str, where: str) -> Chosen | None:
    return Chosen(text, where) if text else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsOptions:
    """One `[[sink.rows]]`. Several that match a table all count."""

    tables: Annotated[TableFilter, TABLES] = EVERY_TABLE
    """Patterns of tables, as in `source.tables`; without it, all tables of the sink."""
    where: Annotated[Chosen | None, Given(kind=str, parse=_condition)] = None
    """Condition on a row's columns: the target has the rows for which it is true. Empty: all rows."""
    events: tuple[Op, ...] = OPS
    """Changes of the source that the sink gets. Rows of a snapshot always come."""

    def __post_init__(self) -> None:
        if not self.events:
            raise ConfigError("events: no change would come: exclude the tables in the sink's tables")
        if not (self.where or self.omitted):
            raise ConfigError("it chooses no rows without where or events")

    @property
    def omitted(self) -> frozenset[Op]:
        """Changes that don't come."""
        return frozenset(OPS) - frozenset(self.events)

    def filters(self) -> Iterator[RowFilter]:
        """Yield filters of what the sink doesn't get."""
        if self.where is not None:
            yield RowFilter(self.tables, where=self.where)
        if self.omitted:
            yield RowFilter(self.tables, self.omitted)


def share(number: int, count: int, columns: tuple[str, ...]) -> RowFilter:
    """Return the filter of all but one of `count` shares of the rows, by these columns."""
    return RowFilter(EVERY_TABLE, where=Share(number, count, columns))
