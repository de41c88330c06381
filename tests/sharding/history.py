"""Random histories of shards, and the rows that their merged table must have at the end.

Each shard makes the same schema changes, when it likes. Shards of the two sources have the same names. The
model is a plain function: the union of the shards' rows, each brought to the last definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from tidemill.events import (
    WHOLE,
    Action,
    AddColumn,
    ChangeColumn,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    Item,
    Row,
    RowChange,
    Table,
    Transaction,
    TruncateTable,
    altered,
)

SOURCES = ("a", "b")
START = (Column("id", "int", nullable=False), Column("n", "int"))
PLAIN = Table("app", "plain", (Column("id", "int", nullable=False),), (0,), source_name="a")
TARGET = "all.item"
ROUTE = {"tables": ["app_*.item_*"], "target": TARGET}


def text_column(name: str, default: str) -> Column:
    return Column(
        name, "varchar", length=20, charset="utf8mb4", collation="utf8mb4_bin", default=f"'{default}'"
    )


AGAIN = AddColumn(text_column("a", "again")), AddColumn(Column("c", "int"))
CHANGES: list[tuple[str, tuple[Action, ...], Any]] = [
    ("ADD COLUMN a INT DEFAULT 7", (AddColumn(Column("a", "int", default="7")),), 7),
    ("ADD COLUMN b VARCHAR(20) DEFAULT 'b'", (AddColumn(text_column("b", "b")),), "b"),
    (
        "MODIFY a BIGINT",
        (ChangeColumn("a", Column("a", "bigint", default="7"), Column("a", "int", default="7")),),
        None,
    ),
    ("DROP COLUMN a", (DropColumn("a"),), None),
    ("ADD COLUMN a VARCHAR(20) DEFAULT 'again', ADD COLUMN c INT", AGAIN, "again"),
    ("DROP COLUMN b", (DropColumn("b"),), None),
]  # fmt: skip


class Member:
    """A shard: its definition, its rows by id, and the number of schema changes it has made."""

    def __init__(self, source: str, schema: str, name: str) -> None:
        self.source = source
        self.table = Table(schema, name, START, (0,), source_name=source)
        self.rows: dict[int, dict[str, Any]] = {}
        self.made = 0

    def make(self) -> tuple[str, tuple[Action, ...]]:
        text, actions, value = CHANGES[self.made]
        self.made += 1
        self.table = altered(self.table, actions)
        for row in self.rows.values():
            changed(row, actions, value)
        return f"ALTER TABLE {self.table.full_name} {text}", actions

    def as_row(self, values: dict[str, Any]) -> Row:
        return tuple(values[column.name] for column in self.table.columns)


def changed(row: dict[str, Any], actions: tuple[Action, ...], value: Any) -> None:
    for number, action in enumerate(actions):
        match action:
            case AddColumn(column):
                row[column.name] = value if number == 0 else None
            case DropColumn(name):
                del row[name]


class History:
    """Items of two sources in commit order, at ts 10, 20, …"""

    def __init__(
        self,
        seed: int,
        *,
        steps: int = 60,
        joins: bool = True,
        differ: bool = False,
        ends: bool = False,
        changes: int = len(CHANGES),
    ) -> None:
        """With `ends`, each source's snapshot has an end of its own. With `differ`, shards change as the
        optimistic mode allows it. Each makes at most `changes`."""
        self._changes = changes
        self._differ = differ
        self._rng = Random(seed)
        self._ts = 0
        self._ids = 0
        self._joins = joins
        self.items: list[Item] = []
        self.members: list[Member] = []
        self.left: list[Member] = []
        """Shards that were dropped or truncated, with the rows that stay in the merged table."""
        self.plain: list[int] = []
        self.states: list[str] = []
        rng = self._rng
        for source in SOURCES:
            for number in range(rng.randint(1, 3)):
                self._create(source, number, loads=True)
        for member in self.members:
            self._load(member)
        for source in SOURCES if ends else SOURCES[:1]:
            self.items.append(Transaction(self._next(source), 0, source, [], str(self._ts), chunk=Chunk("")))
        for _ in range(steps):
            self._step()
        last = max(one.made for one in [*self.members, *self.left])
        for made in range(last):  # so that everything is resolved at the end
            for member in self.members:
                if member.made == made:
                    self._alter(member)
                    self._write(member)
        self._write_plain()

    def expected(self) -> set[tuple[Any, ...]]:
        """Return the merged table's rows: by column names, in the order of the names."""
        last = max(one.made for one in [*self.members, *self.left])
        for member in self.left:
            while member.made < last:
                member.make()
        rows = [row for member in [*self.members, *self.left] for row in member.rows.values()]
        return {tuple(row[name] for name in sorted(row)) for row in rows}

    # --- steps

    def _step(self) -> None:
        rng, members = self._rng, self.members
        match rng.randrange(20):
            case 0 | 1 | 2 if members:
                member = rng.choice(members)
                if member.made < self._changes and self._may_change(member):
                    self._alter(member)
            case 3 if self._joins and rng.random() < 0.3:
                if len({member.made for member in members}) == 1 and members[0].made == 0:
                    self._create(rng.choice(list(SOURCES)), len(self.items), loads=False)
            case 4 if self._joins and not self._differ and len(members) > 2 and rng.random() < 0.5:
                self._drop(rng.choice(members))
            case 5 if self._joins and members and rng.random() < 0.3:
                self._truncate(rng.choice(members))
            case 6 | 7:
                self._write_plain()
            case _:
                if members:
                    some = rng.sample(members, min(len(members), rng.choice([1, 1, 1, 2])))
                    self._write(*[one for one in some if one.source == some[0].source])

    def _may_change(self, member: Member) -> bool:
        """Return False for a column that is dropped, and not everywhere: it can't be added again."""
        return not self._differ or member.made != 4 or all(one.made >= 4 for one in self.members)

    def _next(self, source: str) -> int:
        """Return the next ts in the source's lane."""
        self._ts += 10
        return self._ts + SOURCES.index(source)

    def _ddl(self, source: str, table: Table, query: str, *actions: Action) -> None:
        ts = self._next(source)
        self.items.append(
            Ddl(
                ts,
                ts,
                source,
                table.schema,
                table.name,
                query,
                actions,
                str(ts),
                logged_at=f"log:{ts}",
                source_name=source,
            )
        )

    def _create(self, source: str, number: int, *, loads: bool) -> None:
        member = Member(source, "app_1", f"item_{number}")
        self.members.append(member)
        query = "" if loads else f"CREATE TABLE {member.table.full_name} (…)"
        self._ddl(source, member.table, query, CreateTable(member.table))

    def _load(self, member: Member) -> None:
        ts = self._next(member.source)
        rows = []
        for _ in range(self._rng.randint(0, 3)):
            self._ids += 1
            row = {"id": self._ids, "n": self._ids}
            member.rows[self._ids] = row
            rows.append(RowChange(ts, ts, member.table, "insert", None, member.as_row(row)))
        chunk = Chunk(member.table.origin_name, WHOLE)
        self.items.append(Transaction(ts, ts, member.source, rows, str(ts), chunk=chunk))

    def _alter(self, member: Member) -> None:
        before = member.table
        query, actions = member.make()
        self._ddl(member.source, before, query, *actions)

    def _drop(self, member: Member) -> None:
        self.members.remove(member)
        self.left.append(member)
        self._ddl(member.source, member.table, f"DROP TABLE {member.table.full_name}", DropTable())

    def _truncate(self, member: Member) -> None:
        gone = Member(member.source, member.table.schema, member.table.name)
        gone.rows, member.rows = member.rows, {}
        gone.made, gone.table = member.made, member.table
        self.left.append(gone)
        self._ddl(member.source, member.table, f"TRUNCATE {member.table.full_name}", TruncateTable())

    def _write(self, *members: Member) -> None:
        source = members[0].source
        ts, changes = self._next(source), []
        for member in members:
            for _ in range(self._rng.randint(1, 3)):
                changes += [*self._change(member, ts)]
        cut = self._rng.randrange(len(changes)) if self._rng.random() < 0.3 else 0
        if cut:
            self.items.append(Transaction(ts, ts, source, changes[:cut], last=False))
        self.items.append(Transaction(ts, ts, source, changes[cut:], str(ts)))

    def _change(self, member: Member, ts: int) -> Iterator[RowChange]:
        rng, table = self._rng, member.table
        kind = rng.choice(["insert", "insert", "update", "delete"]) if member.rows else "insert"
        if kind == "insert":
            self._ids += 1
            row = {column.name: self._value(column) for column in table.columns} | {"id": self._ids}
            member.rows[self._ids] = row
            yield RowChange(ts, ts, table, "insert", None, member.as_row(row))
            return
        key = rng.choice(list(member.rows))
        before = member.as_row(member.rows[key])
        if kind == "delete":
            del member.rows[key]
            yield RowChange(ts, ts, table, "delete", before, None)
            return
        column = rng.choice(table.columns[1:])
        member.rows[key][column.name] = self._value(column)
        yield RowChange(ts, ts, table, "update", before, member.as_row(member.rows[key]))

    def _value(self, column: Column) -> Any:
        number = self._rng.randrange(1000)
        return f"text {number}" if column.kind == "varchar" else number

    def _write_plain(self) -> None:
        ts = self._next("a")
        if not self.plain:
            self._ts += 10
            create = CreateTable(PLAIN)
            self.items.append(Ddl(ts, ts, "a", "app", "plain", "CREATE", (create,), str(ts), source_name="a"))
            ts = self._ts
        self.plain.append(ts)
        row = RowChange(ts, ts, PLAIN, "insert", None, (ts,))
        self.items.append(Transaction(ts, ts, "a", [row], str(ts)))
