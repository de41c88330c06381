"""A sink for SQL databases, exactly once: the checkpoint is written in the same SQL transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from ...codec.checkpoint import decode_checkpoint, encode_checkpoint
from ...errors import InvariantViolated, SinkError, TidemillError
from ...events import (
    Batch,
    Checkpoint,
    CreateTable,
    Ddl,
    DropTable,
    RenameTables,
    RowChange,
    Run,
    Table,
    Transaction,
    runs_of,
)
from ...failpoint import reach
from ..resume_filter import lacking
from .groups import cut_groups
from .target import (
    CHECKPOINT_TABLE,
    MISSING,
    StatementRejected,
    Target,
    describe,
    describe_differences,
    difference,
)


class SqlSink:
    """Applies batches to one database, each row event as exactly one INSERT, UPDATE or DELETE.

    Similar changes share a statement. If the database rejects such a group, its changes are applied one by
    one: that identifies the rejected row, or succeeds if only the combination was rejected.
    """

    reads_rows = True

    def __init__(self, name: str, target: Target) -> None:
        self.name = name
        self.target = target.identity
        self._database = target
        self._connected = False
        self._durable: Checkpoint | None = None
        self._reached: Checkpoint | None = None  # of the written batches; None inside a transaction
        self._writing = False  # True while a SQL transaction is open
        self._sources: dict[str, str] = {}  # source's table by its name in the target

    def open(self) -> Checkpoint | None:
        where = f"{self.target}, table {CHECKPOINT_TABLE}, feed {self._database.feed!r}"
        try:
            self._database.connect()
            text = self._database.load_checkpoint()
            self._durable = None if text is None else decode_checkpoint(text, where)[0]
        except Exception as error:
            self._fail(error, "connecting")
        self._connected = True
        return self._durable

    def write(self, batch: Batch) -> None:
        if not self._connected:
            self.open()
        # After a commit whose response was lost, the target has more than this sink knew.
        items = batch.items if self._durable is None else lacking(self._durable, batch.items)
        doing = "writing"
        try:
            if items and isinstance(ddl := items[0], Ddl):
                doing = f"following {ddl.query!r}" if ddl.query else f"creating {ddl.full_name}"
                self._define(ddl)
            else:
                self._apply([run for item in items if isinstance(item, Transaction) for run in item.runs])
        except Exception as error:
            self._fail(error, doing)
        self._reached = batch.checkpoint

    def flush(self) -> Checkpoint | None:
        try:
            self._commit()
        except Exception as error:
            self._fail(error, "committing")
        return self._durable

    def close(self) -> None:
        self._connected = self._writing = False
        self._reached = None
        self._database.close()

    def _begin(self) -> None:
        if not self._writing:
            self._database.begin()
            self._writing = True

    def _commit(self) -> None:
        """End the SQL transaction, unless a transaction of the source is still open in it."""
        reached, durable = self._reached, self._durable
        if reached is None or (durable is not None and durable.includes(reached)):
            return
        self._save(reached)

    def _save(self, reached: Checkpoint) -> None:
        """Store the checkpoint in the open SQL transaction, or in one of its own, and end it."""
        self._begin()
        text = encode_checkpoint(reached)
        previous = None if self._durable is None else self._durable.ts
        if not self._database.save_checkpoint(previous, reached.ts, text):
            raise SinkError(
                f"{self.target}: the checkpoint of feed {self._database.feed!r} was moved by somebody else; "
                "is the same feed running twice?"
            )
        reach("sink.before_commit")
        self._database.commit()
        self._writing = False
        self._durable = reached
        reach("sink.committed")

    def has_table(self, schema: str, table: str) -> bool:
        if not self._connected:
            self.open()
        try:
            return self._database.columns(Table(schema, table, ())) is not None
        except Exception as error:
            self._fail(error, f"looking for {schema}.{table}")

    # --- rows

    def _apply(self, runs: list[Run]) -> None:
        if not runs:
            return
        self._begin()
        self._database.savepoint()
        try:
            self._database.apply(cut_groups(runs, self._database.max_rows))
        except Exception as error:
            if not isinstance(self._explain(error, "writing"), StatementRejected):
                raise
            self._database.rollback_to_savepoint()
            self._apply_one_by_one(change for run in runs for change in run.changes())

    def _apply_one_by_one(self, changes: Iterable[RowChange]) -> None:
        for change in changes:
            try:
                self._database.apply(cut_groups(runs_of([change]), 1))
            except Exception as error:
                refused = self._explain(error, "writing")
                if not isinstance(refused, StatementRejected):
                    raise
                why = (str(refused) == MISSING and self._differences(change)) or refused
                raise SinkError(f"{self.target}: {change.op} of {describe(change)}: {why}") from error

    def _differences(self, change: RowChange) -> str:
        """Return the differences of the target's row; empty if it is the source's, or not there."""
        if change.before is None or not change.table.key:
            return ""
        here = self._database.compare(change)
        found = describe_differences(change, here) if here else ""
        return f"{found}; was the target changed by something else?" if found else ""

    # --- tables

    def _define(self, ddl: Ddl) -> None:
        if self._reached is not None:
            self._commit()
        if not self._database.ddl_commits:
            self._begin()
        elif self._writing:
            raise InvariantViolated(f"a DDL came after rows of its own transaction: {ddl.query}")
        match ddl.actions[0]:
            case CreateTable(table, replaces):
                self._create(table, replaces)
                return
            case DropTable():
                self._release(ddl.schema, ddl.table)
            case RenameTables(pairs):
                for old, _ in pairs:
                    self._release(*old)
                for _, new in pairs:
                    self._claim(*new)
        self._database.alter(ddl)

    def _create(self, table: Table, replaces: bool) -> None:
        name = self._claim(table.schema, table.name)
        if replaces:
            self._database.drop_table(table)
            reach("sink.altered")
        have, wanted = self._database.columns(table), self._database.wanted_columns(table)
        if have is None:
            self._database.create_table(table)
            reach("sink.altered")
        elif not self._database.is_empty(table):
            raise SinkError(
                f"{self.target}: {name} has rows already, and {table.full_name} is about to be loaded into "
                "it: remove the table, or name another target"
            )
        elif have != wanted:
            raise SinkError(
                f"{self.target}: table {name} is there, but differs from {table.full_name}: it "
                f"{difference(have, wanted)}: remove the table"
            )

    def _claim(self, schema: str, table: str) -> str:
        """Return the name of a table in the target. Raises SinkError if another table has it."""
        name, full_name = self._database.name_of(schema, table), f"{schema}.{table}"
        other = self._sources.setdefault(self._key(name), full_name)
        if other != full_name:
            raise SinkError(f"{self.target}: {other} and {full_name} would both be called {name}")
        return name

    def _release(self, schema: str, table: str) -> None:
        key = self._key(self._database.name_of(schema, table))
        if self._sources.get(key) == f"{schema}.{table}":
            del self._sources[key]

    def _key(self, name: str) -> str:
        return name.casefold() if self._database.folds_names else name

    # --- errors

    def _fail(self, error: Exception, doing: str) -> NoReturn:
        """Roll back, and raise the error as one of tidemill's."""
        explained = self._explain(error, doing)
        self.close()
        if isinstance(explained, StatementRejected):
            explained = SinkError(f"{self.target}: {doing}: {explained}")
        if explained is error:
            raise error
        raise explained from error

    def _explain(self, error: Exception, doing: str) -> Exception:
        if isinstance(error, (TidemillError, StatementRejected)):
            return error
        return self._database.explain(error, doing) or error
