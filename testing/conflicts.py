"""Seeded histories whose transactions conflict: few keys, unique values that rows exchange, keys that change,
rows without a key, foreign keys.

`python -m tidemill.testing.conflicts URL SEED COUNT WORKERS [ON_ERROR]` applies one, as a process that a test
kills.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing
from random import Random
from typing import Any, Final

from ..events import Chunk, Column, Item, Row, RowChange, Table
from ..sink import Delivery, DeliveryOptions, Sink, open_sink
from .changes import MemoryStore, create, delete, insert, transaction, update
from .progress import eventually

_TEXT: Final[dict[str, Any]] = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}
ITEMS: Final = Table(
    "shop",
    "items",
    (
        Column("id", "int", nullable=False),
        Column("code", "varchar", length=20, nullable=False, **_TEXT),
        Column("slot", "int"),
        Column("n", "int", nullable=False),
    ),
    key=(0,),
    **_TEXT,
)
LINES: Final = Table(
    "shop",
    "lines",
    (Column("id", "int", nullable=False), Column("item", "int"), Column("n", "int", nullable=False)),
    key=(0,),
)
NOTES: Final = Table("shop", "notes", (Column("n", "int"), Column("word", "varchar", length=20, **_TEXT)))
ACCOUNTS: Final = Table(
    "shop",
    "accounts",
    (Column("id", "int", nullable=False), Column("balance", "int", nullable=False), Column("version", "int")),
    key=(0,),
)
TABLES: Final = (ITEMS, LINES, NOTES, ACCOUNTS)
_IDS: Final = range(1, 13)
_SLOTS: Final = range(1, 9)
_CODES: Final = (
    "ab",
    "AB",
    "Ab ",
    "cd",
    "CD",
    "straße",
    "strasse",
    "é",
    "e",
    "x1",
    "x2",
    "x3",
    "x4",
    "x5",
    "x6",
)
_ACCOUNTS: Final = range(1, 9)
BALANCE: Final = 100 * len(_ACCOUNTS)
"""Sum of all balances, after every transaction."""
COPY: Final = (
    "CREATE TABLE items (id INT NOT NULL PRIMARY KEY, code VARCHAR(20) CHARACTER SET utf8mb4 COLLATE "
    "utf8mb4_general_ci NOT NULL UNIQUE, slot INT UNIQUE, n INT NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE `lines` (id INT NOT NULL PRIMARY KEY, item INT, n INT NOT NULL, "
    "FOREIGN KEY (item) REFERENCES items (id)) ENGINE=InnoDB",
    "CREATE TABLE notes (n INT, word VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci) "
    "ENGINE=InnoDB",
)
"""The tables that a target has before, with keys that the source's description doesn't have."""
POSTGRES_COPY: Final = (
    "CREATE SCHEMA shop",
    "CREATE TABLE shop.items (id int PRIMARY KEY, code varchar(20) NOT NULL UNIQUE, slot int UNIQUE, "
    "n int NOT NULL)",
    "CREATE TABLE shop.lines (id int PRIMARY KEY, item int REFERENCES shop.items (id) ON DELETE CASCADE "
    "ON UPDATE CASCADE, n int NOT NULL)",
    "CREATE TABLE shop.notes (n int, word varchar(20))",
)
POSTGRES_COUNTED: Final = (
    "CREATE TABLE counted (tbl text, op text)",
    "CREATE FUNCTION counts() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "INSERT INTO public.counted VALUES (TG_TABLE_NAME, lower(TG_OP)); RETURN NULL; END $$",
)
COUNTED: Final = "CREATE TABLE counted (tbl VARCHAR(20), op VARCHAR(6)) ENGINE=InnoDB"


def triggers(table: str) -> list[str]:
    """Return statements for triggers that count the changes of a table."""
    return [
        f"CREATE TRIGGER {table}_{op} AFTER {op} ON `{table}` FOR EACH ROW "
        f"INSERT INTO counted VALUES ('{table}', '{op}')"
        for op in ("insert", "update", "delete")
    ]


def postgres_trigger(table: str) -> str:
    return (
        f"CREATE TRIGGER counts AFTER INSERT OR UPDATE OR DELETE ON shop.{table} "
        "FOR EACH ROW EXECUTE FUNCTION counts()"
    )


class Conflicts:
    """A history, its final rows and its number of changes."""

    def __init__(self, seed: int, count: int) -> None:
        self._random = Random(seed)
        self._keyed: dict[str, dict[int, Row]] = {"items": {}, "lines": {}, "accounts": {}}
        self._notes: list[Row] = []
        self.counts: Counter[tuple[str, str]] = Counter()
        """Number of changes by table and operation."""
        self.items: list[Item] = [create(number, table) for number, table in enumerate(TABLES, 1)]
        self.items.append(transaction(5, chunk=Chunk("")))
        self._changes: list[RowChange] = []
        for account in _ACCOUNTS:
            self._put(ACCOUNTS, (account, 100, 0))
        self._end(6)
        for ts in range(7, 7 + count):
            for _ in range(self._random.choice((0, 1, 1, 1, 2, 4))):
                self._change()
            self._end(ts)

    def rows(self, table: Table) -> Counter[Row]:
        """Return the table's rows in the end."""
        return Counter(self._keyed[table.name].values() if table.key else self._notes)

    def _end(self, ts: int) -> None:
        changes, self._changes = self._changes, []
        self.counts.update((change.table.name, change.op) for change in changes)
        if len(changes) > 2 and self._random.random() < 0.2:
            self.items.append(transaction(ts, *changes[:2], last=False))
            changes = changes[2:]
        self.items.append(transaction(ts, *changes))

    def _change(self) -> None:
        items = self._keyed["items"]
        action = self._random.choice(
            (self._insert, self._item, self._item, self._note, self._line, self._pay)
        )
        if action == self._item and not items:
            action = self._insert
        action()

    def _insert(self) -> None:
        items = self._keyed["items"]
        free = [key for key in _IDS if key not in items]
        code = self._free_code()
        if free and code is not None:
            self._put(ITEMS, (self._random.choice(free), code, self._free_slot(), 0))

    def _item(self) -> None:
        """Change an item: its values, its key, the slots of two of them, or delete it."""
        items = self._keyed["items"]
        key, code, slot, n = row = self._random.choice(list(items.values()))
        match self._random.randrange(6):
            case 0:
                for line in [one for one in self._keyed["lines"].values() if one[1] == key]:
                    self._drop(LINES, line)
                self._drop(ITEMS, row)
            case 1:
                self._replace(ITEMS, row, (key, self._free_code() or code, slot, n + 1))
            case 2:
                self._replace(ITEMS, row, (key, code, self._free_slot(), n + 1))
            case 3:
                free = [one for one in _IDS if one not in items]
                if free and not any(one[1] == key for one in self._keyed["lines"].values()):
                    self._replace(ITEMS, row, (self._random.choice(free), code, slot, n + 1))
            case 4:
                other = self._random.choice(list(items.values()))
                if other != row:
                    self._replace(ITEMS, row, (key, code, None, n))
                    self._replace(ITEMS, other, (*other[:2], slot, other[3]))
                    self._replace(ITEMS, (key, code, None, n), (key, code, other[2], n + 1))
            case _:
                self._replace(ITEMS, row, (key, code, slot, n + 1))

    def _line(self) -> None:
        items, lines = self._keyed["items"], self._keyed["lines"]
        key = self._random.choice(_IDS)
        if (row := lines.get(key)) is not None:
            self._drop(LINES, row)
        elif items:
            self._put(LINES, (key, self._random.choice(list(items)), 1))

    def _note(self) -> None:
        row = (self._random.randrange(3), self._random.choice(("a", "A", None)))
        if self._notes and self._random.random() < 0.5:
            old = self._notes.pop(self._random.randrange(len(self._notes)))
            if self._random.random() < 0.5:
                self._changes.append(delete(NOTES, *old))
                return
            self._changes.append(update(NOTES, old, row))
        else:
            self._changes.append(insert(NOTES, *row))
        self._notes.append(row)

    def _pay(self) -> None:
        accounts = self._keyed["accounts"]
        one, two = self._random.sample(_ACCOUNTS, 2)
        for key, amount in (one, -1), (two, 1):
            row = accounts[key]
            self._replace(ACCOUNTS, row, (key, row[1] + amount, row[2] + 1))

    def _free_code(self) -> str | None:
        taken = {_weight(row[1]) for row in self._keyed["items"].values()}
        free = [code for code in _CODES if _weight(code) not in taken]
        return self._random.choice(free) if free else None

    def _free_slot(self) -> int | None:
        taken = {row[2] for row in self._keyed["items"].values()}
        free = [slot for slot in _SLOTS if slot not in taken]
        return self._random.choice(free) if free and self._random.random() < 0.8 else None

    def _put(self, table: Table, row: Row) -> None:
        self._keyed[table.name][row[0]] = row
        self._changes.append(insert(table, *row))

    def _drop(self, table: Table, row: Row) -> None:
        del self._keyed[table.name][row[0]]
        self._changes.append(delete(table, *row))

    def _replace(self, table: Table, old: Row, new: Row) -> None:
        del self._keyed[table.name][old[0]]
        self._keyed[table.name][new[0]] = new
        self._changes.append(update(table, old, new))


