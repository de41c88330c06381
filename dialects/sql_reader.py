"""Readers of SQL databases, but for the names, types and literals that each dialect adds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Final, Protocol

from ..codec.checkpoint import decode_checkpoint
from ..errors import CheckpointError, InvariantViolated, SinkError, TidemillError
from ..events import Checkpoint, Column, Kind, Row, Table, Ts
from .applied import Applied
from .database import CHECKPOINT_TABLE, difference
from .read import Key, Range, Settled, Summing
from .syncpoints import Syncpoint

KEYS: Final = 200
"""Maximum number of keys in one statement."""
PAGE_ROWS: Final = 5_000


class FeedReader(ABC):
    """The checkpoint of a feed in a target, and the columns of its tables."""

    summing: Summing | None = None
    begin_reading: ClassVar[str] = "BEGIN"
    """Statement that begins a transaction whose reads all see the same."""
    begin_writing: ClassVar[str] = "BEGIN"
    folds_names: ClassVar[bool] = True
    """True if names of columns are the same in any case."""

    def __init__(self, identity: str, feed: str) -> None:
        self.identity = identity
        self._feed = feed
        self._held: Checkpoint | None = None

    def meet(self, source: Summing | None) -> None:  # noqa: B027
        """Do nothing: rows are stored in one way."""

    def begin_script(self) -> list[str]:
        return []

    @abstractmethod
    def _rows(self, sql: str, *values: object) -> list[Row]:
        """Return the rows of a query. Raises TidemillError."""

    @abstractmethod
    def _run(self, statement: str) -> int:
        """Run a statement; return the number of its rows. Raises TidemillError."""

    # --- the checkpoint

    @abstractmethod
    def _load_checkpoint(self) -> str | None:
        """Return what the checkpoint table holds for the feed; None if nothing."""

    def checkpoint(self) -> Checkpoint | None:
        """Raises CheckpointError."""
        stored = self._load_checkpoint()
        where = f"{self.identity}, table {CHECKPOINT_TABLE}, feed {self._feed!r}"
        return None if stored is None else decode_checkpoint(stored, where)[0]

    @contextmanager
    def reading(self) -> Iterator[Checkpoint]:
        """Raises CheckpointError."""
        if self._held is not None:
            yield self._held
            return
        with self._view(None) as checkpoint:
            yield checkpoint

    @contextmanager
    def _view(self, past_ts: int | None) -> Iterator[Checkpoint]:
        begin, end = (self.begin_reading, "ROLLBACK") if past_ts is None else self._past(past_ts)
        self._run(begin)
        try:
            checkpoint = self.checkpoint()
            if checkpoint is None:
                raise CheckpointError(f"{self.identity}: the checkpoint of feed {self._feed!r} was removed")
            yield checkpoint
        finally:
            self._run(end)

    def _past(self, ts: int) -> tuple[str, str]:
        """Return the statements by which reads begin and end to see the database as of a ts."""
        raise InvariantViolated(f"{self.identity}: rows can't be read as of {ts}")

    @contextmanager
    def holding(self, past_ts: int | None = None) -> Iterator[Checkpoint]:
        """Raises CheckpointError."""
        with self._view(past_ts) as checkpoint:
            self._held = checkpoint
            try:
                yield checkpoint
            finally:
                self._held = None

    def ahead(self, checkpoint: Checkpoint) -> Ts | None:
        last = max((one.last for one in self._applied()), default=0)
        return last if last > checkpoint.ts else None

    def _applied(self) -> Sequence[Applied]:
        """Return the records of transactions that parallel workers have applied."""
        return ()

    def last_syncpoint(self) -> Syncpoint | None:
        return None

    # --- columns

    @abstractmethod
    def _columns(self, table: Table) -> Mapping[str, str]:
        """Return the types of the table's columns here by name, in order; none if there is no such table."""

    @abstractmethod
    def _types(self, table: Table) -> Sequence[str]:
        """Return the types that the columns of a table of the source have here."""

    def differs(self, table: Table) -> str | None:
        have = self._columns(table)
        if not have:
            return None
        wanted = zip([column.name for column in table.columns], self._types(table), strict=True)
        return difference(have, {name: have.get(name, type_) for name, type_ in wanted})

    def common(self, table: Table) -> list[str]:
        fold: Callable[[str], str] = str.lower if self.folds_names else str
        have = {fold(name) for name in self._columns(table)}
        return [column.name for column in table.columns if fold(column.name) in have]

    # --- repair

    @abstractmethod
    def repair(self, table: Table, difference: Settled) -> list[str]: ...

    @abstractmethod
    def _present(self, table: Table, key: Key) -> object:
        """Return the row with this key, or the number of such rows, locked."""

    def _begin_writing(self) -> None:
        self._run(self.begin_writing)

    def apply(self, table: Table, difference: Settled) -> bool:
        self._begin_writing()
        is_done = False
        try:
            if self._present(table, difference.key) != difference.target:
                return False
            if not all(self._run(statement) for statement in self.repair(table, difference)):
                return False
            self._run("COMMIT")
            is_done = True
            return True
        finally:
            if not is_done:
                self._run("ROLLBACK")


