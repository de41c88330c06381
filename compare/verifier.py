"""The verification of one sink's target: pass after pass over all tables, beside the feed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from threading import Event
from typing import Final

from msgspec.structs import replace

from ..actors import Clock
from ..actors.backoff import pause_seconds
from ..dialects.read import Settled
from ..engine.options import FeedOptions
from ..engine.status import StatusFile
from ..engine.verification import VerifyOptions, VerifyState, VerifyStatus
from ..errors import CheckpointError, ConfigError, InvariantViolated, Retryable, StoreError, TidemillError
from ..events import Table
from ..failpoint import reach
from .chunks import KeyMark
from .finding import TableResult, difference_of
from .pace import ComparisonStopped, Pace, Pausing
from .repairs import Repairs
from .schedule import Schedule
from .sides import Sides
from .table import TableComparison
from .verified import VerifiedFile, listed

log = logging.getLogger("tidemill")

ROUNDS: Final = 12
"""Number of rounds in which a difference must be the same: in years of comparing, a row that leaves a value
and returns to it must not look like a difference."""
SAVE_SECONDS: Final = 2.0
"""Least pause between two writes of the progress."""
RANGE_SECONDS: Final = 60.0
"""Time for which the rows of one range are enough."""
SESSION_SECONDS: Final = 60.0
"""Age of the tables' definitions at which they are read again before the next table, ..."""
_LISTINGS: Final = 20
"""... but at least this multiple of the time that reading them takes."""
REPORTED_ROWS: Final = 1_000
"""Number of a table's rows after which no more are reported in a pass, unless they are repaired."""
WAIT_SECONDS: Final = 60.0
"""Longest pause between looks whether a pass is due."""
FIRST_PAUSE_SECONDS: Final = 1.0
MOST_PAUSE_SECONDS: Final = 60.0


class _Again(Exception):
    """The definitions have changed, or must be seen once more: the comparison goes on with those of now."""


