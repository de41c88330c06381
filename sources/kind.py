"""What there is to know about one kind of source: the entry of the registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ..actors import Clock
from ..config import Finding
from ..routing import TableFilter
from .source import Source


class SourceOptions(Protocol):
    """What the options of every kind have: a frozen dataclass, with fields of its own.

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
    """Whose source it is."""

    tables: TableFilter
    feed: str
    directory: Path
    """For what the source spills to disk; made when it is needed, removed at the end."""
    clock: Clock


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
    """The source, not connected yet. Raises ImportError where a package is missing that `extra` installs."""
    survey: Callable[[Any, SourceContext], Iterator[Finding]]
    """What stands in the way of following the source, and what would be followed. Changes nothing; raises
    TidemillError where it can't go on."""
    extra: str = ""
    """The extra of tidemill that it needs."""
    url_only: frozenset[str] = frozenset()
    """Fields that only the URL gives."""
