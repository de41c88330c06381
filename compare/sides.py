"""The source of a feed and one of its targets, connected to compare their tables."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Self

from ..actors import SystemClock
from ..chain.selection.tables import EVERY_TABLE, TablePatterns
from ..dialects.options import RowOptions
from ..dialects.read import Reader
from ..engine.opening import source_context
from ..engine.options import FeedOptions
from ..engine.sink_options import SinkOptions
from ..engine.status import StatusFile
from ..errors import CheckpointError, ConfigError
from ..events import WHOLE, Checkpoint, Table, progress_of
from .finding import TableResult
from .merged import MergedSources
from .opening import open_source, open_target
from .pace import Pace
from .settle import ROUNDS, Settling, awaited
from .side import Source
from .syncpoint import at_syncpoint
from .table import TableComparison, reduced


class Sides:
    """A context manager, which connects."""

    def __init__(
        self,
        options: FeedOptions,
        tables: TablePatterns | None,
        sink: str,
        pace: Pace,
        *,
        at_syncpoint: bool = False,
    ) -> None:
        """`tables` choose among the tables of the feed and the sink. With `at_syncpoint` all is read as of
        one point."""
        self._options = options
        self._tables = EVERY_TABLE if tables is None else tables
        self._sink = _chosen(options, sink)
        of_sink = self._sink.rules.tables or EVERY_TABLE
        self._followed = options.tables.within(of_sink.matches)
        self._pace = pace
        self._at_syncpoint = at_syncpoint
        self._closing = ExitStack()

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

    def is_running(self) -> bool:
        try:
            state = StatusFile(self._options.data_dir).load().state
        except CheckpointError:
            return False
        return state in ("starting", "normal", "warning")

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
        source, pace = self.source.of(table), self._pace
        viewed = self._view_syncpoint if at_syncpoints and self._has_syncpoints else None
        settling = Settling(
            source, self.target, both, pace, self.is_running, origins, rounds=rounds, viewed=viewed
        )
        return TableComparison(source, self.target, both, differs, pace, settling)

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
