"""Registry entries of databases: what the SQL sink, a comparison and Spark's tasks need to know of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..config import Finding
from ..events import Table
from ..lazy import later
from .address import parsed
from .database import Database
from .read import Reader


def imported(package: str, place: str) -> Callable[..., Any]:
    """Return a function for an entry that calls another one, as `lazy.later` does, with the URL's parts in
    place of the URL."""
    call = later(package, place)
    return lambda url, *arguments: call(parsed(url), *arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class DialectTraits:
    """Abilities of a kind of database."""

    has_workers: bool = False
    """True if `Dialect.connect` returns a WorkerDatabase, so that several connections can apply rows."""
    is_shared: bool = True
    """True if several processes can write at the same time: tasks of Spark, or feeds with a common table."""
    is_exclusive: bool = False
    """True if nobody else can read the database while a feed writes it."""
    is_local: bool = False
    """True if the database is a file of this host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """A registry entry. Code that depends on the kind of a database is behind it, in one folder."""

    name: str
    schemes: tuple[str, ...]
    """Schemes of URLs, before a colon, or before + and one of `drivers`."""
    examples: tuple[str, ...]
    """Example URLs for errors."""
    options: type
    """Frozen dataclass derived from RowOptions; from ParallelOptions if the traits say `has_workers`."""
    connect: Callable[[str, Any, str, float | None], Database]
    """Return a connection for one feed, not connected yet: from the URL, the options, the feed's name, and
    the seconds that a statement waits for another writer, None for the default. Raises ConfigError for the
    URL, and ImportError if a package that `extra` installs is missing."""
    read: Callable[[str, Any, str], Reader | None]
    """Return a connected reader of a feed's tables, from the URL, the options and the feed's name; None if
    there is no such database yet. Raises TidemillError."""
    survey: Callable[[str, Any], Iterator[Finding]]
    """Yield findings for the URL and the options: can the database be written? Changes nothing."""
    traits: DialectTraits = DialectTraits()
    misfits: Callable[[Any, Table], Iterator[Finding]] | None = None
    """Yield findings about a table of the source that the database can't hold, for the options, without
    connecting; None if every table fits."""
    extra: str = ""
    """The extra of tidemill that installs its packages; empty if none is needed."""
    drivers: tuple[str, ...] = ()
    """Names of drivers that a URL may have after its scheme, as in mysql+pymysql; the dialect has its own."""
