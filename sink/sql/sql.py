"""A sink for SQL databases, exactly once: the checkpoint is written in the same SQL transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ...codec.checkpoint import decode_checkpoint, encode_checkpoint
from ...dialects.applied import Applied, AppliedStore, all_ts
from ...dialects.database import CHECKPOINT_TABLE, Database
from ...errors import InvariantViolated, Retryable, SinkError, about
from ...events import Batch, Checkpoint, Ddl, Table, Transaction, Ts
from ...failpoint import reach
from ..errors import ReplayRequired
from ..resume_filter import lacking
from ..safe_mode import SafeMode
from ..sink import Sink, SinkStatistics, SinkTraits
from .after_start import AfterStart
from .apply import Applier, TransactionPart
from .definitions import TargetNames
from .letters.rows import LetterRows
from .letters.writer import LetterWriter
from .syncpoints import SyncpointWriter


class SqlSink(Sink):
    """Applies batches to one database in commit order, each row event as exactly one INSERT, UPDATE or
    DELETE."""

    def __init__(
        self,
        name: str,
        target: Database,
        applied: AppliedStore | None = None,
        letters: LetterWriter | None = None,
        now: Callable[[], float] = float,
        *,
        copies_definitions: bool = False,
        merges: bool = False,
        syncpoints: SyncpointWriter | None = None,
    ) -> None:
        """`applied` has the transactions after the checkpoint that parallel workers left. `letters` keeps
        rejected changes; without it the first one is an error. `now` is in Unix seconds. With `merges` the
        changes of a row in a batch are applied as one."""
        self._copies_definitions = copies_definitions
        self.name = name
        self.target = target.identity
        self._database = target
        self.safe_mode = SafeMode()
        self._letters = letters
        self.after_start = AfterStart(self.safe_mode, now)
        self._applier = Applier(target, self.safe_mode, letters, now, self.after_start, merges=merges)
        self._store = applied
        self._syncpoints = syncpoints
        self._records: list[Applied] = []  # in the store
        self.applied: set[Ts] = set()
        """Transactions after the checkpoint that the target has."""
        self._stored: str | None = None  # text of the checkpoint in the target
        self._written: set[str | None] = set()
        """Texts of checkpoints of which one is in the target, unless an earlier sink wrote after `open`."""
        self._connected = False
        self._is_unmoved = False  # True once no earlier connection can change the checkpoint
        self._is_tidied = False  # True once no unfinished creation is left
        self._durable: Checkpoint | None = None
        self._reached: Checkpoint | None = None  # of the written batches; None inside a transaction
        self._writing = False  # True while a SQL transaction is open
        self._definitions = TargetNames(target, letters, self._begin, self._end)

    @property
    def traits(self) -> SinkTraits:
        return SinkTraits(computes_columns=True, copies_definitions=self._copies_definitions)

    def open(self) -> Checkpoint | None:
        where = f"{self.target}, table {CHECKPOINT_TABLE}, feed {self._database.feed!r}"
        try:
            self._database.connect()
            self._open_letters()
            if self._syncpoints is not None:
                self._syncpoints.open()
            self._records = [] if self._store is None else self._store.load()
            self._stored = text = self._load_checkpoint()
            self._written = self._written or {text}
            self._durable = None if text is None else decode_checkpoint(text, where)[0]
        except Exception as error:
            self._fail(error, "connecting")
        self._applier.forget()
        self.after_start.forget()
        if self._durable is not None:
            self.after_start.begin(self._durable.ts)
        self.applied = set() if self._durable is None else all_ts(self._records, self._durable.ts)
        self._connected = True
        return self._durable

    def _load_checkpoint(self) -> str | None:
        return self._database.load_checkpoint()

    def _open_letters(self) -> None:
        if self._letters is not None:
            self._letters.open()
            return
        rows = LetterRows(self._database.own_tables, self._database.feed)
        if rows.exists() and (letters := rows.load()):
            raise SinkError(
                f"{self.target}: feed {self._database.feed!r} has dead letters ({len(letters)}), whose "
                'rows lack changes: set on_error = "dead letters", or run tidemill dead-letters retry or drop'
            )

    def statistics(self) -> SinkStatistics:
        if self._letters is None:
            return SinkStatistics(safe_mode=self.safe_mode.reasons)
        keys = self._letters.keys
        return SinkStatistics(
            dead_letters=len(keys), dead_letter_tables=keys.by_table(), safe_mode=self.safe_mode.reasons
        )

    @property
    def is_open(self) -> bool:
        return self._connected

    @property
    def durable(self) -> Checkpoint | None:
        """The checkpoint in the target."""
        return self._durable

    @property
    def is_inside(self) -> bool:
        """True if a transaction of the source is open."""
        return self._writing and self._reached is None

    def hand_over(self) -> list[Applied]:
        """Return the records of applied transactions, for another to delete; nothing may be unflushed."""
        records, self._records = self._records, []
        return records

    def take_over(self, durable: Checkpoint) -> None:
        """Go on after `durable`, which another has stored."""
        self._durable = self._reached = durable
        self._is_unmoved = True
        self._written = set()

    def _open_again(self, batch: Batch) -> None:
        """Connect again, to write a batch. Raises ReplayRequired after a COMMIT of an earlier sink that came
        late, during a load: the chunks of this one have other timestamps."""
        known, written = self._durable or batch.checkpoint, self._written
        durable = self.open()
        if durable is None or not written or self._stored in written:
            return
        if known is None or not (known.is_loaded and durable.is_loaded):
            raise ReplayRequired(
                f"{self.target}: a commit of an earlier sink came late, while tables are loaded"
            )

    def write(self, batch: Batch) -> None:
        if not self._connected:
            self._open_again(batch)
        # After a commit whose response was lost, the target has more than this sink knew.
        items = batch.items if self._durable is None else lacking(self._durable, batch.items)
        if self.applied:
            items = [item for item in items if item.commit_ts not in self.applied]
        doing, table = "writing", ""
        try:
            if items and isinstance(ddl := items[0], Ddl):
                doing = f"following {ddl.query!r}" if ddl.query else f"creating {ddl.full_name}"
                table = ddl.full_name
                self._define(ddl)
            else:
                self._apply(
                    [
                        TransactionPart(item.commit_ts, item.position, item.runs)
                        for item in items
                        if isinstance(item, Transaction)
                    ]
                )
        except Exception as error:
            self._fail(error, doing, table)
        self._reached = batch.checkpoint

    def flush(self) -> Checkpoint | None:
        try:
            self._commit()
            if self.syncpoint_is_due:
                self._record_syncpoint()
        except Exception as error:
            self._fail(error, "committing")
        return self._durable

    @property
    def syncpoint_is_due(self) -> bool:
        return self._syncpoints is not None and self._syncpoints.is_due

    def _record_syncpoint(self) -> None:
        if self._syncpoints is not None and self._durable is not None and not self._writing:
            self._syncpoints.record(self._durable)

    def close(self) -> None:
        self._connected = self._writing = self._is_tidied = self._is_unmoved = False
        self._reached = None
        if self._letters is not None:
            self._letters.rolled_back()
        self._database.close()

    def _begin(self) -> None:
        if not self._writing:
            self._database.begin()
            self._writing = True
            self._check_unmoved()

    def _check_unmoved(self) -> None:
        """Raise Retryable if a commit of an earlier connection, which had no answer, came after `open`.

        Checked once a connection, in its first transaction: no such commit can come once that has the row.
        """
        if not self._is_unmoved:
            self._is_unmoved = True
            if self._database.load_checkpoint(locked=True) != self._stored:
                raise Retryable(f"{self.target}: a commit of an earlier connection came late")

    def _commit(self) -> None:
        """End the SQL transaction, unless a transaction of the source is still open in it."""
        reached, durable = self._reached, self._durable
        if reached is None or (durable is not None and durable.includes(reached)):
            return
        self._save(reached)

    def _save(self, reached: Checkpoint) -> None:
        """Store the checkpoint in the open SQL transaction, or in one of its own, and end it."""
        self._check_owner(reached)
        self._begin()
        text = encode_checkpoint(reached)
        previous = None if self._durable is None else self._durable.ts
        if not self._database.save_checkpoint(previous, reached.ts, text):
            raise SinkError(
                f"{self.target}: the checkpoint of feed {self._database.feed!r} was moved by somebody else; "
                "is the same feed running twice?"
            )
        self._stored = text
        self._written.add(text)
        if self._store is not None and self._records:
            kept = [] if previous is None else [one for one in self._records if one.last > reached.ts]
            self._store.forget([one.first for one in self._records if one not in kept])
            self._records = kept
        if self._letters is not None and len(self._letters.keys):
            self._letters.refresh()
        reach("sink.before_commit")
        self._end()
        self._durable = reached
        self._written = {text}
        self.after_start.passed(reached.ts)
        reach("sink.committed")

    def _check_owner(self, reached: Checkpoint) -> None:
        """Raise SinkError if a new owner, which doesn't read the records, would repeat transactions."""
        durable = self._durable
        if durable is None or reached.owner in (None, durable.owner):
            return
        if repeated := sum(ts > durable.ts for ts in self.applied):
            raise SinkError(
                f"{self.target}: {repeated} of the transactions after the checkpoint of feed "
                f"{self._database.feed!r} are here already, applied by parallel workers before they ended: "
                'run the feed once with engine = "local" until it has stopped by itself or by a signal, '
                "without an error, then with Spark"
            )

    def _end(self) -> None:
        self._database.commit()
        self._writing = False
        if self._letters is not None:
            self._letters.committed()

    def has_table(self, schema: str, table: str) -> bool:
        if not self._connected:
            self.open()
        try:
            return self._database.tables.columns(Table(schema, table, ())) is not None
        except Exception as error:
            self._fail(error, f"looking for {schema}.{table}")

    # --- rows

    def _apply(self, parts: list[TransactionPart]) -> None:
        if not any(part.runs for part in parts):
            return
        self._begin()
        self._database.savepoint()
        self._applier.apply(parts)

    # --- tables

    def _define(self, ddl: Ddl) -> None:
        if self._reached is not None:
            self._commit()
        if not self._database.tables.ddl_commits:
            self._begin()
        elif self._writing:
            raise InvariantViolated(f"a DDL came after rows of its own transaction: {ddl.query}")
        if not self._is_tidied:
            self._database.tables.undo_creation()
            self._is_tidied = True
        with about(ddl.full_name):
            if ddl.shared is None:
                self._definitions.change(ddl)
                return
            with self._database.tables.defining(ddl.schema, ddl.table):
                self._definitions.change(ddl)

    # --- errors

    def _fail(self, error: Exception, doing: str, table: str = "") -> NoReturn:
        """Roll back, and raise the error as one of tidemill's; a statement was about `table`, if there is
        one."""
        failure = self._applier.failure(error, doing, table)
        self.close()
        if failure is error:
            raise error
        raise failure from error
