"""Registry entries for kinds of sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..config import Finding
from ..dialects.dialect import Dialect
from ..events import Table
from .dead_letters import DeadLetters
from .sink import CheckpointStore, Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkContext:
    """Feed and name of one sink, and a store for its checkpoint."""

    name: str
    """The sink's name, unique in its feed."""
    feed: str
    """Name of the feed; several feeds may write to one target, each with its own checkpoint."""
    store: CheckpointStore
    """Store for the checkpoint of a target that can't hold it."""
    scratch: Path | None = None
    """Directory of the sink's own for what it can make again, which need not exist; None: a temporary one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRows:
    """Writing by Spark: tasks apply rows through a sink that several attempts of a task may share."""

    open: Callable[[str, Any, Any, str], Sink] | None = None
    """Called in the tasks with the URL, the options, the task's `spark.write.place.BatchPartition` and the
    driver's host name; returns the sink, not opened yet. None for a kind with a dialect, which Spark can
    share."""


@dataclass(frozen=True, slots=True)
class ByFiles:
    """Writing by Spark: tasks write hidden files; the driver commits those of a batch."""

    target: Callable[[str, Any], Any]
    """Return the `files.target.FilesTarget` of a URL and options. Raises ConfigError and ImportError as
    `open` of the kind does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotOnSpark:
    """Spark can't write to this kind of sink."""

    reason: str
    """Completes "Spark can't write to NAME: ..."."""


SparkWriting: TypeAlias = ByRows | ByFiles | NotOnSpark


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """A registry entry. Code that depends on the kind of a sink exists only here."""

    name: str
    schemes: tuple[str, ...]
    """Schemes of URLs, before a colon, or before + and one of `drivers`."""
    examples: tuple[str, ...]
    """Example URLs for errors."""
    options: type
    """Frozen dataclass of options. Its `__post_init__` raises ConfigError for values that don't go
    together."""
    open: Callable[[Any, Any, SinkContext], Sink]
    """Make the sink for a URL and options, not connected yet. Raises ConfigError for the URL, and ImportError
    if a package that `extra` installs is missing."""
    survey: Callable[[Any, Any, SinkContext], Iterator[Finding]]
    """Yield findings: can the target be written, and which checkpoint does it have (`config.survey.begins`)?
    Changes nothing; raises TidemillError if it can't continue."""
    on_spark: SparkWriting
    misfits: Callable[[Any, Table], Iterator[Finding]] | None = None
    """Yield findings about a table of the source that the target can't hold, for the sink's options, without
    connecting; None if every table fits."""
    dialect: Dialect | None = None
    """The database that is written; None for another kind of target, whose rows can't be compared."""
    revisions: Callable[[Any, Any, str], Any] | None = None
    """Return a `sharding.shared_locks.Revisions` in the target, by which feeds that write into the same
    tables coordinate, not connected yet; from the URL, the options and the feed's name. None if there is
    none."""
    extra: str = ""
    """The extra of tidemill that installs its packages; empty if none is needed."""
    drivers: tuple[str, ...] = ()
    """Names of drivers that a URL may have after its scheme, as in mysql+pymysql; the sink uses its own."""
    dead_letters: Callable[[Any, Any, str], DeadLetters] | None = None
    """Return the dead letters of a feed by its name, not connected yet; None if such a sink keeps none."""
    has_definitions: Callable[[Any, Any], bool] = lambda *_: False
    """Return True if the sink with this URL and options takes `ChangeDetails`: then the source follows
    indexes, comments and the like, unless tables are merged."""
    variant: Callable[[str, Mapping[str, Any]], SinkKind | None] | None = None
    """Return the other kind that the URL or the raw options select. Raises ConfigError."""
