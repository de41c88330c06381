"""Names of tables of several sources: plain in each source, and origin names in the feed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ..chain.selection.tables import TablePatterns
from ..errors import SourceError
from ..events import REST, Ddl, Item, SnapshotProgress, origin_name, source_and_table
from ..sharding import Routes


class TableNames:
    """Translates between names in a source and in the feed; without sources, both are the same."""

    def __init__(self, sources: Sequence[str] = ()) -> None:
        """`sources` has the names of the sources, if their tables may have equal names."""
        self.sources: Final = tuple(sources)

    def item(self, item: Item, source: str) -> Item:
        """Return a source's item with origin names; its rows have them already."""
        if not self.sources:
            return item
        if isinstance(item, Ddl):
            return replace(item, source_name=source)
        if item.chunk is None or not item.chunk.table:
            return item
        return replace(item, chunk=replace(item.chunk, table=origin_name(source, item.chunk.table)))

    def loading(self, loading: SnapshotProgress | None, source: str) -> SnapshotProgress | None:
        """Return what of the snapshot's progress concerns a source, by the names in it."""
        if loading is None or not self.sources:
            return loading
        named = [(*source_and_table(name, self.sources), progress) for name, progress in loading.items()]
        return {name: progress for one, name, progress in named if one == source or name == REST}


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