def _weight(code: str) -> str:
    """Return a text that is equal for codes that utf8mb4_general_ci calls equal."""
    return code.lower().rstrip().replace("é", "e").replace("ß", "s")


def deliver(sink: Sink, items: list[Item], seed: int = 0) -> None:
    """Deliver what the sink lacks of `items`, a few at a time, and wait until it is durable."""
    random = Random(seed)
    options = DeliveryOptions(max_rows=random.choice((2, 50)), rowless_seconds=0)
    with closing(sink):
        work = Delivery(sink, sink.open(), "src", options)
        first = 0
        while first < len(items):
            count = random.choice((1, 3, 20, 200))
            work.accept(items[first : first + count])
            work.run(0)
            first += count
        eventually(lambda: _reaches(work, items[-1].commit_ts))


def _reaches(work: Delivery, ts: int) -> bool:
    work.run(0)
    checkpoint = work.statistics().checkpoint
    return checkpoint is not None and checkpoint.ts >= ts


def main(url: str, seed: int, count: int, workers: int, on_error: str = "stop") -> None:
    options = {"workers": workers, "on_error": on_error}
    sink = open_sink("copy", url, feed="test", store=MemoryStore(), options=options)
    deliver(sink, Conflicts(seed, count).items, seed)


if __name__ == "__main__":
    seed, count, workers = map(int, sys.argv[2:5])
    main(sys.argv[1], seed, count, workers, *sys.argv[5:])
