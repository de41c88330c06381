"""Changes of rows in a target's open SQL transaction, each exactly once, or an error that names the row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Final, NamedTuple, TypedDict

from ...dialects.database import (
    MISSING,
    Database,
    ObjectRejected,
    StatementRejected,
    describe,
    describe_differences,
    shortened,
)
from ...dialects.groups import ChangeGroup, cut_groups
from ...errors import SinkError, TidemillError
from ...events import RowChange, Run, Ts, runs_of
from ..safe_mode import SafeMode
from .after_start import AfterStart
from .letters.letter import FOLLOWS, Letter, storable, time_text
from .letters.writer import LetterWriter
from .merging import ChangeMerger

MAX_SHOWN: Final = 200
"""Maximum number of characters of a statement in an error ..."""
MAX_KEPT: Final = 2_000
"""... and in a dead letter."""


class HowApplied(TypedDict, total=False):
    """Options of every SQL sink."""

    copies_definitions: bool
    merges: bool


class TransactionPart(NamedTuple):
    """Changes of a transaction of the source, or of one batch of it."""

    ts: Ts
    position: str
    """The source's position after the transaction; empty before its last batch."""
    runs: Sequence[Run]


class Placed(NamedTuple):
    """A change, and the part that it came with."""

    change: RowChange
    part: TransactionPart


class RowRejected(SinkError):
    """The target rejected the change of a row."""

    def __init__(self, message: str, ts: Ts, table: str) -> None:
        super().__init__(message, table)
        self.ts = ts
        """Commit ts of its transaction."""


