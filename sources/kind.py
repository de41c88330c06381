"""The entry of the registry for one kind of source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..actors import Clock
from ..config import Finding
from ..puller.lane import ALONE, Lane
from ..routing import TableFilter
from .source import Source


class SourceOptions(Protocol):
    """The part of the options that all kinds share; each is a frozen dataclass with fields of its own.

    Its `__post_init__` raises ConfigError for values that don't go together.
    """

    @property
    def loads(self) -> bool:
        """True if a feed without a checkpoint begins with a snapshot."""

    @property
    def address(self) -> str:
        """Where the source is, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """The feed of one source, and what it lends to the source."""

    tables: TableFilter
    feed: str
    directory: Path
    """For changes that the source spills to disk; created by the source when it needs it."""
    clock: Clock
    lane: Lane = ALONE
    """The timestamps that the source may use: all, unless it is one of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """One entry of the registry. Nothing else tells one kind of source from another."""

    name: str
    schemes: tuple[str, ...]
    """URLs begin with one of these and a colon."""
    example: str
    """A URL, for errors."""
    options: type
    """A frozen dataclass that is a SourceOptions."""
    read_url: Callable[[str], dict[str, Any]]
    """Options that a URL gives, by field; a section may override them. Raises ConfigError."""
    open: Callable[[Any, SourceContext], Source]
    """Make the source, not connected yet. Raises ImportError if a package of `extra` is missing."""
    survey: Callable[[Any, SourceContext], Iterator[Finding]]
    """Find out what keeps the source from being followed, and which tables would be. Changes nothing; raises
    TidemillError if it can't go on."""
    extra: str = ""
    """The extra of tidemill that it needs."""
    url_only: frozenset[str] = frozenset()
    """Fields that only the URL gives."""
    combines: bool = False
    """True if it can be one of several sources: it uses timestamps of its context's lane only, the keyspace
    1 + the lane's index, and waits at the load barrier."""
