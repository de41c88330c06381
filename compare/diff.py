"""The comparison of a feed's source with one target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from .. import config
from ..actors import Clock, SystemClock
from ..chain.selection.tables import TablePatterns
from ..dialects.read import Reader, Settled
from ..engine.options import FeedOptions, feed_options
from ..errors import ConfigError
from ..events import Table
from .finding import Finding, TableResult, difference_of
from .pace import ComparisonStopped, Pace, Pausing
from .sides import Sides
from .table import TableComparison


def open_diff(
    feed: str | Path | Mapping[str, object] | FeedOptions,
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
        self._sides = Sides(options, tables, sink, pace, at_syncpoint=at_syncpoint)
        self._name = options.name
        self._at_syncpoint = at_syncpoint
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
        self._sides.__enter__()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._sides.__exit__(kind, error, trace)

    @property
    def target(self) -> Reader:
        return self._sides.target

    @property
    def rows(self) -> int:
        """Number of the table's rows compared."""
        return 0 if self._comparison is None else self._comparison.rows

    @property
    def warning(self) -> str:
        """Warning that the feed isn't running; empty if it is, or if that makes no difference."""
        sides = self._sides
        if sides.source.reads_at_checkpoint or sides.is_running():
            return ""
        position, end = sides.checkpoint().position, sides.source.end()
        if sides.source.has_passed(position, end):
            return ""
        return (
            f"feed {self._name} isn't running: the target is at {position}, and the source has come to "
            f"{end}; rows that were changed since may be reported, as not settled"
        )

    def is_running(self) -> bool:
        return self._sides.is_running()

    def __iter__(self) -> Iterator[Finding]:
        """Yield findings. Raises TidemillError; Stopped if `wait` returned True."""
        tables, extra = self._sides.tables()
        if not tables and not extra:
            raise ConfigError("diff: no table of this feed and sink matches")
        self.tables_in_all = len(tables)
        for table in tables:
            self._comparison = None
            self.table, self.rows_estimated = table.full_name, self._sides.estimate(table)
            yield from self._compare(table)
            self.tables_done += 1
        yield from extra

    # --- one table

    def _compare(self, table: Table) -> Iterator[Finding]:
        comparison = self._sides.of(table)
        if isinstance(comparison, TableResult):
            yield comparison
            return
        self._comparison = comparison
        totals = {"missing": 0, "extra": 0, "changed": 0}
        unsettled = 0
        stopped: ComparisonStopped | None = None
        try:
            for batch in comparison.differences(self._sides.checkpoint()):
                for settled in batch:
                    one = difference_of(comparison.table, settled)
                    totals[one.kind] += one.count
                    unsettled += 0 if one.settled else one.count
                    self._last = comparison.table, settled
                    yield one
        except ComparisonStopped as error:
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
