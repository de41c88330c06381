"""The tables of one of several sources, and of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ..chain.selection.tables import TablePatterns
from ..errors import SourceError
from ..sharding import Routes

NO_ROUTES: Final = Routes()


class OwnTables(TablePatterns):
    """A filter that refuses a table which another source of the feed has too, unless it is merged.

    `owners`, by schema and table, is shared by the filters of all sources. `matches` raises SourceError.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        source: str,
        owners: dict[tuple[str, str], str],
        routes: Routes = NO_ROUTES,
    ) -> None:
        super().__init__(patterns)
        self._routes = routes
        self._source = source
        self._owners = owners

    def _matches(self, schema: str, table: str) -> bool:
        if not super()._matches(schema, table):
            return False
        name = self._source, schema, table
        if self._routes.find(*name) is not None or self._routes.ghost(*name) is not None:
            return True
        owner = self._owners.setdefault((schema, table), self._source)
        if owner != self._source:
            raise SourceError(
                f"{schema}.{table} is followed in source {owner} and in source {self._source}, and a target "
                f'has one table of that name: exclude it in one of them with "!{schema}.{table}"'
            )
        return True


class TablesOfAll(TablePatterns):
    """The tables that some source of the feed follows. Each source reports its unmatched patterns itself."""

    def __init__(self, patterns: Mapping[str, Sequence[str]]) -> None:
        """`patterns` are those of each source, by its name."""
        super().__init__([pattern for each in patterns.values() for pattern in each])
        self.patterns = tuple(f"{name}: {pattern}" for name, each in patterns.items() for pattern in each)
        self._filters = [TablePatterns(each) for each in patterns.values()]

    def _matches(self, schema: str, table: str) -> bool:
        return any(one.matches(schema, table) for one in self._filters)

    def touches(self, schema: str) -> bool:
        return any(one.touches(schema) for one in self._filters)

    def unmatched(self, tables: Sequence[tuple[str, str]]) -> list[str]:  # noqa: ARG002
        return []
