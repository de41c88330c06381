"""The comparison of a feed's source with one target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Self

from .. import config
from ..actors import Clock, SystemClock
from ..chain.selection.tables import EVERY_TABLE, TablePatterns
from ..dialects.options import RowOptions
from ..dialects.read import Reader, Settled
from ..engine.opening import source_context
from ..engine.options import FeedOptions, feed_options
from ..engine.sink_options import SinkOptions
from ..engine.status import StatusFile
from ..errors import CheckpointError, ConfigError
from ..events import WHOLE, Checkpoint, Table, progress_of
from .finding import Finding, TableResult, difference_of
from .merged import MergedSources
from .opening import open_source, open_target
from .pace import Pace, Pausing, Stopped
from .settle import ROUNDS, awaited
from .side import Source
from .syncpoint import at_syncpoint
from .table import TableComparison, reduced


def open_diff(
    feed: str | Path | Mapping[str, Any] | FeedOptions,
    tables: Sequence[str] = (),
    *,
    sink: str = "",
    rows_per_second: float = 0,
    at_syncpoint: bool = False,
    clock: Clock | None = None,
    wait: Pausing | None = None,
) -> Diff:
    """Return a comparison of a feed's source with one of its sinks' targets, while the feed runs.

    `feed` is a feed.toml, its tables as a dictionary, or the options of a feed. `tables` are patterns that
    choose among the feed's tables; `sink` is the name of the sink, if there are several. At most
    `rows_per_second` rows of each side are read; 0: no limit. With `at_syncpoint` both sides are read as of
    one point, so that each difference is exact; the source must be one that can be read as of a ts. `wait` is
    called with a pause in seconds, and returns True to end the comparison.

    `with` connects. Iterating yields a Difference for each row that differs, and a TableResult after each
    table. Raises ConfigError.
    """
    pace = Pace(rows_per_second, clock or SystemClock(), wait)
    if isinstance(feed, str | Path):
        feed = config.read(Path(feed))
    options = feed if isinstance(feed, FeedOptions) else feed_options(feed)
    options.reject_filters("a comparison")
    if options.sharding.is_shared:
        raise ConfigError(
            "sharding.coordination: merged tables that several feeds share can't be compared: the target has "
            "the other feeds' rows too"
        )
    return Diff(
        options, TablePatterns.parse(tables) if tables else None, sink, pace, at_syncpoint=at_syncpoint
    )


class Diff:
    """Findings in the order of the tables' names; made by `tidemill.diff`, iterated once."""

    def __init__(
        self,
        options: FeedOptions,
        tables: TablePatterns | None,
        sink: str,
        pace: Pace,
        *,
        at_syncpoint: bool = False,
    ) -> None:
        self._options = options
        self._tables = EVERY_TABLE if tables is None else tables
        self._sink = _chosen(options, sink)
        of_sink = self._sink.rules.tables or EVERY_TABLE
        self._followed = options.tables.within(of_sink.matches)
        self._pace = pace
        self._at_syncpoint = at_syncpoint
        self._closing = ExitStack()
        self.table = ""
        """Full name of the table that is being compared."""
        self.rows_estimated = 0
        """Approximate number of its rows; 0 if that isn't known."""
        self.tables_done = 0
        self.tables_in_all = 0
        self._comparison: TableComparison | None = None
        self._last: tuple[Table, Settled] | None = None

    def __enter__(self) -> Self:
        """Connect to both sides. Raises TidemillError."""
        options, sink, followed = self._options, self._sink, self._options.source
        with ExitStack() as opened:
            self.target: Reader = open_target(
                sink.given, options.name, f"sink {sink.name}: {sink.given.kind.name}"
            )
            opened.callback(self.target.close)
            checkpoint = self.target.checkpoint()
            if checkpoint is None:
                raise CheckpointError(
                    f"{self.target.identity}: there is no checkpoint of feed {self._options.name!r}: run it"
                )
            context = source_context(options, SystemClock())
            whom = f"source.url: a {followed.kind.name} source"
            self.source: Source = open_source(followed.kind, followed.options, context, whom)
            opened.callback(self.source.close)
            if self._options.routes:
                self.source = MergedSources(self.source, self._options.merging, self._options.name)
            if self._at_syncpoint:
                if not self.source.reads_at_checkpoint:
                    raise ConfigError(f"{whom} can't be read as of a syncpoint: compare without one")
                checkpoint = opened.enter_context(self._view_syncpoint())
            self._at = checkpoint
            self.target.meet(self.source.summing)
            self._closing = opened.pop_all()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._closing.close()

    @property
    def rows(self) -> int:
        """Number of the table's rows compared."""
        return 0 if self._comparison is None else self._comparison.rows

    @property
    def warning(self) -> str:
        """Warning that the feed isn't running; empty if it is, or if that makes no difference."""
        if self.source.reads_at_checkpoint or self.is_running():
            return ""
        end = self.source.end()
        if self.source.has_passed(self._at.position, end):
            return ""
        return (
            f"feed {self._options.name} isn't running: the target is at {self._at.position}, and the source "
            f"has come to {end}; rows that were changed since may be reported, as not settled"
        )

    def is_running(self) -> bool:
        try:
            state = StatusFile(self._options.data_dir).load().state
        except CheckpointError:
            return False
        return state in ("starting", "normal", "warning")

    def __iter__(self) -> Iterator[Finding]:
        """Yield findings. Raises TidemillError; Stopped if `wait` returned True."""
        tables, extra = self.tables()
        if not tables and not extra:
            raise ConfigError("diff: no table of this feed and sink matches")
        self.tables_in_all = len(tables)
        for table in tables:
            self._comparison = None
            self.table, self.rows_estimated = table.full_name, self.estimate(table)
            yield from self._compare(table)
            self.tables_done += 1
        yield from extra

    def tables(self) -> tuple[list[Table], list[TableResult]]:
        """Return the source's tables to compare, and the target's that the source lacks. Called once."""
        listed = self.source.tables(self._at)
        known = {table.full_name for table in listed}
        extra = [
            TableResult(f"{schema}.{name}", "extra", detail="the source has no such table")
            for schema, name in self.target.names()
            if f"{schema}.{name}" not in known
            and self._tables.matches(schema, name)
            and self._followed.matches(schema, name)
        ]
        return [table for table in listed if self._chooses(table)], extra

    def estimate(self, table: Table) -> int:
        """Return about how many rows the table has; 0 if that isn't known."""
        return self.source.of(table).estimate(table)

    def _chooses(self, table: Table) -> bool:
        """Return True if a table of the source is compared; a merged one if the sink has a shard of it."""
        names = [(table.schema, table.name)]
        if isinstance(self.source, MergedSources):
            names = self.source.wants(table)
        is_chosen = self._tables.matches(table.schema, table.name)
        return is_chosen and any(self._followed.matches(*name) for name in names)

    # --- one table

    def of(
        self, table: Table, *, rounds: int = ROUNDS, at_syncpoints: bool = False
    ) -> TableComparison | TableResult:
        """Return the comparison of a table of `tables()`, or why there can't be one at present.

        A difference is one after it was the same in this number of rounds. With `at_syncpoints`, rows are
        read again at a syncpoint, if the target has any, so that one round is enough.
        """
        checkpoint = self.checkpoint()
        origins: Sequence[str] = [table.full_name]
        if isinstance(self.source, MergedSources):
            origins = self.source.origins(table)
            table, reason = self.source.merged(table, checkpoint)
            if reason and checkpoint.loading is None:
                return TableResult(table.full_name, "not comparable", detail=reason)
        if any(progress_of(checkpoint.loading, name) != WHOLE for name in origins):
            return TableResult(table.full_name, "loading", detail="its snapshot isn't complete")
        differs = self.target.differs(table)
        if differs is None:
            return TableResult(table.full_name, "missing", detail="the target has no such table")
        both = reduced(table, self.target.common(table))
        differs = differs and f"the target's table {differs}"
        if both is None:
            return TableResult(table.full_name, "not comparable", detail=differs)
        return TableComparison(
            self.source.of(table),
            self.target,
            both,
            differs,
            self._pace,
            self.is_running,
            origins,
            rounds=rounds,
            viewed=self._view_syncpoint if at_syncpoints and self._has_syncpoints else None,
        )

    @property
    def _has_syncpoints(self) -> bool:
        options = self._sink.given.options
        return isinstance(options, RowOptions) and options.syncpoint_seconds > 0

    def _view_syncpoint(self) -> AbstractContextManager[Checkpoint]:
        return at_syncpoint(self.target, self._sink, self._options.name, self._pace, self.is_running)

    def is_merging(self, table: Table) -> bool:
        """Return True while a merged table's shards are in different schemas."""
        return isinstance(self.source, MergedSources) and bool(
            self.source.merged(table, self.checkpoint())[1]
        )

    def await_end(self) -> bool:
        """Wait until the target has what is in the source's log now; return False if it doesn't move."""
        end = self.source.end()
        return awaited(
            self.target,
            lambda checkpoint: self.source.has_passed(checkpoint.position, end),
            self._pace,
            self.is_running,
        )

    def checkpoint(self) -> Checkpoint:
        """Return the target's checkpoint, or the last that it had."""
        self._at = self.target.checkpoint() or self._at
        return self._at

    def _compare(self, table: Table) -> Iterator[Finding]:
        comparison = self.of(table)
        if isinstance(comparison, TableResult):
            yield comparison
            return
        self._comparison = comparison
        totals = {"missing": 0, "extra": 0, "changed": 0}
        unsettled = 0
        stopped: Stopped | None = None
        try:
            for batch in comparison.differences(self.checkpoint()):
                for settled in batch:
                    one = difference_of(comparison.table, settled)
                    totals[one.kind] += one.count
                    unsettled += 0 if one.settled else one.count
                    self._last = comparison.table, settled
                    yield one
        except Stopped as error:
            stopped = error
        detail = comparison.differs
        if stopped is not None:
            more = len(comparison.waiting)
            detail = f"stopped; {more} more rows may differ, and weren't read again"
        yield TableResult(
            comparison.table.full_name,
            "stopped" if stopped is not None else "differs" if comparison.differs else "compared",
            comparison.rows,
            **totals,
            unsettled=unsettled,
            moving=comparison.moving,
            detail=detail,
        )
        if stopped is not None:
            raise stopped

    # --- repair

    def repair(self) -> list[str]:
        """Return the statements that repair the target's row of the last Difference."""
        assert self._last is not None
        return self.target.repair(*self._last)

    def apply(self) -> bool:
        """Repair the row of the last Difference in the target; return False, changing nothing, if it was
        changed since. Not at a syncpoint: raises ConfigError."""
        if self._at_syncpoint:
            raise ConfigError("diff: rows of a past point can't be repaired: compare without a syncpoint")
        assert self._last is not None
        return self.target.apply(*self._last)


def _chosen(options: FeedOptions, name: str) -> SinkOptions:
    names = ", ".join(sink.name for sink in options.sinks)
    if name:
        for sink in options.sinks:
            if sink.name == name:
                return sink
        raise ConfigError(f"--sink {name}: no such sink; the feed has {names or 'none'}")
    if len(options.sinks) != 1:
        raise ConfigError(f"--sink: name one of the feed's sinks: {names or 'it has none'}")
    return options.sinks[0]
