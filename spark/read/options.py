"""What the data source is told to read: `.option(name, value)`, all text."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, get_type_hints

import msgspec

from ...config import keys
from ...engine.options import FeedOptions, feed_options
from ...errors import ConfigError
from ...events import Ts
from ...puller.mysql.options import MysqlOptions
from ...puller.tikv.options import TikvOptions
from .. import option_values as values_of
from ..offsets.offset import Limit
from .parts import Part, PartFilter

SOURCE_PREFIX: Final = "source."
"""In front of the options of the source's section in a feed.toml, for instance source.ca_path."""

OWN_OPTIONS: Final = {
    "server_id": "every task is a replica of its own, with an id of its own",
    "snapshot": "a batch without fromTs and fromPosition reads one",
    "position": "use fromPosition, or startingPosition of a stream",
    "start_ts": "use fromTs, or startingTs of a stream",
}
"""Of the source, which a reader sets itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Everything a reader is told; checked, but nothing has been connected."""

    url: str
    patterns: tuple[str, ...] = ()
    table: str = ""
    """The one table that has columns of its own; empty: the raw envelope of all."""
    values: str = "json"
    """Whether the envelope's `before` and `after` are made: json or none."""
    invalid_dates: str = "fail"
    """What becomes of a date that Spark has no value for, in a typed column: fail or null."""
    schema_changes: str = "fail"
    """What a stream with typed columns does about a row whose table has others by then: fail."""
    operations: tuple[str, ...] = values_of.OPERATIONS
    partitions: int = 1
    split_tables: bool = True
    """Whether several partitions may share a large table of TiKV."""
    sorter_memory: int = 64 << 20
    """Bytes of changes that a task keeps in memory before they go to disk."""
    scratch_dir: str = ""
    """Under which a task keeps what doesn't fit in memory; empty: the system's temporary directory."""
    source_timeout: float = 120.0
    """A task gives up once the source couldn't be read for so many seconds."""
    name: str = "spark"
    """Under which TiKV keeps old versions for this reader: readers of one cluster need one each."""
    ts: Ts = 0
    """Of a snapshot; 0: now."""
    from_ts: Ts = 0
    to_ts: Ts = 0
    from_position: str = ""
    to_position: str = ""
    starting_ts: Ts | str = "latest"
    starting_position: str = ""
    max_rows: int = 0
    """Of a micro-batch; 0: no bound."""
    max_bytes: int = 256 << 20
    """Of a micro-batch's changes in the binlog; 0: no bound."""
    poll_seconds: float = 0.0
    """A stream without news asks its source no more often than this; 0: 0.2, of TiKV 1.0."""
    capture: tuple[str, ...] = ()
    """Addresses of the captures that a stream's tasks ask first."""
    capture_token_file: str = ""
    """On the driver's machine; the captures are shown what is in it."""
    capture_tls: bool = False
    """Whether they are to show a certificate that the system trusts; a `capture_ca_file` says so too."""
    capture_ca_file: str = ""
    """On the driver's machine, PEM: who signed the captures' certificates."""
    capture_wait_seconds: float = 20.0
    """How long a task waits for what a capture has yet to read, before it reads the source itself."""
    source: Mapping[str, str] = field(default_factory=dict)
    """More options of the source, as in its section of a feed.toml."""

    @property
    def is_tikv(self) -> bool:
        return self.url.startswith("tikv:")

    @property
    def reads_changes(self) -> bool:
        """Whether a batch is of changes instead of a snapshot."""
        return bool(self.from_ts or self.from_position)

    @property
    def limit(self) -> Limit:
        return Limit(self.max_rows, self.max_bytes)

    def feed(self, directory: Path, part: Part, until: str = "", **source: Any) -> FeedOptions:
        """A local feed of one part; `source` are more options of the source. Raises ConfigError."""
        section = {"url": self.url, "tables": [*self.patterns], **source, **self._source_section()}
        options = feed_options(
            {
                "name": self.name,
                "data_dir": str(directory),
                "until": until,
                "source": section,
                "sorter": {"memory_bytes": self.sorter_memory},
            }
        )
        # A binlog is read whole in any case: what isn't of the part is dropped from its transactions later,
        # so that the rest keeps its numbers.
        return replace(options, tables=PartFilter(self.patterns, part)) if self.is_tikv else options

    def _source_section(self) -> dict[str, Any]:
        """The values are text; the fields say what they stand for."""
        kind = TikvOptions if self.is_tikv else MysqlOptions
        hints = get_type_hints(kind, include_extras=True)
        found: dict[str, Any] = {}
        for key, text in self.source.items():
            if key in OWN_OPTIONS:
                raise ConfigError(f"option {SOURCE_PREFIX}{key}: {OWN_OPTIONS[key]}")
            found[key] = text
            if key in keys(kind) and not key.endswith("_bytes") and not key.endswith("_path"):
                try:
                    found[key] = msgspec.convert(text, hints[key], strict=False)
                except msgspec.ValidationError as error:
                    raise values_of.bad(SOURCE_PREFIX + key, text, str(error)) from None
        return found