class Applier:
    """Applies changes to one target; in safe mode whatever their rows are in it."""

    def __init__(
        self,
        target: Database,
        safe_mode: SafeMode,
        letters: LetterWriter | None = None,
        now: Callable[[], float] = float,
        after_start: AfterStart | None = None,
        *,
        merges: bool = False,
    ) -> None:
        """`letters` keeps rejected changes; without it one raises. `now` is in Unix seconds. With `merges`
        the changes of a row are applied as one."""
        self._merger = ChangeMerger(target.rows) if merges else None
        self._after_start = after_start
        self._target = target
        self._safe_mode = safe_mode
        self._letters = letters
        self._now = now

    def apply(self, parts: Sequence[TransactionPart], *, keeps: bool = True) -> None:
        """Apply changes after the transaction's savepoint, which is set already.

        Similar changes share a statement. If the database rejects one, the changes are divided into halves
        until the rejected row is alone, or succeed because only the combination was rejected. The row becomes
        a dead letter, and so do later changes of it. Raises RowRejected for a row without letters, or unless
        `keeps`.
        """
        if self._after_start is not None:
            self._after_start.look(self._target, (run.table for part in parts for run in part.runs))
        parts = self._without_waiting(parts)
        try:
            self._apply(self._groups([run for part in parts for run in part.runs]))
        except Exception as error:
            if not isinstance(self.explain(error, "writing"), StatementRejected):
                raise
            self._target.rollback_to_savepoint()
            self._rolled_back(parts)
            self._apply_halves(_placed(parts), self._letters if keeps else None)
        if self._letters is not None:
            self._letters.write()

    def forget(self) -> None:
        """Look at the tables' keys again when they come next."""
        if self._merger is not None:
            self._merger.forget()

    def _groups(self, runs: Sequence[Run]) -> list[ChangeGroup]:
        # In safe mode rows may be those after the changes already: an insert and its delete aren't nothing.
        if self._merger is not None and not self._safe_mode.is_active:
            return self._merger.groups(runs, self._target.rows.max_rows)
        return cut_groups(runs, self._target.rows.max_rows, self._target.rows.is_linked)

    def _rolled_back(self, parts: Sequence[TransactionPart]) -> None:
        if self._after_start is not None:
            self._after_start.begin(max(part.ts for part in parts))

    def _apply(self, groups: Sequence[ChangeGroup]) -> None:
        if self._safe_mode.is_active:
            self._target.rows.apply_safely(groups)
        else:
            self._target.rows.apply(groups)

    def _without_waiting(self, parts: Sequence[TransactionPart]) -> Sequence[TransactionPart]:
        """Return the parts without the changes that wait for letters of their rows; these become letters."""
        letters = self._letters
        if letters is None or not any(
            letters.may_wait(run.table.full_name) for part in parts for run in part.runs
        ):
            return parts
        placed = _placed(parts)
        if not any(letters.waits(one.change) for one in placed):
            return parts
        letters.lock()  # somebody may have applied or dropped them
        return _parts(self._free(placed, letters))

    def _free(self, placed: Sequence[Placed], letters: LetterWriter | None) -> list[Placed]:
        """Return the changes that needn't wait; the others become letters, in order."""
        if letters is None or not any(letters.may_wait(one.change.table.full_name) for one in placed):
            return list(placed)
        free = []
        for one in placed:
            if letters.waits(one.change):
                letters.add(self._letter(one, FOLLOWS))
            else:
                free.append(one)
        return free

    def _apply_halves(self, placed: list[Placed], letters: LetterWriter | None) -> None:
        """Apply changes that were rejected together: k rejected ones of n take about 2k·log2(n/k) attempts,
        and never more than 2n."""
        middle = len(placed) // 2
        waiting = [placed[middle:], placed[:middle]] if middle else [placed]
        while waiting:
            some = self._free(waiting.pop(), letters)
            if not some:
                continue
            try:
                self._apply(cut_groups(_runs(some), self._target.rows.max_rows, self._target.rows.is_linked))
            except Exception as error:
                rejected = self.explain(error, "writing")
                if not isinstance(rejected, StatementRejected):
                    raise
                self._target.rollback_to_savepoint()
                if len(some) > 1:
                    middle = len(some) // 2
                    waiting += [some[middle:], some[:middle]]
                else:
                    self._give_up(some[0], rejected, letters, error)
            else:
                if waiting:
                    self._target.savepoint()

    def _give_up(
        self, one: Placed, rejected: StatementRejected, letters: LetterWriter | None, error: Exception
    ) -> None:
        reason = (str(rejected) == MISSING and self._differences(one.change)) or str(rejected)
        letter = self._letter(one, reason, self._statement(one.change))
        if letters is not None and not isinstance(rejected, ObjectRejected):
            letters.add(letter)
            return
        where = f", position {letter.position}" if letter.position else ""
        table = one.change.table.full_name
        advice = f". To load the table again: tidemill resume FEED --resnapshot {table}"
        raise RowRejected(
            f"{self._target.identity}: {letter.op} of {describe(one.change)}: {reason} (commit ts {letter.ts}"
            f"{where}; statement: {shortened(letter.statement, MAX_SHOWN)})"
            f"{advice if str(rejected) == MISSING else ''}",
            letter.ts,
            table,
        ) from error

    def _letter(self, one: Placed, reason: str, statement: str = "") -> Letter:
        change, part = one
        return Letter(
            0,
            change.table,
            change.op,
            change.before,
            change.after,
            part.ts,
            part.position,
            storable(reason),
            storable(shortened(statement, MAX_KEPT)),
            time_text(self._now()),
        )

    def _statement(self, change: RowChange) -> str:
        (group,) = cut_groups(runs_of([change]), 1)
        return self._target.rows.statement(group, safely=self._safe_mode.is_active)

    def _differences(self, change: RowChange) -> str:
        """Return the differences of the target's row; empty if it is the source's, or not there."""
        if change.before is None or not change.table.key:
            return ""
        here = self._target.rows.compare(change)
        differences = describe_differences(change, here) if here else ""
        return f"{differences}; was the target changed by something else?" if differences else ""

    def explain(self, error: Exception, doing: str) -> Exception:
        """Return tidemill's error for one of the target's driver; any other error as it is."""
        if isinstance(error, (TidemillError, StatementRejected)):
            return error
        return self._target.explain(error, doing) or error

    def failure(self, error: Exception, doing: str, table: str = "") -> Exception:
        """Return the error to raise when the SQL transaction is given up; a statement was about `table`, if
        there is one."""
        explained = self.explain(error, doing)
        if isinstance(explained, StatementRejected):
            return SinkError(f"{self._target.identity}: {doing}: {explained}", table)
        return explained


def _placed(parts: Sequence[TransactionPart]) -> list[Placed]:
    return [Placed(change, part) for part in parts for run in part.runs for change in run.changes()]


def _runs(placed: Sequence[Placed]) -> list[Run]:
    return runs_of([one.change for one in placed])


def _parts(placed: Sequence[Placed]) -> list[TransactionPart]:
    """Return the changes as parts again."""
    return [
        TransactionPart(some[0].part.ts, some[0].part.position, _runs(some))
        for some in (list(group) for _, group in groupby(placed, key=lambda one: id(one.part)))
    ]
