"""Several sources of one feed as the source of a comparison: each table is in one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

from ..dialects.read import Summing
from ..errors import ConfigError
from ..events import Table
from ..sources.kind import SourceContext, SourceKind, SourceOptions
from ..sources.own_tables import own_tables
from ..sources.positions import decode_positions, encode_positions
from ..sources.several_options import SeveralOptions
from .by_table import ByTable
from .side import Source

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


class SeveralSources(ByTable):
    """Positions are those of all sources; rows and ends of a table's source are of `of(table)`."""

    def __init__(self, members: Mapping[str, Source]) -> None:
        self._members = {name: _Member(name, source, list(members)) for name, source in members.items()}
        self._of: dict[str, Source] = {}

    @property
    def sources(self) -> Mapping[str, Source]:
        """The sources themselves, by name."""
        return {name: member.inner for name, member in self._members.items()}

    @property
    def members(self) -> Mapping[str, Source]:
        """The sources by name."""
        return self._members

    def close(self) -> None:
        for member in self._members.values():
            member.inner.close()

    def of(self, table: Table) -> Source:
        return self._of[table.full_name]

    def tables(self) -> list[Table]:
        tables: list[Table] = []
        for member in self._members.values():
            for table in member.inner.tables():
                if table.full_name in self._of:
                    raise ConfigError(f"diff: table {table.full_name} is in two of the feed's sources")
                self._of[table.full_name] = member
                tables.append(table)
        return sorted(tables, key=lambda table: table.full_name)

    def end(self) -> str:
        return encode_positions({name: member.inner.end() for name, member in self._members.items()})

    def has_passed(self, position: str, end: str) -> bool:
        ends = decode_positions(end, list(self._members))
        return all(member.has_passed(position, ends[name]) for name, member in self._members.items())


class _Member:
    """One source, whose position is a part of the feed's."""

    reads_at_checkpoint = False

    def __init__(self, name: str, source: Source, names: list[str]) -> None:
        self._name = name
        self._names = names
        self.inner = source
        self.tables = source.tables
        self.close = source.close
        self.estimate = source.estimate
        self.view = source.view
        self.end = source.end
        self.is_ordered = source.is_ordered
        self.page = source.page
        self.rows_of = source.rows_of
        self.every = source.every

    @property
    def summing(self) -> Summing | None:
        return self.inner.summing

    def of(self, table: Table) -> Source:  # noqa: ARG002
        return self

    def has_passed(self, position: str, end: str) -> bool:
        return self.inner.has_passed(decode_positions(position, self._names)[self._name], end)
