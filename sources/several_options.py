"""Options of a feed with several sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..chain.selection.tables import TablePatterns
from ..config import Finding
from ..errors import ConfigError
from ..events import Checkpoint
from ..puller.lane import Lane
from .kind import SourceContext, SourceKind
from .registry import missing_url, open_kind, survey_kind
from .sections import GivenSource, NamedSource, SourceSection
from .source import Source
from .table_names import own_tables


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralOptions:
    """The sources of a feed, in the order of their names."""

    sources: tuple[GivenSource, ...]

    @property
    def loads(self) -> bool:
        return self.sources[0].options.loads

    @property
    def address(self) -> str:
        return ", ".join(one.options.address for one in self.sources)


def given_source(written: SourceSection | Sequence[NamedSource], where: str) -> GivenSource:
    """Return the source of a section, or several as one. Raises ConfigError."""
    if isinstance(written, SourceSection):
        return written.given()
    sources = tuple(section.given() for section in sorted(written, key=lambda section: section.name))
    if not sources:
        raise missing_url({})
    names = [one.name for one in sources]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{where}.name: two sources are called {name!r}; each needs a name of its own")
    if len({one.options.loads for one in sources}) > 1:
        raise ConfigError(
            f"{where}.snapshot: some sources of this feed load their tables and others don't: give all of "
            "them the same snapshot = true or false, and a position to all or to none"
        )
    tables = TablePatterns.of_several({one.name: one.tables for one in sources})
    return GivenSource(kind=SEVERAL, options=SeveralOptions(sources=sources), tables=tables)


def _open(options: SeveralOptions, context: SourceContext) -> Source:
    from .several import Member, Several
    from .table_names import TableNames

    count = len(options.sources)
    owners: dict[tuple[str, str], str] = {}
    members = []
    for index, one in enumerate(options.sources):
        tables = own_tables(one.tables, one.name, owners, context.routes)
        lane = Lane(index, count, f"source {one.name}")
        own = replace(
            context, tables=tables, lane=lane, directory=context.directory.with_name(f"scratch-{one.name}")
        )
        source = open_kind(one.kind, one.options, own)
        members.append(Member(one.name, source, tables, one.options.loads))
    return Several(
        members, context.clock, TableNames([one.name for one in members] if context.routes else ())
    )


def _survey(options: SeveralOptions, context: SourceContext) -> Iterator[Finding]:
    from .several import identities_in, part_of
    from .table_names import TableNames

    count = len(options.sources)
    names = [one.name for one in options.sources]
    table_names = TableNames(names if context.routes else ())
    owners: dict[tuple[str, str], str] = {}
    for index, one in enumerate(options.sources):

        def part(checkpoint: Checkpoint, name: str = one.name) -> Checkpoint:
            return part_of(checkpoint, name, names, table_names, identities_in(checkpoint.source)[name])

        own = replace(
            context,
            tables=own_tables(one.tables, one.name, owners, context.routes),
            lane=Lane(index, count, f"source {one.name}"),
            start=context.start and part(context.start),
            sink_checkpoints=[part(at) for at in context.sink_checkpoints],
        )
        for finding in survey_kind(one.kind, one.options, own):
            yield replace(finding, text=f"{one.name}: {finding.text}")


SEVERAL: Final = SourceKind(
    name="several sources",
    schemes=(),
    example="",
    options=SeveralOptions,
    read_url=lambda _: {},
    open=_open,
    survey=_survey,
    start_option="position",
    ddl_policies=True,
    routable=True,
)
"""The kind of a feed with several `[[source]]` sections. No URL names it."""
