"""SQL sinks whose checkpoint is that of TiDB-Binlog's drainer, in its table or in a file."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, Unpack

from ...actors import Clock
from ...dialects.mysql.mysql import MySqlDatabase
from ...events import Batch, Checkpoint, Ddl, Ts, physical_ms
from ..drainer.file import DrainerFile
from ..safe_mode import AFTER_START, SafeMode
from ..sink import SinkTraits
from .apply import HowApplied
from .letters.writer import LetterWriter
from .sql import SqlSink

MAX_UNSAVED: Final = 64
"""Number of batches after which the file is written early, as they are kept until then."""


class DrainerSink(SqlSink):
    """Has its checkpoint in the drainer's table, in the transaction of the rows.

    The drainer itself writes rows first: after taking over from it, safe mode is on until its last rows have
    been applied again.
    """

    def __init__(
        self,
        name: str,
        target: MySqlDatabase,
        clock: Clock,
        letters: LetterWriter | None = None,
        **how: Unpack[HowApplied],
    ) -> None:
        """`how` are options of SqlSink."""
        super().__init__(name, target, None, letters, clock.time, **how)
        self._home = target.home
        self._safe_start = SafeStart(self.safe_mode, clock)

    @property
    def traits(self) -> SinkTraits:
        return replace(super().traits, loads_tables=False)

    def open(self) -> Checkpoint | None:
        checkpoint = super().open()
        if not self._home.is_consistent:
            self._safe_start.begin()
        return checkpoint

    def write(self, batch: Batch) -> None:
        if self._durable is not None and not self._safe_start.is_over:
            self._safe_start.reached(self._durable.ts)
            self._home.is_consistent = self._safe_start.is_over
        super().write(batch)


class DrainerFileSink(DrainerSink):
    """Has its checkpoint in a file, saved after the rows; later rows are applied again in safe mode."""

    def __init__(
        self,
        name: str,
        target: MySqlDatabase,
        clock: Clock,
        letters: LetterWriter | None = None,
        *,
        file: DrainerFile,
        **how: Unpack[HowApplied],
    ) -> None:
        super().__init__(name, target, clock, letters, **how)
        self._file = file
        self._saved: Checkpoint | None = None
        self._unsaved = 0
        self._is_urgent = False  # True before the first save, and after a Ddl until it is saved

    @property
    def traits(self) -> SinkTraits:
        return replace(super().traits, is_pipelined=True)

    def open(self) -> Checkpoint | None:
        committed = self._durable
        checkpoint = super().open()
        self._saved = checkpoint
        self._is_urgent |= checkpoint is None  # so that a restart doesn't begin later
        if committed is not None and (checkpoint is None or checkpoint.ts < committed.ts):
            self._durable = committed  # by this process, to the same target
        return self._durable

    def write(self, batch: Batch) -> None:
        if batch.items and isinstance(batch.items[0], Ddl):
            self.flush()  # rows before it don't fit the table after it
            self._is_urgent = True
        super().write(batch)
        self._unsaved += 1

    def progress(self) -> Checkpoint | None:
        """Commit; return the checkpoint in the file, which is saved at most each few seconds."""
        super().flush()
        if self._durable is not None:
            self._file.success(self._durable.ts, ddl=self._is_urgent)
            if self._unsaved >= MAX_UNSAVED:
                self._file.finish()
        return self._note()

    def flush(self) -> Checkpoint | None:
        super().flush()
        if self._durable is not None:
            self._file.success(self._durable.ts)
            self._file.finish()
        return self._note()

    def _note(self) -> Checkpoint | None:
        """Return the checkpoint in the file."""
        reached = self._durable
        if reached is not None and self._file.saved_ts >= reached.ts:
            self._saved, self._unsaved, self._is_urgent = reached, 0, False
        return self._saved


SAFE_SECONDS: Final = 300.0
"""Least duration of safe mode, as in the original."""


class SafeStart:
    """Keeps safe mode until everything that was applied before the start has been applied again.

    That is after SAFE_SECONDS, once the checkpoint has passed the time of the start: a feed may be slower
    than the one before it.
    """

    def __init__(self, safe_mode: SafeMode, clock: Clock) -> None:
        self._safe_mode = safe_mode
        self._clock = clock
        self._began: tuple[float, float] | None = None
        """The start by both of the clock's times; None while safe mode isn't needed."""

    @property
    def is_over(self) -> bool:
        return self._began is None

    def begin(self) -> None:
        """Begin the period, again if it has begun."""
        if self._began is None:
            self._safe_mode.enter(AFTER_START)
        self._began = self._clock.now(), self._clock.time()

    def reached(self, ts: Ts) -> None:
        """Note that everything up to `ts` is applied."""
        if self._began is None:
            return
        now, moment = self._began
        if self._clock.now() - now >= SAFE_SECONDS and physical_ms(ts) >= moment * 1000:
            self._began = None
            self._safe_mode.leave(AFTER_START)
