"""The source's clients: transactions and schema changes of an emulated database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, Protocol

from ...emulator import Rejected
from ...events import Row, Ts
from .plan import Plan, Step
from .scheduler import Scheduler
from .truth import Change, State, TableState, Truth

SCHEMA: Final = "sim"
LOG: Final = f"{SCHEMA}.log"
KEYS: Final = 16
TEXT_KEYS: Final = ("b0", "B1", "b2", "B3")
"""Keys in the order of a collation that holds both cases of a letter for equal, which code points haven't."""
WIDE: Final = 5_000
"""Characters of a wide value."""
TABLES: Final = {
    f"{SCHEMA}.item": ("id int primary key, name varchar(20), n bigint", ("id", "name", "n")),
    f"{SCHEMA}.pair": (
        "a int, b varchar(10), v int, primary key (a, b) clustered",
        ("a", "b", "v"),
    ),
    f"{SCHEMA}.other": ("id bigint primary key, note varchar(40)", ("id", "note")),
}


class Transaction(Protocol):
    """An open transaction of an emulated database."""

    def get(self, name: str, key: Any) -> Row | None: ...
    def insert(self, name: str, row: Mapping[str, object] | Sequence[object]) -> Any: ...
    def update(self, name: str, key: Any, values: Mapping[str, object]) -> Row: ...
    def delete(self, name: str, key: Any) -> object: ...


class Database(Protocol):
    """The part of an emulated database that writers use. Raises Rejected or ValueError."""

    name: str

    def execute(self, statement: str) -> Ts:
        """Change definitions; return when."""
        ...

    def begin(self, word: str, random: Random) -> Any: ...

    def commit(self, txn: Any) -> Ts:
        """Return the ts of the commit, 0 if the client died before it."""
        ...


