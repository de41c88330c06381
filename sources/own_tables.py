"""The tables of one of several sources."""

from __future__ import annotations

from ..chain.selection.tables import TablePatterns
from ..errors import SourceError
from ..sharding import Routes


def own_tables(
    tables: TablePatterns, source: str, owners: dict[tuple[str, str], str], routes: Routes
) -> TablePatterns:
    """Return the choice of a source's tables, without any that another source has too, unless it is merged.

    `owners`, by schema and table, is shared by all sources. `matches` of the choice raises SourceError for
    such a table.
    """

    def is_own(schema: str, table: str) -> bool:
        name = source, schema, table
        if routes.find(*name) is not None or routes.ghost(*name) is not None:
            return True
        owner = owners.setdefault((schema, table), source)
        if owner != source:
            raise SourceError(
                f"{schema}.{table} is followed in source {owner} and in source {source}, and a target "
                f'has one table of that name: exclude it in one of them with "!{schema}.{table}"'
            )
        return True

    return tables.within(is_own)
