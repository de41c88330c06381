"""A feed's source whose tables are merged: the union of a merged table's shards as one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..errors import ConfigError
from ..events import Checkpoint, Table, TableName, origin_name
from ..sharding import Routes, merged_states
from ..sharding.difference import difference
from ..sharding.route import Route
from .by_table import ByTable
from .mysql import MySqlSource
from .several import SeveralSources
from .side import Source
from .union import Union, UnionTable


class _Shard(NamedTuple):
    route: Route
    routed: Table
    """Its present definition, under the merged table's name."""
    part: UnionTable


class MergedSources(ByTable):
    """A feed's source, or several, with merged tables in place of their shards.

    Tables have their names in the target.
    """

    def __init__(self, source: Source, routes: Routes, feed: str) -> None:
        self._source = source
        self._feed = feed
        self._routes = routes
        self._members: Mapping[str, Source] = (
            source.members if isinstance(source, SeveralSources) else {"": source}
        )
        self._shards: dict[TableName, list[_Shard]] = {}
        self._of: dict[TableName, Source] = {}
        self._names: dict[TableName, str] = {}
        """Name of the source of a table that isn't merged."""

    def close(self) -> None:
        self._source.close()

    def of(self, table: Table) -> Source:
        return self._of[table.schema, table.name]

    def tables(self) -> list[Table]:
        """Return the tables by name; a merged one as its first shard is. Raises SinkError for a clash."""
        by_name: dict[TableName, Table] = {}
        for name, member in self._members.items():
            for table in member.tables():
                full_name = table.schema, table.name
                if self._routes.ghost(name, *full_name) is not None:
                    continue
                route = self._routes.find(name, *full_name)
                if route is None:
                    by_name[full_name] = table
                    self._of[full_name] = member
                    self._names[full_name] = name
                else:
                    self._add(name, member, table, route)
        for target, shards in self._shards.items():
            by_name[target] = shards[0].routed
            self._of[target] = Union(self._source, [shard.part for shard in shards])
        return [by_name[name] for name in sorted(by_name)]

    def _add(self, name: str, member: Source, table: Table, route: Route) -> None:
        inner = self._source.sources[name] if isinstance(self._source, SeveralSources) else member
        if not isinstance(inner, MySqlSource):
            raise ConfigError(
                f"diff: shard {origin_name(name, table.full_name)}: only MySQL's can be compared"
            )
        routed = route.table(table)
        extracted = {
            column.name: value
            for column, value in zip(routed.columns[len(table.columns) :], route.values, strict=True)
        }
        part = UnionTable(inner.reader_of(table, extracted), inner.estimate(table))
        self._shards.setdefault(route.target, []).append(_Shard(route, routed, part))

    def origins(self, table: Table) -> list[str]:
        """Return the names in checkpoints of a table's shards, or of the table itself."""
        name = table.schema, table.name
        if name in self._shards:
            return [shard.route.shard.origin_name for shard in self._shards[name]]
        return [origin_name(self._names.get(name, ""), table.full_name)]

    def wants(self, table: Table) -> list[TableName]:
        """Return the names in the sources of a table's shards, or of the table itself."""
        shards = self._shards.get((table.schema, table.name))
        if shards is None:
            return [(table.schema, table.name)]
        return [(shard.route.shard.schema, shard.route.shard.table) for shard in shards]

    def merged(self, table: Table, checkpoint: Checkpoint) -> tuple[Table, str]:
        """Return a table's definition at a checkpoint, and why it can't be compared now; empty if it can."""
        name = table.schema, table.name
        shards = self._shards.get(name)
        if shards is None:
            return table, ""
        state = merged_states(checkpoint.stages, self._feed).get(name)
        if state is None:
            return table, "it isn't known as a merged table in the checkpoint"
        lagging = [
            one
            for one in self.origins(table)
            if one in checkpoint.tables and checkpoint.tables[one].ts < checkpoint.ts
        ]
        differing = [
            f"{shard.route.shard} {mismatch}"
            for shard in shards
            if (mismatch := difference(shard.routed, state.table))
        ]
        if not (lagging or differing):
            return state.table, ""
        reasons = [*differing, *(f"{one} waits" for one in lagging)]
        return state.table, (
            f"its shards are in different schemas, by the lock {state.id}: {'; '.join(reasons)}: "
            "compare it once all shards have made the change"
        )

    def end(self) -> str:
        return self._source.end()

    def has_passed(self, position: str, end: str) -> bool:
        return self._source.has_passed(position, end)
