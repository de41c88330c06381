"""The `[source]` section of a feed.toml, and the several that there may be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from ..chain.selection.table_option import TABLES
from ..chain.selection.tables import TablePatterns
from ..config import Given, NameText, Rest, Variant, name
from ..errors import ConfigError
from .kind import SourceKind, SourceOptions
from .registry import SOURCES, missing_url, source_options


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenSource:
    """A source's kind and checked options; nothing has been opened."""

    name: str = ""
    """Name among several sources; empty: it is the only one."""
    kind: SourceKind
    options: SourceOptions
    """Options of that kind."""
    tables: TablePatterns
    section: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """URL and options as they were written."""


def _variants() -> Iterable[Variant]:
    return (Variant(kind.schemes, kind.options, (kind.example,), kind.url_only) for kind in SOURCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSection:
    """The server or cluster that is followed, of the kind that the URL names."""

    url: str = field(default="", repr=False)
    """URL of the source."""
    tables: Annotated[TablePatterns | None, TABLES] = None
    """Patterns such as "shop.*" and "!shop.tmp_*"; the last one that matches decides."""
    rest: Annotated[Mapping[str, Any], Rest(_variants)] = field(repr=False)

    def given(self) -> GivenSource:
        """Return the kind, the options and the tables. Raises ConfigError."""
        if not self.url:
            raise missing_url(self.rest)
        kind, options = source_options(self.url, self.rest)
        tables = self.tables or TablePatterns.parse((), "source.tables")
        section = {"url": self.url, **self.rest}
        return GivenSource(kind=kind, options=options, tables=tables, section=section)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSource(SourceSection):
    """One of several sources."""

    name: Annotated[str, Given(kind=NameText, parse=name)] = ""
    """Name of the source, which is part of its positions."""
    on_idle: Literal["wait"] = "wait"
    """Treatment of a source that has no changes: the others wait for its heartbeat."""

    def __post_init__(self) -> None:
        if not self.name:
            raise ConfigError("name: each of several needs one: up to 64 letters, digits, - and _")
        if not self.url:
            raise ConfigError('url: missing; for instance "mysql://user:password@host:3306"')

    def given(self) -> GivenSource:
        try:
            source = SourceSection.given(self)
        except ConfigError as error:
            raise ConfigError(f"source {self.name}: {error}") from None
        if not source.kind.combines:
            raise ConfigError(
                f"source {self.name}: url: {source.kind.name} can't be one of several sources; only MariaDB "
                "servers can: give it a feed of its own"
            )
        return replace(source, name=self.name)