_OPTIONS: Final[values_of.Options] = {
    "source": ("url", values_of.source_url),
    "tables": ("patterns", values_of.patterns),
    "table": ("table", values_of.table_name),
    "values": ("values", values_of.one_of("json", "none")),
    "invalidDates": ("invalid_dates", values_of.one_of("fail", "null")),
    "schemaChanges": ("schema_changes", values_of.one_of("fail")),
    "operations": ("operations", values_of.operations),
    "partitions": ("partitions", values_of.whole(1, 10_000)),
    "splitTables": ("split_tables", values_of.yes_or_no),
    "sorterMemory": ("sorter_memory", values_of.size),
    "scratchDir": ("scratch_dir", values_of.any_text),
    "sourceTimeout": ("source_timeout", values_of.seconds),
    "name": ("name", values_of.any_text),
    "ts": ("ts", values_of.timestamp),
    "fromTs": ("from_ts", values_of.timestamp),
    "toTs": ("to_ts", values_of.timestamp),
    "fromPosition": ("from_position", values_of.any_text),
    "toPosition": ("to_position", values_of.any_text),
    "startingTs": ("starting_ts", values_of.starting_ts),
    "startingPosition": ("starting_position", values_of.any_text),
    "maxRowsPerBatch": ("max_rows", values_of.whole(1, 1 << 62)),
    "maxBytesPerBatch": ("max_bytes", values_of.size),
    "pollSeconds": ("poll_seconds", values_of.seconds),
    "capture": ("capture", values_of.addresses),
    "captureTokenFile": ("capture_token_file", values_of.any_text),
    "captureTls": ("capture_tls", values_of.yes_or_no),
    "captureCaFile": ("capture_ca_file", values_of.any_text),
    "captureWaitSeconds": ("capture_wait_seconds", values_of.seconds),
}


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Raises ConfigError, naming the option and what is accepted."""
    fields, source, unknown = values_of.read(given, _OPTIONS, SOURCE_PREFIX)
    if unknown:
        raise ConfigError(f"option {unknown[0]}: there is none of this name{_nearest(unknown[0])}")
    if "url" not in fields:
        raise ConfigError(
            "option source: missing; a URL such as mysql://user:password@host:3306 or tikv://pd1:2379,pd2:2379"
        )
    if "capture" not in fields and (lonely := [name for name in fields if name.startswith("capture_")]):
        name = next(name for name, (field_name, _) in _OPTIONS.items() if field_name == lonely[0])
        raise ConfigError(f"option {name}: it is for captures; give their addresses as option capture")
    options = ReadOptions(**_with_patterns(fields), source=source)
    _check(options)
    return options


def _with_patterns(fields: dict[str, Any]) -> dict[str, Any]:
    """A single table is its own pattern."""
    if ("table" in fields) == ("patterns" in fields):
        raise ConfigError(
            "option tables: give either tables, patterns for the raw envelope such as shop.*, or table, the "
            "name of one table that has its own columns then"
        )
    return fields if "patterns" in fields else fields | {"patterns": (fields["table"],)}


def _check(options: ReadOptions) -> None:
    """Raise ConfigError for options that don't go together."""
    mysql_only = ("fromPosition", options.from_position), ("toPosition", options.to_position)
    for name, value in (*mysql_only, ("startingPosition", options.starting_position)):
        if value and options.is_tikv:
            raise ConfigError(f"option {name}: TiKV has timestamps only; use the option of that name with Ts")
    if options.ts and not options.is_tikv:
        raise ConfigError("option ts: MariaDB has only a snapshot of now; leave ts out, or read changes")
    if options.ts and options.reads_changes:
        raise ConfigError("option ts: it is of a snapshot; fromTs and fromPosition are of changes")
    if (options.to_ts or options.to_position) and not options.reads_changes:
        raise ConfigError("option toTs: changes have a beginning, too; give fromTs or fromPosition")
    if options.from_ts and options.to_ts and options.from_ts > options.to_ts:
        raise ConfigError(f"option toTs = {options.to_ts}: at least fromTs, which is {options.from_ts}")
    if options.from_ts and options.from_position:
        raise ConfigError("option fromPosition: fromTs says where to begin, too; give one of them")
    options.feed(Path(), Part())  # what the feed's own options say of it


_OF_BATCHES: Final = {
    "ts": "a stream has changes only; read a snapshot with spark.read, or load one by a backfill",
    "fromTs": "a stream begins at startingTs",
    "toTs": "a stream has no end; with trigger(availableNow=True) it stops where the source ends",
    "fromPosition": "a stream begins at startingPosition",
    "toPosition": "a stream has no end; changes up to there are a batch",
}
_OF_STREAMS: Final = {
    "startingTs": "a batch of changes begins at fromTs",
    "startingPosition": "a batch of changes begins at fromPosition",
    "maxRowsPerBatch": "a batch is read whole",
    "maxBytesPerBatch": "a batch is read whole",
    "pollSeconds": "a batch asks once",
    "capture": "it is for streams; a batch reads the source itself",
}


def of_batch(options: ReadOptions) -> ReadOptions:
    """The same. Raises ConfigError for what only a stream has."""
    return _without(options, _OF_STREAMS)


def of_stream(options: ReadOptions) -> ReadOptions:
    """The same. Raises ConfigError for what only a batch has."""
    return _without(options, _OF_BATCHES)


def _without(options: ReadOptions, refused: Mapping[str, str]) -> ReadOptions:
    default = ReadOptions(url="")
    for name, instead in refused.items():
        field_name = _OPTIONS[name][0]
        if getattr(options, field_name) != getattr(default, field_name):
            raise ConfigError(f"option {name}: {instead}")
    return options


def _nearest(key: str) -> str:
    names = {name.lower(): name for name in _OPTIONS}
    close = difflib.get_close_matches(key.lower(), names, n=1, cutoff=0.5)
    hint = f"; did you mean {names[close[0]]}?" if close else ""
    return f"{hint} (accepted: {', '.join(_OPTIONS)}, and {SOURCE_PREFIX}… for those of the source)"
