"""Options of a feed with several sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ..chain.selection.tables import TablePatterns
from ..config import Finding
from ..errors import ConfigError
from ..events import Checkpoint
from ..puller.lane import Lane
from .kind import SourceContext, SourceKind, SourceOptions
from .own_tables import own_tables
from .registry import open_kind, source_options, survey_kind
from .source import Source

KEYS: Final = ("name", "url", "tables", "on_idle")
"""Keys of a section that are the same for every kind."""
POLICIES: Final = ("wait",)
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOfSeveral:
    """One `[[source]]` of a feed."""

    name: str
    kind: SourceKind
    options: SourceOptions
    """Of that kind."""
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralOptions:
    """The sources of a feed, in the order of their names."""

    sources: tuple[OneOfSeveral, ...]

    @property
    def loads(self) -> bool:
        return self.sources[0].options.loads

    @property
    def address(self) -> str:
        return ", ".join(one.options.address for one in self.sources)

    @property
    def tables(self) -> TablePatterns:
        return TablePatterns.of_several({one.name: TablePatterns.parse(one.patterns) for one in self.sources})


def several_options(sections: Sequence[Mapping[str, Any]]) -> SeveralOptions:
    """Return the options of a feed's `[[source]]` sections. Raises ConfigError."""
    sources = sorted((_source(number, section) for number, section in enumerate(sections, 1)), key=_name)
    names = [one.name for one in sources]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"source.name: two sources are called {name!r}; each needs a name of its own")
    if len({one.options.loads for one in sources}) > 1:
        raise ConfigError(
            "source.snapshot: some sources of this feed load their tables and others don't: give all of them "
            "the same snapshot = true or false, and a position to all or to none"
        )
    return SeveralOptions(sources=tuple(sources))


def _name(one: OneOfSeveral) -> str:
    return one.name


def _source(number: int, section: Mapping[str, Any]) -> OneOfSeveral:
    name = section.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"source {number}: name: each of several needs one: up to 64 letters, digits, - and _"
        )
    url, patterns = section.get("url"), section.get("tables", [])
    if not isinstance(url, str) or not url:
        raise ConfigError(f'source {name}: url: missing; for instance "mysql://user:password@host:3306"')
    if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
        raise ConfigError(f'source {name}: tables: expected a list of patterns, for instance ["shop.*"]')
    if (policy := section.get("on_idle", "wait")) not in POLICIES:
        raise ConfigError(f"source {name}: on_idle = {policy!r}: one of {', '.join(POLICIES)}")
    rest = {key: value for key, value in section.items() if key not in KEYS}
    try:
        own_tables(patterns, name, {})
        kind, options = source_options(url, rest)
    except ConfigError as error:
        raise ConfigError(f"source {name}: {error}") from None
    if not kind.combines:
        raise ConfigError(
            f"source {name}: url: {kind.name} can't be one of several sources; only MariaDB servers can: "
            "give it a feed of its own"
        )
    return OneOfSeveral(name=name, kind=kind, options=options, patterns=tuple(patterns))


def _open(options: SeveralOptions, context: SourceContext) -> Source:
    from .several import Member, Several
    from .table_names import TableNames

    count = len(options.sources)
    owners: dict[tuple[str, str], str] = {}
    members = []
    for index, one in enumerate(options.sources):
        tables = own_tables(one.patterns, one.name, owners, context.routes)
        lane = Lane(index, count, f"source {one.name}")
        own = replace(
            context, tables=tables, lane=lane, directory=context.directory.with_name(f"scratch-{one.name}")
        )
        source = open_kind(one.kind, one.options, own)
        position = getattr(one.options, "position", "")
        members.append(Member(one.name, source, tables, one.options.loads, position))
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

        def part(at: Checkpoint, name: str = one.name) -> Checkpoint:
            return part_of(at, name, names, table_names, identities_in(at.source)[name])

        own = replace(
            context,
            tables=own_tables(one.patterns, one.name, owners, context.routes),
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
    ddl_policies=True,
    routable=True,
)
"""The kind of a feed with several `[[source]]` sections. No URL names it."""