class SqlReader(FeedReader):
    """A reader of rows by their keys, which the database compares as tuples: `(a, b) > (1, 2)`."""

    sorted_kinds: ClassVar[frozenset[Kind]]
    """Kinds whose stored values sort as in the source."""
    row_id: ClassVar[str] = "rowid"
    """Column by which one of several equal rows is told from the others."""
    lock: ClassVar[str] = ""
    """End of a SELECT that locks its rows."""
    values_word: ClassVar[str] = "VALUES "
    """Begin of a list of tuples after IN."""

    @abstractmethod
    def _qualified(self, table: Table) -> str:
        """Return the quoted name of a table here."""

    @abstractmethod
    def _name(self, identifier: str) -> str:
        """Return a quoted name."""

    @abstractmethod
    def _literal(self, column: Column, value: object) -> str:
        """Return a stored value as SQL text of its column's type."""

    @abstractmethod
    def _equals(self, column: Column, value: object) -> str:
        """Return the condition that a column has exactly this stored value, or NULL."""

    @abstractmethod
    def _source_form(self, column: Column) -> Callable[[object], object]:
        """Return the function from a stored value to the source's."""

    @abstractmethod
    def _pages(self, query: str) -> Iterator[list[Row]]:
        """Yield the rows of a query of any size."""

    def _value(self, column: Column) -> str:
        """Return an expression of a column from which each value can be told."""
        return self._name(column.name)

    def _mark(self, column: Column) -> str:  # noqa: ARG002
        """Return the expression of a stored value's parameter."""
        return "?"

    def _bound(self, table: Table, key: Key) -> tuple[str, Sequence[object]]:
        """Return a key as SQL, and the parameters in it."""
        return f"({','.join(self._mark(table.columns[i]) for i in table.key)})", key

    def _converted(self, table: Table, rows: list[Any]) -> list[Row]:  # noqa: ARG002
        """Return the stored rows for those of the driver."""
        return rows

    def sorts_as(self, table: Table, source: Summing | None) -> bool:  # noqa: ARG002
        return all(self._is_sorted(table.columns[i]) for i in table.key)

    def _is_sorted(self, column: Column) -> bool:
        return column.kind in self.sorted_kinds

    # --- rows

    def source_keys(self, table: Table, keys: Sequence[Key]) -> list[Key]:
        convert = [self._source_form(table.columns[i]) for i in table.key]
        converted = []
        for key in keys:
            with suppress(ValueError, TypeError, AttributeError, ArithmeticError):  # not a value of this kind
                converted.append(tuple([to(value) for to, value in zip(convert, key, strict=True)]))
        return converted

    def _select(self, table: Table, rest: str) -> str:
        return f"SELECT {','.join(map(self._value, table.columns))} FROM {self._qualified(table)} {rest}"

    def _read(self, table: Table, rest: str, *values: Any) -> list[Row]:
        return self._converted(table, self._rows(self._select(table, rest), *values))

    def _key(self, table: Table) -> str:
        return ",".join(self._name(table.columns[i].name) for i in table.key)

    def between(self, table: Table, within: Range, limit: int) -> Iterator[list[Row]]:
        key = self._key(table)
        after, upto = within
        while True:
            conditions, values = list[str](), list[object]()
            for sign, bound in (">", after), ("<=", upto):
                if bound is not None:
                    text, parameters = self._bound(table, bound)
                    conditions.append(f"({key}) {sign} {text}")
                    values += parameters
            where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
            rows = self._read(table, f"{where} ORDER BY {key} LIMIT {limit}", *values)
            yield rows
            if len(rows) < limit:
                return
            after = tuple([rows[-1][i] for i in table.key])

    def rows_of(self, table: Table, keys: Sequence[Key], suffix: str = "") -> list[Row]:
        stored: list[Row] = []
        for first in range(0, len(keys), KEYS):
            bounds = [self._bound(table, key) for key in keys[first : first + KEYS]]
            among = ",".join(text for text, _ in bounds)
            values = [value for _, parameters in bounds for value in parameters]
            rest = f"WHERE ({self._key(table)}) IN ({self.values_word}{among}) {suffix}"
            stored += self._read(table, rest, *values)
        return stored

    def every(self, table: Table) -> Iterator[list[Row]]:
        for rows in self._pages(self._select(table, "")):
            yield self._converted(table, rows)

    # --- repair

    def repair(self, table: Table, difference: Settled) -> list[str]:
        into = self._qualified(table)
        if not table.key:
            more = difference.source - difference.target
            if more > 0:
                return [self._insert(table, difference.key)] * more
            same = self._same(table, difference.key)
            return [
                f"DELETE FROM {into} WHERE {self.row_id} IN "
                f"(SELECT {self.row_id} FROM {into} WHERE {same} LIMIT {-more})"
            ]
        if difference.target is None:
            return [self._insert(table, difference.source)]
        where = self._of_key(table, difference.key)
        if difference.source is None:
            return [f"DELETE FROM {into} WHERE {where}"]
        changed = ", ".join(
            f"{self._name(column.name)}={self._literal(column, ours)}"
            for column, ours, theirs in zip(table.columns, difference.source, difference.target, strict=True)
            if ours != theirs
        )
        return [f"UPDATE {into} SET {changed} WHERE {where}"]

    def _insert(self, table: Table, row: Row) -> str:
        names = ", ".join(self._name(column.name) for column in table.columns)
        values = ", ".join(map(self._literal, table.columns, row))
        return f"INSERT INTO {self._qualified(table)} ({names}) VALUES ({values})"

    def _same(self, table: Table, row: Row) -> str:
        """Return the condition that a row is exactly this one."""
        return " AND ".join(map(self._equals, table.columns, row))

    def _of_key(self, table: Table, key: Key) -> str:
        """Return the condition that a row has this key."""
        return " AND ".join(map(self._equals, [table.columns[i] for i in table.key], key))

    def _present(self, table: Table, key: Key) -> object:
        if not table.key:
            same = self._same(table, key)
            return len(self._rows(f"SELECT 1 FROM {self._qualified(table)} WHERE {same} {self.lock}"))
        rows = self.rows_of(table, [key], self.lock)
        return rows[0] if rows else None


class Cursor(Protocol):
    def fetchmany(self, size: int, /) -> list[Row]: ...


def fetched(rows: Cursor) -> Iterator[list[Row]]:
    """Yield the rest of a query's rows in pages."""
    while page := rows.fetchmany(PAGE_ROWS):
        yield page


class Explaining(Protocol):
    def explain(self, error: Exception, doing: str, /) -> Exception | None: ...


@contextmanager
def explained(session: Explaining) -> Iterator[None]:
    """Raise errors of the session's driver as SinkError, or as another TidemillError where one fits."""
    try:
        yield
    except TidemillError:
        raise
    except Exception as error:
        explanation = session.explain(error, "comparing")
        if explanation is None:
            raise
        raise (
            explanation if isinstance(explanation, TidemillError) else SinkError(str(explanation))
        ) from error
