"""Registry entries for kinds of sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..actors import Clock
from ..config import Finding
from ..mounter import APPLY_ALL, Policy
from ..puller.lane import ALONE, Lane
from ..routing import TableFilter
from .source import Source


class SourceOptions(Protocol):
    """Options common to all kinds; each kind has a frozen dataclass with additional fields.

    Its `__post_init__` raises ConfigError for values that don't go together.
    """

    @property
    def loads(self) -> bool:
        """True if a feed without a checkpoint begins with a snapshot."""

    @property
    def address(self) -> str:
        """Address of the source, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """The feed of one source, and the resources for it."""

    tables: TableFilter
    feed: str
    directory: Path
    """Directory for changes that the source spills to disk; the source creates it when needed."""
    clock: Clock
    lane: Lane = ALONE
    """The timestamps that the source may use: all, unless it is one of several."""
    on_ddl: Policy = APPLY_ALL
    """Rules about schema changes; a kind of source with `ddl_policies` follows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """A registry entry. Code that depends on the kind of a source exists only here."""

    name: str
    schemes: tuple[str, ...]
    """Schemes of URLs, before a colon."""
    example: str
    """Example URL for errors."""
    options: type
    """Frozen dataclass derived from SourceOptions."""
    read_url: Callable[[str], dict[str, Any]]
    """Return the options in a URL, by field; a section may override them. Raises ConfigError."""
    open: Callable[[Any, SourceContext], Source]
    """Make the source, not connected yet. Raises ImportError if a package of `extra` is missing."""
    survey: Callable[[Any, SourceContext], Iterator[Finding]]
    """Yield findings: can the source be followed, and which tables match? Changes nothing; raises
    TidemillError if it can't continue."""
    extra: str = ""
    """The extra of tidemill that installs its packages; empty if none is needed."""
    url_only: frozenset[str] = frozenset()
    """Fields that only the URL can set."""
    ddl_policies: bool = False
    """True if it follows its context's rules about schema changes."""
    combines: bool = False
    """True if it can be one of several sources: it uses timestamps of its context's lane only, the keyspace
    1 + the lane's index, and waits at the load barrier."""