class Verifier:
    """`run` is called once, in a thread of its own."""

    def __init__(
        self,
        options: FeedOptions,
        verify: VerifyOptions,
        sink: str,
        share: float,
        clock: Clock,
        wait: Pausing | None = None,
    ) -> None:
        """`wait` pauses in place of the event that `stop` sets."""
        self.sink = sink
        self.status = VerifyStatus(sink)
        """Read by any thread."""
        self._options = options
        self._verify = verify
        self._clock = clock
        self._stopping = Event()
        self._wait_for = wait or self._stopping.wait
        self._pace = Pace(
            verify.max_rows_per_second, clock, self._wait, share=share, range_seconds=RANGE_SECONDS
        )
        self._schedule = Schedule(verify.every, verify.max_rows_per_second)
        name = f"{options.name}.{sink}"
        self._file = VerifiedFile(options.data_dir / f"{name}.verify.json")
        self._repairs = Repairs(options.data_dir / f"{name}.differences.jsonl", f"sink {sink}", clock)
        self._verified = self._file.load()
        self._saved_at = clock.now()
        self._state: tuple[VerifyState, str] = "waiting", ""
        self._estimated = self._verified.whole_rows
        self._done_part = 0.0  # share of the tables
        self._comparison: TableComparison | None = None
        self._rows_before = 0  # of this pass, before the present comparison
        self._reached: KeyMark | None = None
        self._suspected: dict[str, str] = {}  # differences of tables themselves that were seen once
        self._show()

    def stop(self) -> None:
        self._stopping.set()

    def _sides(self) -> Sides:
        """Return both sides, not connected yet."""
        return Sides(self._options, self._verify.tables, self.sink, self._pace)

    # --- life

    def run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            pause = 0.0
            try:
                pause = self._turn()
                failures = 0
            except ComparisonStopped:
                break
            except _Again:
                pause = FIRST_PAUSE_SECONDS
            except Exception as error:  # whatever it is, the feed goes on
                if not isinstance(error, TidemillError) or isinstance(error, InvariantViolated):
                    log.exception("verification of sink %s", self.sink)
                failures += 1
                pause = pause_seconds(failures, FIRST_PAUSE_SECONDS, MOST_PAUSE_SECONDS)
                self._say("paused", str(error) or type(error).__name__)
                self._pace.restart()  # an answer that didn't come was no work
            self._leave()
            try:
                self._pace.pause(pause)
            except ComparisonStopped:
                break
        self._leave()
        self._save()

    def _turn(self) -> float:
        """Compare tables until the pass is complete, or their definitions are old; return the pause after it.

        Raises Stopped, _Again and TidemillError.
        """
        verified, now = self._verified, self._clock.time()
        if not self._has_begun():
            self._say("waiting", "the feed has no checkpoint yet")
            return FIRST_PAUSE_SECONDS
        if verified.began is None or verified.is_whole:
            left = 0.0 if verified.began is None else self._schedule.seconds_left(verified.began, now)
            if left > 0:
                self._say("waiting", "")
                return min(left, WAIT_SECONDS)
            verified.begin(now)
        with self._sides() as sides:
            self._say("comparing", "")
            self._compare(sides)
        return 0.0

    def _has_begun(self) -> bool:
        try:
            status = StatusFile(self._options.data_dir).load()
        except CheckpointError:
            return False
        return any(sink.name == self.sink and sink.position for sink in status.sinks)

    def _compare(self, sides: Sides) -> None:
        verified, began = self._verified, self._clock.now()
        tables, extra = sides.tables()
        if not tables and not extra:
            raise ConfigError("verify.tables: no table of this feed and sink matches")
        took = self._clock.now() - began
        self._estimated = sum(map(sides.estimate, tables)) or verified.whole_rows
        for number, table in enumerate(sorted(tables, key=lambda table: table.full_name)):
            self._done_part = number / len(tables)
            if table.full_name <= verified.done:
                continue
            if self._clock.now() - began > max(SESSION_SECONDS, _LISTINGS * took):
                return
            self._table(sides, table)
        self._confirm(sides, {one.table: one.detail for one in extra})
        for one in extra:
            verified.differ(one.table, one.detail, (), self._clock.time())
            verified.finish_table(one.table)
        known = {*(table.full_name for table in tables), *(one.table for one in extra)}
        verified.end(self._clock.time(), known)
        self._suspected.clear()

    # --- tables

    def _table(self, sides: Sides, table: Table) -> None:
        verified, comparison = self._verified, sides.of(table, rounds=ROUNDS, at_syncpoints=True)
        name = table.full_name
        if isinstance(comparison, TableResult):
            if comparison.state != "loading" and not sides.is_merging(table):
                self._confirm(sides, {name: comparison.detail})
                verified.differ(name, comparison.detail, (), self._clock.time())
            verified.finish_table(name)
            return
        if comparison.differs:
            self._confirm(sides, {name: comparison.differs})
        self._suspected.pop(name, None)
        self._reached = mark = verified.mark(comparison.table)
        if comparison.differs and verified.found is None:
            verified.differ(name, comparison.differs, (), self._clock.time())
        self._comparison, self._rows_before = comparison, verified.rows
        for batch in comparison.differences(sides.checkpoint(), mark):
            self._note()
            if batch:
                self._differ(sides, table, comparison, batch)
        self._leave()
        verified.finish_table(name)

    def _confirm(self, sides: Sides, differing: dict[str, str]) -> None:
        """Return if the tables have differed in this way before the feed's present position.

        Else raises _Again once the feed has passed the source's present end: the difference may be a schema
        change on its way.
        """
        if all(self._suspected.get(name) == detail for name, detail in differing.items()):
            return
        if not sides.await_end():
            raise Retryable(_LATE)
        self._suspected |= differing
        raise _Again

    def _differ(
        self, sides: Sides, table: Table, comparison: TableComparison, batch: Sequence[Settled]
    ) -> None:
        """Note rows that differ, and repair them if that is asked for."""
        if not all(one.is_certain for one in batch):
            raise Retryable(_LATE)
        self._check_definitions(table, comparison)
        name = table.full_name
        divergence = self._verified.found
        if self._verify.repair or divergence is None or divergence.differences < REPORTED_ROWS:
            self._repairs.found([difference_of(comparison.table, one) for one in batch])
        reach("verify.found")
        if self._verify.repair:
            repaired, batch, is_certain = self._repairs.repair(sides.target, comparison, batch)
            self._verified.repaired += repaired
            if not is_certain:
                raise Retryable(_LATE)
        if batch:
            differences = [difference_of(comparison.table, one) for one in batch]
            self._verified.differ(name, comparison.differs, differences, self._clock.time())
            log.warning("sink %s: %d rows of %s differ from the source", self.sink, len(batch), name)

    def _check_definitions(self, table: Table, comparison: TableComparison) -> None:
        """Raise _Again unless both sides' definitions are those by which the rows were compared."""
        with self._sides() as sides:
            tables, _ = sides.tables()
            now = next((one for one in tables if one.full_name == table.full_name), None)
            again = None if now is None else sides.of(now)
        if not isinstance(again, TableComparison) or now != table:
            raise _Again
        if (again.table, again.differs) != (comparison.table, comparison.differs):
            raise _Again

    # --- progress

    def _wait(self, seconds: float) -> bool:
        """Note the progress at each pause; return True at the end."""
        self._note()
        if self._clock.now() - self._saved_at >= SAVE_SECONDS:
            self._save()
        return self._stopping.is_set() or self._wait_for(seconds)

    def _leave(self) -> None:
        """Note the progress of the present comparison, which ends."""
        if self._comparison is not None:
            self._note()
            self._verified.moving += self._comparison.moving
        self._comparison = None
        self._show()

    def _note(self) -> None:
        verified, comparison = self._verified, self._comparison
        if comparison is not None:
            verified.rows = self._rows_before + comparison.rows
            if comparison.reached is not None and comparison.reached != self._reached:
                self._reached = comparison.reached
                verified.reach(comparison.reached)
        if verified.began is not None:
            self._pace.rows_per_second = self._schedule.rows_per_second(
                verified.began, self._clock.time(), verified.rows, self._estimated
            )
        self._show()

    def _save(self) -> None:
        self._saved_at = self._clock.now()
        try:
            self._file.save(self._verified)
        except StoreError as error:
            log.warning("sink %s: %s", self.sink, error)
        reach("verify.saved")

    def _say(self, state: VerifyState, detail: str) -> None:
        if state == "paused" and (state, detail) != self._state:
            log.warning("verification of sink %s is paused: %s", self.sink, detail)
        self._state = state, detail
        self._show()

    def _show(self) -> None:
        one = self._verified
        divergences = one.current()
        part = min(1.0, one.rows / self._estimated) if self._estimated else self._done_part
        state, detail = self._state
        self.status = replace(
            self.status,
            state=state,
            detail=detail,
            since=one.began,
            percent=100.0 if one.is_whole else 100.0 * part,
            table=one.table,
            rows=one.rows,
            rows_compared=one.rows_compared + one.rows,
            moving=one.moving,
            passes=one.passes,
            whole_began=one.whole_began,
            whole_ended=one.whole_ended,
            repaired=one.repaired,
            divergences=listed(divergences),
            differences=sum(each.differences for each in divergences.values()),
            diverged=len(divergences),
        )


_LATE: Final = "the target hasn't come to the position of the reading of the source: rows are compared again"
