"""What the data source is told to write: `.option(name, value)`, all text."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...engine.checkpoint import CheckpointFile
from ...errors import ConfigError
from ...sink import open_sink
from .. import option_values as values_of

SINK_PREFIX: Final = "sink."
"""In front of the options of a [[sink]] section in a feed.toml, for instance sink.schema."""
NAME: Final = "spark"

_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,160}")
_NUMBERS: Final[dict[str, Callable[[str], Any]]] = {"file_bytes": int, "flush_seconds": float}
_OF_SPARK: Final = ("checkpointlocation", "queryname")
"""Given to every sink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Everything a writer is told; checked, but nothing has been connected."""

    url: str
    id: str = ""
    """Under which the target knows what it has; empty: the query's own id, of a batch a new one."""
    partitions: int = 0
    """Where the number of partitions is known it is part of that name; 0: it isn't."""
    timeout: float = 120.0
    """A task gives up once its target couldn't be written for so many seconds."""
    sink: Mapping[str, Any] = field(default_factory=dict)
    """More options of the sink, as in its section of a feed.toml."""
    host: str = field(default_factory=socket.gethostname)
    """The driver's."""

    @property
    def scheme(self) -> str:
        return self.url.partition(":")[0].partition("+")[0]

    @property
    def is_files(self) -> bool:
        """Whether rows go into files that the driver publishes."""
        return self.scheme in ("file", "parquet")


_OPTIONS: Final[values_of.Options] = {
    "sink": ("url", values_of.any_text),
    "id": ("id", values_of.any_text),
    "partitions": ("partitions", values_of.whole(1, 10_000)),
    "sinkTimeout": ("timeout", values_of.seconds),
}


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Raises ConfigError, naming the option and what is accepted."""
    fields, texts, unknown = values_of.read(given, _OPTIONS, SINK_PREFIX)
    if ours := [key for key in unknown if key.lower() not in _OF_SPARK]:
        accepted = f"accepted: {', '.join(_OPTIONS)}, and {SINK_PREFIX}… for those of the sink"
        raise ConfigError(f"option {ours[0]}: there is none of this name for writing ({accepted})")
    sink = {option: _number(option, text) for option, text in texts.items()}
    if not fields.get("url"):
        raise ConfigError(
            "option sink: missing; a URL such as mysql://user:password@host:3306/, sqlite:////var/copy.db, "
            "file:///var/rows or parquet:///var/rows"
        )
    options = WriteOptions(**fields, sink=sink)
    if options.id and not _ID.fullmatch(options.id):
        raise ConfigError(f"option id = {options.id!r}: up to 160 letters, digits, ., - and _")
    open_sink(NAME, options.url, feed=NAME, store=CheckpointFile(Path()), options=sink)  # which checks them
    return options


def _number(option: str, text: str) -> Any:
    try:
        return _NUMBERS.get(option, str)(text)
    except ValueError:
        raise values_of.bad(SINK_PREFIX + option, text, "a number") from None