class Writers:
    """Commits transactions and notes them in the truth. To be used in fibers of the world."""

    def __init__(
        self,
        database: Database,
        plan: Plan,
        scheduler: Scheduler,
        truth: Truth,
        note: Callable[[str, str], None],
    ) -> None:
        self._database = database
        self._filling = "." * WIDE if plan.is_wide else ""
        self._in_order = plan.source == "binlog"
        self._scheduler = scheduler
        self._truth = truth
        self._note = note
        self._running = 0
        """Open transactions: a schema change waits for them, as in TiDB."""
        self._altering = False
        self._number = 0
        self._tables: State = {}

    def create(self, count: int, rows: int, random: Random) -> None:
        """Create the tables, with rows."""
        self._database.execute(f"create database {SCHEMA}")
        for name, (columns, names) in list(TABLES.items())[:count]:
            self._create(name, columns, names)
        self._create(LOG, "note text", ("note",))
        for _ in range(rows):
            self._transact("write", random, rows=3)

    def _create(self, name: str, columns: str, names: tuple[str, ...]) -> None:
        ts = self._database.execute(f"create table {name} ({columns})")

        def alter(state: State) -> None:
            state[name] = TableState(names, {})

        self._commit_ddl(ts, f"create table {name}", alter)

    def _commit_ddl(self, ts: Ts, text: str, alter: Callable[[State], None]) -> None:
        alter(self._tables)
        self._truth.commit(Change(ts, text, alter=alter))
        self._note(self._database.name, f"{text}, at {ts}")

    @property
    def tables(self) -> list[str]:
        """The names of the tables, in order."""
        return sorted(self._tables)

    # --- transactions ----------------------------------------------------------------------------

    def write(self, step: Step) -> None:
        self._scheduler.wait(lambda: not self._altering)
        self._transact(step.word, Random(step.seed))

    def _transact(self, word: str, random: Random, rows: int = 0) -> None:
        self._running += 1
        self._number += 1
        name = f"t{self._number}"
        try:
            self._commit(word, random, rows or random.randint(1, 4), name)
        except (Rejected, ValueError) as error:
            self._note(self._database.name, f"{word} {name} was refused: {_reason(error)}")
        finally:
            self._running -= 1

    def _commit(self, word: str, random: Random, rows: int, name: str) -> None:
        txn = self._database.begin(word, random)
        changes: list[tuple[str, Any, Row | None]] = []
        told = []
        row = (name + self._filling,)
        # A binlog keeps the order of a transaction's rows: a part of it may have the row without a key.
        is_first = self._in_order and random.random() < 0.5
        if is_first:
            changes.append((LOG, txn.insert(LOG, row), row))
        for _ in range(rows):
            table = random.choice(sorted(self._tables.keys() - {LOG}))
            told.append(self._change(txn, table, random, name, changes))
        if not is_first:
            changes.append((LOG, txn.insert(LOG, row), row))
        if commit_ts := self._database.commit(txn):
            text = f"{name}: {'; '.join(told)}"
            self._truth.commit(Change(commit_ts, text, tuple(changes)))
            self._note(self._database.name, f"{word} {text}, committed at {commit_ts}")
        else:
            self._note(self._database.name, f"{word} {name} left its locks, and isn't committed")

    def _change(
        self,
        txn: Transaction,
        table: str,
        random: Random,
        name: str,
        changes: list[tuple[str, Any, Row | None]],
    ) -> str:
        columns = self._tables[table].columns
        number = random.randrange(KEYS)
        pair = table.endswith("pair")
        key: Any = (number % 4, TEXT_KEYS[number // 4]) if pair else number
        width = 2 if pair else 1
        short = table.partition(".")[2]
        before = txn.get(table, key)
        if before is not None and random.random() < 0.3:
            txn.delete(table, key)
            changes.append((table, key, None))
            return f"delete {short} {key}"
        values = {column: self._value(column, random, name) for column in columns[width:]}
        if before is None:
            keys = dict(zip(columns, key if pair else (key,), strict=False))
            txn.insert(table, {**keys, **values})
            row = txn.get(table, key)
        else:
            row = txn.update(table, key, values)
        changes.append((table, key, row))
        return f"{'insert' if before is None else 'update'} {short} {row}"

    def _value(self, column: str, random: Random, name: str) -> object:
        if column in ("name", "note"):
            return random.choice((None, name, f"{name}-{random.randrange(100)}"))
        number = random.randrange(1000)
        return number if column.startswith("d") else random.choice((None, number))

    # --- schema changes --------------------------------------------------------------------------

    def alter(self, step: Step) -> None:
        self._scheduler.wait(lambda: not self._altering)
        self._altering = True
        try:
            self._scheduler.wait(lambda: not self._running)
            self._alter(Random(step.seed))
        except (Rejected, ValueError) as error:
            self._note(self._database.name, f"a schema change was refused: {_reason(error)}")
        finally:
            self._altering = False

    def _alter(self, random: Random) -> None:
        self._number += 1
        table = random.choice(sorted(self._tables.keys() - {LOG}))
        columns = self._tables[table].columns
        added = [column for column in columns if column.startswith(("c", "d"))]
        match random.choice(("add", "add", "drop", "create", "truncate", "rename")):
            case "add":
                default = random.choice((None, 7))
                column = f"{'c' if default is None else 'd'}{self._number}"
                clause = "int" if default is None else f"int not null default {default}"
                text = f"alter table {table} add column {column} {clause}"
                self._execute(text, lambda state: _add(state, table, column, default))
            case "drop" if added:
                column = random.choice(added)
                text = f"alter table {table} drop column {column}"
                self._execute(text, lambda state: _drop(state, table, column))
            case "truncate":
                self._execute(f"truncate table {table}", lambda state: state[table].rows.clear())
            case "rename":
                new = f"{SCHEMA}.r{self._number}"
                self._execute(f"rename table {table} to {new}", lambda state: _rename(state, table, new))
            case _:
                new = f"{SCHEMA}.n{self._number}"
                self._create(new, "id int primary key, n int", ("id", "n"))

    def _execute(self, text: str, alter: Callable[[State], None]) -> None:
        self._commit_ddl(self._database.execute(text), text, alter)


def _reason(error: Rejected | ValueError) -> str:
    return "a conflict with another transaction" if isinstance(error, Rejected) else str(error)


def _add(state: State, table: str, column: str, default: int | None) -> None:
    before = state[table]
    state[table] = TableState(
        (*before.columns, column), {key: (*row, default) for key, row in before.rows.items()}
    )


def _drop(state: State, table: str, column: str) -> None:
    before = state[table]
    at = before.columns.index(column)
    state[table] = TableState(
        (*before.columns[:at], *before.columns[at + 1 :]),
        {key: (*row[:at], *row[at + 1 :]) for key, row in before.rows.items()},
    )


def _rename(state: State, table: str, new: str) -> None:
    state[new] = state.pop(table)
