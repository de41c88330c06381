"""Cases of a ShardStage, step by step: rows that pass, wait or fit, and changes that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.chain import Barrier, Keep, Lag, StageContext
from tidemill.errors import TidemillError
from tidemill.events import (
    AddColumn,
    ChangeColumn,
    Checkpoint,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    RenameTables,
    RowChange,
    Table,
    TablePosition,
    Transaction,
    TruncateTable,
    altered,
)
from tidemill.sharding import Routes, ShardStage, plan_unlock
from tidemill.testing.cases import Case, load, title

from .rules import sharding_options

CASES = load(Path(__file__).with_name("stage.txt"))
ID = Column("id", "int", nullable=False)


class Play:
    """Commands about shards a.x, a.y and b.z, which go into t.all; each is one transaction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.kept: dict[str, str] = {}
        self.settings: dict[str, object] = {}
        self.route: dict[str, object] = {"tables": ["[ab].[xyz]"], "target": "t.all"}
        self.sought = ""
        self.ts = 0
        self.seconds = 0.0
        self.tables: dict[str, Table] = {}
        self._stage: ShardStage | None = None
        self._passed = Checkpoint(0, "0", {}, "src")
        self._before: list[tuple[int, str, Table]] = []
        """Definitions before each change, with its ts."""
        self.requests = []

    @property
    def stage(self) -> ShardStage:
        if self._stage is None:
            options, rules = sharding_options(self.settings, [self.route])
            self._stage = ShardStage(options, Routes(rules), ("a", "b"))
            self._stage.open(
                StageContext(
                    feed="feed",
                    sink="copy",
                    checkpoint=self._passed,
                    now=lambda: self.seconds,
                    seek=self._seek,
                )
            )
        return self._stage

    def _seek(self, at: TablePosition) -> None:
        self.lines.append(f"  seek to {at.ts}")

    def run(self, command: str) -> None:
        self.lines.append(command)
        word, *rest = command.split(" ")
        try:
            getattr(self, f"do_{word}")(*rest)
        except TidemillError as error:
            self.lines.append(f"  {type(error).__name__}: {error}")

    def _apply(self, *items) -> None:
        for element in self.stage.apply(items):
            if isinstance(element, Keep):
                self.kept = {**self.kept, element.key: element.state}
            if (line := self._line(element)) is not None:
                self.lines.append(f"  {line}")

    def _line(self, element) -> str | None:
        match element:
            case Lag(table, at):
                return f"{table} {'has caught up' if at is None else f'lags at {at.ts}'}"
            case Keep() | Barrier():
                return None
            case Ddl():
                names = ", ".join(type(action).__name__ for action in element.actions) or element.refusal
                return f"{element.full_name}: {names} by {element.query or 'its snapshot'}"
            case Transaction():
                found = [f"{row.table.full_name} {row.before or ''}{row.after or ''}" for row in element.rows]
                return f"{element.commit_ts}: {', '.join(found)}" if found else None

    def _next(self, name: str) -> int:
        self.ts += 2
        return self.ts + name.startswith("b")

    def _ddl(self, name: str, query: str, *actions, **reasons: str) -> None:
        ts = self._next(name)
        schema, table = name.split(".")
        self._before.append((ts, name, self.tables[name]))
        self._apply(
            Ddl(ts, ts, "src", schema, table, query, actions, str(ts), logged_at=f"log:{ts}", **reasons)
        )

    # --- commands

    def do_restart(self, *settings: str) -> None:
        """From a checkpoint with everything that was kept; "key=value" are other settings."""
        for setting in settings:
            self.do_set(*setting.split("="))
        self._passed = Checkpoint(self.ts, str(self.ts), None, "src", stages=self.kept)
        self._stage = None

    def do_read_again(self, name: str, ts: str) -> None:
        """From a checkpoint in which a shard lags: its items after `ts` come again."""
        tables = {_origin(name): TablePosition(int(ts), ts)}
        self._passed = Checkpoint(self.ts, str(self.ts), None, "src", None, tables, stages=self.kept)
        self._stage = None
        self.ts = int(ts) - name.startswith("b")
        later = [made for at, changed, made in self._before if changed == name and at > int(ts)]
        self.tables[name] = later[0]

    def do_set(self, key: str, value: str) -> None:
        self.settings[key] = int(value) if value.isdigit() else value

    def do_extract(self, column: str, part: str) -> None:
        self.route["extract"] = [{"column": column, "part": part}]

    def do_create(self, name: str, *columns: str) -> None:
        schema, table = name.split(".")
        made = Table(schema, table, (ID, *(Column(one, "int") for one in columns)), (0,))
        self.tables[name] = made
        self._ddl(name, "" if self._passed.loading is not None else f"CREATE {name}", CreateTable(made))

    def do_loaded(self) -> None:
        self._passed = Checkpoint(0, "0", None, "src")
        ts = self._next("a")
        self._apply(Transaction(ts, ts, "src", [], str(ts), chunk=Chunk("")))

    def do_insert(self, *places: str) -> None:
        """Rows of one transaction: table and values, by commas."""
        ts = self._next(places[0])
        rows = []
        for name, values in zip(places[::2], places[1::2], strict=True):
            row = tuple(map(int, values.split(",")))
            rows.append(RowChange(ts, ts, self.tables[name], "insert", None, row))
        self._apply(Transaction(ts, ts, "src", rows, str(ts)))

    def do_add(self, name: str, column: str, kind: str = "int") -> None:
        made = {
            "int": Column(column, "int", default="7"),
            "timestamp": Column(column, "timestamp", default="current_timestamp()"),
            "datetime": Column(column, "datetime", default="7"),
        }[kind]
        action = AddColumn(made)
        self._ddl(name, f"ALTER {name} ADD {column}", action)
        self.tables[name] = altered(self.tables[name], (action,))

    def do_modify(self, name: str, column: str, kind: str) -> None:
        action = ChangeColumn(column, Column(column, kind))
        self._ddl(name, f"ALTER {name} MODIFY {column} {kind}", action)
        self.tables[name] = altered(self.tables[name], (action,))

    def do_drop_column(self, name: str, column: str) -> None:
        self._ddl(name, f"ALTER {name} DROP {column}", DropColumn(column))
        self.tables[name] = altered(self.tables[name], (DropColumn(column),))

    def do_drop(self, name: str) -> None:
        self._ddl(name, f"DROP {name}", DropTable())

    def do_truncate(self, name: str) -> None:
        self._ddl(name, f"TRUNCATE {name}", TruncateTable())

    def do_refuse(self, name: str) -> None:
        """A statement that can't be followed."""
        self._ddl(name, f"ALTER {name} SOMEHOW", refusal="refused")

    def do_reload(self, name: str) -> None:
        """A statement with an unknown effect."""
        self._ddl(name, f"ALTER {name} SOMEHOW", reload="its effect isn't known")

    def do_rename(self, old: str, new: str) -> None:
        pair = tuple(old.split(".")), tuple(new.split("."))
        self._ddl(old, f"RENAME {old} TO {new}", RenameTables((pair,)))

    def do_durable(self, *lags: str) -> None:
        """The target's checkpoint, with the positions of lagging tables: table=ts."""
        tables = {_origin(name): TablePosition(int(ts), ts) for name, ts in (lag.split("=") for lag in lags)}
        checkpoint = Checkpoint(self.ts, str(self.ts), None, "src", None, tables)
        for element in self.stage.durable(checkpoint):
            if (line := self._line(element)) is not None:
                self.lines.append(f"  {line}")

    def do_pass(self, seconds: str) -> None:
        self.seconds += float(seconds)

    def do_unlock(self, *words: str) -> None:
        options = dict(word.replace("_", " ").split("=") for word in words[1:])
        request, sentences = plan_unlock(self.stage.locks(), words[0], **options)
        self.lines += [f"  {sentence}" for sentence in sentences]
        self.requests.append(request)
        self.stage.unlock(self.requests)

    def do_locks(self) -> None:
        for lock in self.stage.locks():
            self.lines.append(
                f"  {lock.id}: {lock.statement} by {lock.owner}; made: {', '.join(lock.synced)}; "
                f"waits for: {', '.join(lock.unsynced)}; held {lock.held_rows}, further {lock.further}"
            )

    def do_waits(self) -> None:
        for wait in self.stage.waits():
            self.lines.append(f"  {wait.table} is held with {wait.count} rows: {wait.reason}")


def _origin(name: str) -> str:
    return f"{name[0]}: {name}"


@pytest.mark.parametrize("case", CASES, ids=title)
def test_a_case(case: Case, rewrite: bool) -> None:
    play = Play()
    for command in case.commands.splitlines():
        play.run(command)
    case.expect("\n".join(play.lines), rewrite)
