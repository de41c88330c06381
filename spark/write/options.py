"""Options of the data source for writing: `.option(name, value)`, all text."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import Meta

from ... import config
from ...config import INTERNAL, Given
from ...engine.checkpoint import CheckpointFile
from ...errors import ConfigError
from ...sink.kind import ByFiles, ByRows, NotOnSpark, SinkContext, SinkKind
from ...sink.registry import GivenSink, given_sink, open_given
from ..option_values import Seconds, divided, option_form

SINK_PREFIX: Final = "sink."
"""Prefix for options of a [[sink]] section in a feed.toml, for instance sink.schema."""
NAME: Final = "spark"

_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,160}")
_OF_SPARK: Final = ("checkpointlocation", "queryname")
"""Options that Spark gives to every sink."""


_SINK_FORM: Final = config.Form(
    is_text=True, noun="option", before=f"option {SINK_PREFIX}", separator="", shows_values=True
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Validated options of a writer, which isn't connected yet."""

    url: Annotated[str, Given(name="sink")] = field(repr=False)
    """URL of the target: a SQL database, or files in a directory or an S3-compatible store."""
    id: str = ""
    """Id under which the target stores its progress; empty: the query's id, or a new one for a batch. A batch
    into files takes none: each adds its rows."""
    partitions: Annotated[int, Meta(ge=0, le=10_000)] = 0
    """Number of partitions, which becomes part of the id; 0: unknown."""
    timeout: Annotated[Seconds, Given(name="sinkTimeout")] = 120.0
    """Retry deadline of a task, in seconds, for reaching its target and for locks that others have there."""
    sink: Annotated[Mapping[str, Any], INTERNAL] = field(default_factory=dict, repr=False)
    """More options of the sink, as in its section of a feed.toml."""
    host: Annotated[str, INTERNAL] = field(default_factory=socket.gethostname)
    """Name of the driver's host."""

    @property
    def given(self) -> GivenSink:
        """Kind and options of the sink. Raises ConfigError."""
        return given_sink(NAME, self.url, self.sink, _SINK_FORM)

    @property
    def way(self) -> ByRows | ByFiles:
        """The way tasks write to this kind of sink. Raises ConfigError if they can't."""
        return way_of(self.given.kind)

    @property
    def is_files(self) -> bool:
        """True if rows go into files that the driver publishes."""
        return isinstance(self.way, ByFiles)


def way_of(kind: SinkKind) -> ByRows | ByFiles:
    """Return the way tasks write to this kind of sink. Raises ConfigError if they can't."""
    if isinstance(kind.on_spark, NotOnSpark):
        raise ConfigError(f"Spark can't write to {kind.name}: {kind.on_spark.reason}")
    return kind.on_spark


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Parse the options. Raises ConfigError that names the option and the accepted values."""
    own, texts = divided(given, SINK_PREFIX)
    own = {key: text for key, text in own.items() if key.lower() not in _OF_SPARK}
    options = replace(config.build(WriteOptions, own, "", _FORM), sink=texts)
    if options.id and not _ID.fullmatch(options.id):
        raise ConfigError(f"option id = {options.id!r}: up to 160 letters, digits, ., - and _")
    context = SinkContext(name=NAME, feed=NAME, store=CheckpointFile(Path()))
    open_given(options.given, context)  # which checks the URL
    _ = options.way
    return options


_FORM: Final = option_form(
    f"and {SINK_PREFIX}… for those of the sink",
    "a URL such as mysql://user:password@host:3306/, sqlite:////var/copy.db, directory:///var/rows or "
    "parquet:///var/rows",
    "option for writing",
)
