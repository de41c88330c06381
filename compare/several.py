"""Several sources of one feed as the source of a comparison: each table is in one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

from ..dialects.read import Summing
from ..errors import ConfigError
from ..events import Checkpoint, Table
from ..sources.kind import SourceContext, SourceKind, SourceOptions
from ..sources.positions import decode_positions, encode_positions
from ..sources.several_options import SeveralOptions
from ..sources.table_names import own_tables
from .side import Source, SourceRows

OpenSource: TypeAlias = Callable[[SourceKind, SourceOptions, SourceContext, str], Source]


def open_several(options: SeveralOptions, context: SourceContext, open_one: OpenSource) -> Source:
    """Return all sources, each opened by `open_one`."""
    owners: dict[tuple[str, str], str] = {}
    members: dict[str, Source] = {}
    with ExitStack() as opened:
        for one in options.sources:
            tables = own_tables(one.tables, one.name, owners, context.routes)
            whom = f"source {one.name}: a {one.kind.name} source"
            members[one.name] = open_one(one.kind, one.options, replace(context, tables=tables), whom)
            opened.callback(members[one.name].close)
        opened.pop_all()
    return SeveralSources(members)


class SeveralSources:
    """Positions are those of all sources; rows and ends of a table's source are of `of(table)`."""

    reads_at_checkpoint = False
    summing: Summing | None = None

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self.sources = sources
        """The sources themselves, by name."""
        self._of: dict[str, SourceRows] = {}

    def close(self) -> None:
        for source in self.sources.values():
            source.close()

    def of(self, table: Table) -> SourceRows:
        return self._of[table.full_name]

    def member(self, name: str, table: Table) -> SourceRows:
        """Return the reader of a source's table."""
        return _Member(name, self.sources[name].of(table), list(self.sources))

    def tables(self, checkpoint: Checkpoint) -> list[Table]:
        tables: list[Table] = []
        for name, source in self.sources.items():
            for table in source.tables(checkpoint):
                if table.full_name in self._of:
                    raise ConfigError(f"diff: table {table.full_name} is in two of the feed's sources")
                self._of[table.full_name] = self.member(name, table)
                tables.append(table)
        return sorted(tables, key=lambda table: table.full_name)

    def end(self) -> str:
        return encode_positions({name: source.end() for name, source in self.sources.items()})

    def has_passed(self, position: str, end: str) -> bool:
        names = list(self.sources)
        positions, ends = decode_positions(position, names), decode_positions(end, names)
        return all(source.has_passed(positions[name], ends[name]) for name, source in self.sources.items())


class _Member:
    """Tables of one source, whose position is a part of the feed's."""

    reads_at_checkpoint = False

    def __init__(self, name: str, rows: SourceRows, names: list[str]) -> None:
        self._name = name
        self._names = names
        self._rows = rows
        self.estimate = rows.estimate
        self.view = rows.view
        self.end = rows.end
        self.is_ordered = rows.is_ordered
        self.page = rows.page
        self.rows_of = rows.rows_of
        self.every = rows.every

    @property
    def summing(self) -> Summing | None:
        return self._rows.summing

    def has_passed(self, position: str, end: str) -> bool:
        return self._rows.has_passed(decode_positions(position, self._names)[self._name], end)
