"""A feed's source whose tables are merged: the union of a merged table's shards as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from heapq import merge
from operator import xor
from typing import NamedTuple

from ..dialects.mysql.key_range import is_ordered
from ..dialects.mysql.server_rows import ServerRows
from ..dialects.read import Checksum, Key, Range, Summing
from ..errors import ConfigError
from ..events import Checkpoint, OrderedKey, Row, Table, TableName, key_order, key_table, origin_name
from ..sharding import Routes, merged_states
from ..sharding.difference import difference
from ..sharding.route import Route
from .mysql import MySqlSource
from .several import SeveralSources
from .side import Source, SourceRows


class _Shard(NamedTuple):
    route: Route
    routed: Table
    """Its present definition, under the merged table's name."""
    part: UnionTable


class MergedSources:
    """A feed's source, or several, with merged tables in place of their shards.

    Tables have their names in the target.
    """

    reads_at_checkpoint = False
    summing: Summing | None = None

    def __init__(self, source: Source, routes: Routes, feed: str) -> None:
        self._source = source
        self._feed = feed
        self._routes = routes
        self._members: Mapping[str, Source] = (
            source.sources if isinstance(source, SeveralSources) else {"": source}
        )
        self._shards: dict[TableName, list[_Shard]] = {}
        self._of: dict[TableName, SourceRows] = {}
        self._names: dict[TableName, str] = {}
        """Name of the source of a table that isn't merged."""

    def close(self) -> None:
        self._source.close()

    def of(self, table: Table) -> SourceRows:
        return self._of[table.schema, table.name]

    def tables(self, checkpoint: Checkpoint) -> list[Table]:
        """Return the tables by name; a merged one as its first shard is. Raises SinkError for a clash."""
        by_name: dict[TableName, Table] = {}
        for name, member in self._members.items():
            for table in member.tables(checkpoint):
                full_name = table.schema, table.name
                if self._routes.ghost(name, *full_name) is not None:
                    continue
                route = self._routes.find(name, *full_name)
                if route is None:
                    by_name[full_name] = table
                    self._of[full_name] = self._rows(name, table)
                    self._names[full_name] = name
                else:
                    self._add(name, member, table, route)
        for target, shards in self._shards.items():
            by_name[target] = shards[0].routed
            self._of[target] = Union(self._source, [shard.part for shard in shards])
        return [by_name[name] for name in sorted(by_name)]

    def _add(self, name: str, member: Source, table: Table, route: Route) -> None:
        if not isinstance(member, MySqlSource):
            raise ConfigError(
                f"diff: shard {origin_name(name, table.full_name)}: only MySQL's can be compared"
            )
        routed = route.table(table)
        extracted = {
            column.name: value
            for column, value in zip(routed.columns[len(table.columns) :], route.values, strict=True)
        }
        part = UnionTable(member.reader_of(table, extracted), member.estimate(table))
        self._shards.setdefault(route.target, []).append(_Shard(route, routed, part))

    def _rows(self, name: str, table: Table) -> SourceRows:
        if isinstance(self._source, SeveralSources):
            return self._source.member(name, table)
        return self._source.of(table)

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


class UnionTable(NamedTuple):
    """One of the tables, with the columns of all."""

    reader: ServerRows
    rows_estimated: int


class Union:
    """Its keys are in order if Python knows the order of each column's values."""

    reads_at_checkpoint = False

    def __init__(self, source: Source, parts: Sequence[UnionTable]) -> None:
        """`source` tells the end of the log."""
        self._parts = parts
        self.end = source.end
        self.has_passed = source.has_passed
        self.summing: Summing | None = UnionSums(parts)

    def view(self, checkpoint: Checkpoint, table: str) -> None:
        """Do nothing: rows are read as of now."""

    def estimate(self, table: Table) -> int:  # noqa: ARG002
        return sum(part.rows_estimated for part in self._parts)

    def is_ordered(self, table: Table) -> bool:
        return is_ordered(table)

    def page(self, table: Table, after: Key | None, limit: int) -> list[Row]:
        order = key_order(table)
        pages = [part.reader.page(table, Range(after, None), limit) for part in self._parts]
        return [row for row, _ in zip(merge(*pages, key=order), range(limit), strict=False)]

    def rows_of(self, table: Table, keys: Sequence[Key]) -> list[Row]:
        return [row for part in self._parts for row in part.reader.rows_of(table, keys)]

    def every(self, table: Table) -> Iterator[list[Row]]:
        for part in self._parts:
            yield from part.reader.every(table)


class UnionSums:
    """Checksums of a union. Those of the parts are sums already, so they add up."""

    def __init__(self, parts: Sequence[UnionTable]) -> None:
        self._readers = [part.reader for part in parts]
        kinds = {reader.is_mariadb for reader in self._readers}
        self.is_mariadb = kinds.pop() if len(kinds) == 1 else None
        """None if some servers are MariaDB and some MySQL."""

    def checksum(self, table: Table, within: Range) -> Checksum:
        sums = [reader.checksum(table, within) for reader in self._readers]
        bits = [one.bits for one in sums if one.bits is not None]
        whole = tuple(reduce(xor, column) for column in zip(*bits, strict=True))
        return Checksum(sum(one.rows for one in sums), whole if len(bits) == len(sums) else None)

    def bound(self, table: Table, within: Range, rows: int) -> Key | None:
        """Return a key that at most that number of rows of the range are up to, and at least one.

        None only if there aren't more in the range.
        """
        share = max(1, rows // len(self._readers))
        bounds = [reader.bound(table, within, share) for reader in self._readers]
        return min([one for one in bounds if one is not None], key=_order_of(table), default=None)

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        """Yield the rows of one part after the other."""
        for reader in self._readers:
            yield from reader.between(table, within, limit)


def _order_of(table: Table) -> Callable[[Key], OrderedKey]:
    """Return the order of keys of a table whose keys have one."""
    order = key_order(key_table(table))
    assert order is not None
    return order
