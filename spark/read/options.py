"""Options of the data source for reading: `.option(name, value)`, all text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

from msgspec import Meta

from ... import config
from ...chain.selection.tables import TablePatterns
from ...config import INTERNAL, CamelCase, Given, text
from ...errors import ConfigError
from ...events import Ts
from ...sources.kind import SourceOptions
from ...sources.registry import source_options
from ...sources.sections import GivenSource
from .. import option_values as values_of
from ..captures_options import CapturesOptions
from ..offsets.offset import Limit
from ..option_values import Seconds, divided, option_form
from ..reading import SparkReading, reading_of
from .parts import Part

if TYPE_CHECKING:
    from ...engine.options import FeedOptions

OptionsT = TypeVar("OptionsT")

SOURCE_PREFIX: Final = "source."
"""Prefix for options of the source's section in a feed.toml, for instance source.ca_path."""

OWN_OPTIONS: Final = {
    "server_id": "every task is a replica of its own, with an id of its own",
    "snapshot": "a batch without fromTs and fromPosition reads one",
    "position": "use fromPosition, or startingPosition of a stream",
    "snapshot_workers": "a snapshot of the present is read in one session",
    "start_ts": "use fromTs, or startingTs of a stream",
}
"""Options of the source that a reader sets itself, with the reason or the replacement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions(CamelCase, CapturesOptions):
    """Validated options of a reader, which isn't connected yet."""

    url: Annotated[str, text(values_of.source_url, "source")] = field(repr=False)
    """URL of the database."""
    patterns: Annotated[tuple[str, ...], Given(name="tables")] = ()
    """Patterns of tables to read in the raw envelope; the last one that matches decides."""
    table: Annotated[str, text(values_of.table_name)] = ""
    """Instead of `tables`: name of one table, to read with typed columns."""
    values: Literal["json", "none"] = "json"
    """Format of the envelope's `before` and `after`. With `none` they are null, which takes two thirds of the
    time."""
    invalid_dates: Literal["fail", "null"] = "fail"
    """Treatment of dates in typed columns that Spark can't represent."""
    schema_changes: Literal["fail", "evolve"] = "fail"
    """Reaction of a stream with typed columns to a changed table: `fail` at any change, or `evolve`, which
    fails only at rows that the stream's columns don't hold."""
    operations: tuple[values_of.Operation, ...] = values_of.OPERATIONS
    """Operations whose rows are read; without it, all."""
    partitions: Annotated[int, Meta(ge=1, le=10_000)] = 1
    """Maximum number of tasks per batch; with 1, transactions are whole and in order."""
    split_tables: bool = True
    """Let several partitions share a large table of TiKV. With `false` one task reads a snapshot of one
    table, and a row's partition is the same in all batches and queries."""
    sorter_bytes: Annotated[int, Given(name="sorterMemory")] = 64 << 20
    """Maximum bytes of changes that a task keeps in memory; more go to disk."""
    scratch_dir: str = ""
    """Parent directory for changes that don't fit in memory; empty: the system's temporary directory."""
    source_timeout: Seconds = 120.0
    """Seconds without an answer of the source after which a task, or the query, fails."""
    name: Annotated[str, Given(parse=config.name)] = "spark"
    """Name of TiKV's service safe point for this reader; unique among the readers of a cluster."""
    ts: Annotated[Ts, text(values_of.timestamp)] = 0
    """Ts of a snapshot: a TSO, or a time such as 2026-11-21T08:00:00Z; without it, now."""
    from_ts: Annotated[Ts, text(values_of.timestamp)] = 0
    """A batch reads the changes after this ts, instead of a snapshot."""
    to_ts: Annotated[Ts, text(values_of.timestamp)] = 0
    """Ts of the last changes of the batch; without it, the source's end."""
    from_position: str = ""
    """Position of a binlog, in place of `fromTs`."""
    to_position: str = ""
    """Position of a binlog, in place of `toTs`."""
    starting_ts: Annotated[Ts | str, text(values_of.starting_ts)] = "latest"
    """A stream begins after this ts, or at `latest` or `earliest`."""
    starting_position: str = ""
    """Position of a binlog, in place of `startingTs`."""
    max_rows: Annotated[int, Meta(ge=0), Given(name="maxRowsPerBatch")] = 0
    """Maximum number of rows of a micro-batch, for which the driver decodes the rows too; 0: unlimited."""
    max_bytes: Annotated[int, Given(name="maxBytesPerBatch")] = 256 << 20
    """Maximum bytes of a micro-batch's changes in the binlog; 0: unlimited. A larger transaction is a batch
    of its own."""
    poll_seconds: Seconds = 0.0
    """Minimum interval between a stream's requests for new changes; 0: 0.2, for TiKV 1.0."""
    filter_pushdown: bool = False
    """Let the source evaluate the conditions of a batch's query, too: the frame is then for one query."""
    source: Annotated[Mapping[str, str], INTERNAL] = field(default_factory=dict, repr=False)
    """More options of the source, as in its section of a feed.toml."""

    @property
    def reading(self) -> SparkReading:
        """The way this kind of source is read."""
        return reading_of(self.url)

    @property
    def source_options(self) -> SourceOptions:
        """The options of this kind of source. Raises ConfigError."""
        for key in self.source:
            if key in OWN_OPTIONS:
                raise ConfigError(f"option {SOURCE_PREFIX}{key}: {OWN_OPTIONS[key]}")
        return source_options(self.url, self.source, READ_FORM)[1]

    def source_as(self, form: type[OptionsT]) -> OptionsT:
        """Return the options of the source, which is of the kind that has these. Raises ConfigError."""
        options = self.source_options
        assert isinstance(options, form)
        return options

    @property
    def reads_changes(self) -> bool:
        """True if a batch reads changes, not a snapshot."""
        return bool(self.from_ts or self.from_position)

    @property
    def limit(self) -> Limit:
        return Limit(self.max_rows, self.max_bytes)

    def feed(self, directory: Path, part: Part, until: str = "", **source: Any) -> FeedOptions:
        """Return the options of a local feed of one part, with `source` added. Raises ConfigError."""
        from ...engine.options import feed_options  # brings all stages, and sources are also read without

        kind, options = source_options(self.url, {**source, **self.source}, READ_FORM)
        # A log is always read whole: rows of other parts are dropped from its transactions later, so
        # that the rest keeps its numbers.
        tables = TablePatterns.parse(self.patterns)
        if self.reading.by_ts:
            tables = part.chosen(self.patterns)
        return feed_options(
            {
                "name": self.name,
                "data_dir": str(directory),
                "until": until,
                "sorter": {"memory_bytes": self.sorter_bytes},
            },
            GivenSource(kind=kind, options=options, tables=tables),
        )


