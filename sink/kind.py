"""The entry of the registry for one kind of sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..config import Finding
from .sink import CheckpointStore, Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkContext:
    """The feed and the name of one sink, and a store for its checkpoint."""

    name: str
    """The sink's name, unique in its feed."""
    feed: str
    """Several feeds may write to one target: each has a checkpoint of its own."""
    store: CheckpointStore
    """For the checkpoint of a target that can't hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRows:
    """Spark's tasks apply rows to the target by a sink that several attempts at a task may share."""

    opener: str
    """ "module:function", imported in the tasks; called with the URL, the options, the task's
    `spark.write.place.Place` and the driver's host name, and returns a Sink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByFiles:
    """Spark's tasks write files out of sight; the driver moves those of a finished batch into place."""

    directory: Callable[[str], Path]
    """Where the URL says that files go."""
    task_url: Callable[[Path], str]
    """What a task opens this kind of sink with, to write into an empty folder of its own."""
    load_url: Callable[[Path], str]
    """What loads the directory without Spark, before its query begins."""
    pattern: str
    """A glob pattern for the finished files in a task's folder."""
    unfinished: str = ""
    """A glob pattern for files in the folder that are empty, or gone, once all of it is finished."""
    published: Callable[[str, str], str]
    """Where a finished file goes in the directory, from its path in the folder and a mark that is unique to
    the partition's batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotOnSpark:
    """Spark can't write to it."""

    reason: str
    """Completes "Spark can't write to NAME: ..."."""


SparkWriting: TypeAlias = ByRows | ByFiles | NotOnSpark


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """One entry of the registry. Nothing else tells one kind of sink from another."""

    name: str
    schemes: tuple[str, ...]
    """URLs begin with one of these and a colon, or + and a driver's name."""
    examples: tuple[str, ...]
    """URLs, for errors."""
    options: type
    """A frozen dataclass. Its `__post_init__` raises ConfigError for values that don't go together."""
    open: Callable[[Any, Any, SinkContext], Sink]
    """Make the sink for a URL and options, not connected yet. Raises ConfigError for the URL, and ImportError
    where a package is missing that `extra` installs."""
    survey: Callable[[Any, Any, SinkContext], Iterator[Finding]]
    """Find out whether the target can be written, and where the feed begins there. Changes nothing; raises
    TidemillError if it can't go on."""
    on_spark: SparkWriting
    extra: str = ""
    """The extra of tidemill that it needs."""
    variant: Callable[[str, Mapping[str, Any]], SinkKind | None] | None = None
    """Another kind that the URL or the options, not built yet, ask for. Raises ConfigError."""