READ_FORM: Final = option_form(
    f"and {SOURCE_PREFIX}… for those of the source", f"a URL such as {values_of.SOURCE_EXAMPLES}"
)


def read_options(texts: Mapping[str, str]) -> ReadOptions:
    """Parse the options. Raises ConfigError that names the option and the accepted values."""
    own, source = divided(texts, SOURCE_PREFIX)
    options = config.build(ReadOptions, own, "", READ_FORM)
    if bool(options.table) == bool(options.patterns):
        raise ConfigError(
            "option tables: give either tables, patterns for the raw envelope such as shop.*, or table, the "
            "name of one table that has its own columns then"
        )
    options = replace(options, patterns=options.patterns or (options.table,), source=source)
    _check(options)
    return options


def _check(options: ReadOptions) -> None:
    """Raise ConfigError for options that don't go together."""
    if not options.operations:
        raise ConfigError(f"option operations: some of {', '.join(values_of.OPERATIONS)}")
    positions = ("fromPosition", options.from_position), ("toPosition", options.to_position)
    for name, value in (*positions, ("startingPosition", options.starting_position)):
        if value and options.reading.by_ts:
            raise ConfigError(f"option {name}: TiKV has timestamps only; use the option of that name with Ts")
    if options.ts and not options.reading.by_ts:
        raise ConfigError("option ts: MariaDB has only a snapshot of now; leave ts out, or read changes")
    if options.ts and options.reads_changes:
        raise ConfigError("option ts: it is of a snapshot; fromTs and fromPosition are of changes")
    if (options.to_ts or options.to_position) and not options.reads_changes:
        name = "toTs" if options.to_ts else "toPosition"
        raise ConfigError(f"option {name}: changes have a beginning, too; give fromTs or fromPosition")
    if options.from_ts and options.to_ts and options.from_ts > options.to_ts:
        raise ConfigError(f"option toTs = {options.to_ts}: at least fromTs, which is {options.from_ts}")
    if options.from_ts and options.from_position:
        raise ConfigError("option fromPosition: fromTs says where to begin, too; give one of them")
    _ = options.source_options, Part().chosen(options.patterns)  # checks them


_OF_BATCHES: Final = {
    "ts": "a stream has changes only; read a snapshot with spark.read, or load one by a backfill",
    "fromTs": "a stream begins at startingTs",
    "toTs": "a stream has no end; with trigger(availableNow=True) it stops where the source ends",
    "fromPosition": "a stream begins at startingPosition",
    "toPosition": "a stream has no end; changes up to there are a batch",
    "filterPushdown": "Spark pushes no filters to streams; use operations and tables",
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
    """Return the options unchanged. Raises ConfigError for options of streams only."""
    return _without(options, _OF_STREAMS)


def of_stream(options: ReadOptions) -> ReadOptions:
    """Return the options unchanged. Raises ConfigError for options of batches only."""
    return _without(options, _OF_BATCHES)


def _without(options: ReadOptions, refused: Mapping[str, str]) -> ReadOptions:
    default = ReadOptions(url="")
    declared = config.declaration(ReadOptions).options
    for name, instead in refused.items():
        field_name = declared[name].field
        if getattr(options, field_name) != getattr(default, field_name):
            raise ConfigError(f"option {name}: {instead}")
    return options
