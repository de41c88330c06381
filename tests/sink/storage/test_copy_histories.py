"""Random histories into copies: rows and statements, with kills, lost answers, compactions and lost indexes.

pytest tests/sink/storage/test_copy_histories.py --seed 17
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace

from tidemill.errors import Retryable, SinkError
from tidemill.events import (
    AddColumn,
    ChangeColumn,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    Item,
    RenameTables,
    Row,
    Table,
    TruncateTable,
    altered,
)
from tidemill.failpoint import POINTS
from tidemill.sink import Delivery, DeliveryOptions, Sink
from tidemill.sink.files import commits, staging
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.lakes import layout as lake_layout
from tidemill.sink.files.lakes.copies import delta_log, iceberg_log, layout, table
from tidemill.testing.changes import delete, insert, transaction, update

from .copies import PLACES

SEEDS = range(2)
SOAK_SEEDS = range(2, 210)
NAMES = ("a", "b", "c")
STEPS = [point for point in POINTS if point.startswith(("copy.", "storage.", "lake.telling", "sink.com"))]
STEPS.append("sink.before_commit")
BASE = (Column("id", "int", nullable=False), Column("word", "varchar", length=20))


class Killed(BaseException):
    pass


class Model:
    """The source's tables, and what happens to them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.tables: dict[str, tuple[Table, dict[int, Row]]] = {}
        self.items: list[Item] = [transaction(1, chunk=Chunk(""))]
        self._columns = 0
        for _ in range(self.random.randint(30, 60)):
            self._step()

    def _step(self) -> None:
        name = self.random.choice(NAMES)
        if name not in self.tables:
            self._run(Table("shop", name, BASE, (0,)), lambda own: CreateTable(own))
            self.tables[name] = Table("shop", name, BASE, (0,)), {}
        elif self.random.random() < 0.75:
            self.items.append(transaction(self.ts, *self._changes()))
        else:
            self.random.choice(self._statements())(name)

    @property
    def ts(self) -> int:
        return self.items[-1].commit_ts + 1

    def _changes(self) -> list[Any]:
        changes: list[Any] = []
        for _ in range(self.random.randint(1, 12)):
            own, rows = self.tables[self.random.choice(list(self.tables))]
            key = self.random.randint(1, 15)
            if key not in rows:
                rows[key] = self._row(own, key)
                changes.append(insert(own, *rows[key]))
            elif self.random.random() < 0.4:
                changes.append(delete(own, *rows.pop(key)))
            else:
                old, new = rows.pop(key), self.random.choice([key, self.random.randint(16, 30)])
                new = key if new in rows else new
                rows[new] = self._row(own, new)
                changes.append(update(own, old, rows[new]))
        return changes

    def _row(self, own: Table, key: int) -> Row:
        return tuple(key if place in own.key else self._value(one) for place, one in enumerate(own.columns))

    def _value(self, column: Column) -> object:
        if column.nullable and self.random.random() < 0.2:
            return None
        return (
            self.random.choice(("x", "y", "Zürich"))
            if column.kind == "varchar"
            else self.random.randint(0, 99)
        )

    # --- statements

    def _statements(self):
        return [
            self._add, self._add, self._drop_column, self._rename_column, self._widen, self._truncate,
            self._drop, self._rename, self._reload,
        ]  # fmt: skip

    def _run(self, own: Table, action: Any) -> None:
        made = action(own)
        ts = self.ts
        self.items.append(Ddl(ts, 0, "src", own.schema, own.name, "X", (made,), f"log:{ts}"))

    def _alter(self, name: str, action: Any, convert: Any) -> None:
        own, rows = self.tables[name]
        self._run(own, lambda _: action)
        self.tables[name] = altered(own, [action]), {key: convert(row) for key, row in rows.items()}

    def _add(self, name: str) -> None:
        self._columns += 1
        default, nullable = self.random.choice([("7", False), ("7", True), (None, True), (None, False)])
        column = Column(f"n{self._columns}", "int", nullable=nullable, default=default)
        value = 7 if default else None if nullable else 0
        if self.random.random() < 0.3:
            self._alter(name, AddColumn(column, ""), lambda row: (value, *row))
        else:
            self._alter(name, AddColumn(column), lambda row: (*row, value))

    def _other(self, name: str) -> int | None:
        own, _ = self.tables[name]
        return self.random.choice([n for n in range(len(own.columns)) if n not in own.key] or [None])

    def _drop_column(self, name: str) -> None:
        if (place := self._other(name)) is not None:
            column = self.tables[name][0].columns[place]
            self._alter(name, DropColumn(column.name), lambda row: (*row[:place], *row[place + 1 :]))

    def _rename_column(self, name: str) -> None:
        own, _ = self.tables[name]
        self._columns += 1
        column = self.random.choice(own.columns)
        new = replace(column, name=f"r{self._columns}")
        self._alter(name, ChangeColumn(column.name, new, column), lambda row: row)

    def _widen(self, name: str) -> None:
        own, _ = self.tables[name]
        column = self.random.choice(own.columns)
        new = replace(column, length=90) if column.kind == "varchar" else replace(column, kind="bigint")
        self._alter(name, ChangeColumn(column.name, new, column), lambda row: row)

    def _truncate(self, name: str) -> None:
        self._run(self.tables[name][0], lambda _: TruncateTable())
        self.tables[name] = self.tables[name][0], {}

    def _drop(self, name: str) -> None:
        self._run(self.tables.pop(name)[0], lambda _: DropTable())

    def _rename(self, name: str) -> None:
        free = [other for other in NAMES if other not in self.tables]
        if not free:
            return
        new = self.random.choice(free)
        pairs = [(name, new)]
        others = [other for other in self.tables if other != name]
        if others and self.random.random() < 0.5:
            pairs.append((self.random.choice(others), name))
        full = tuple((("shop", old), ("shop", to)) for old, to in pairs)
        self._run(self.tables[name][0], lambda _: RenameTables(full))
        moved = [self.tables.pop(old) for old, _ in pairs]
        for (_, to), (own, rows) in zip(pairs, moved, strict=True):
            self.tables[to] = replace(own, name=to), rows

    def _reload(self, name: str) -> None:
        own, rows = self.tables[name]
        self._run(own, lambda _: CreateTable(own, replaces=True))
        if rows:
            self.items.append(transaction(self.ts, *[insert(own, *row) for row in rows.values()]))


class Broken(Directory):
    """Fails now and then, before or after it did what it was asked for."""

    def __init__(self, path, random: Random) -> None:
        super().__init__(path)
        for name in ("write", "create", "copy", "read", "remove_folder"):
            setattr(self, name, self._broken(getattr(self, name), random))

    def _broken(self, call, random: Random):
        def called(*args):
            chance = random.random()
            if chance < 0.01:
                raise Retryable("no answer")
            result = call(*args)
            if chance < 0.02:
                raise Retryable("no answer")
            return result

        return called


class Paused(Directory):
    """The directory of a process that stops at one of its calls, and goes on when it is told to."""

    def __init__(self, path, calls: int) -> None:
        super().__init__(path)
        self.is_paused, self.goes_on = Event(), Event()
        self._left = calls
        for name in ("write", "create", "copy", "read", "names", "remove", "remove_folder"):
            setattr(self, name, self._pausing(getattr(self, name)))

    def _pausing(self, call):
        def called(*args):
            self._left -= 1
            if self._left == 0:
                self.is_paused.set()
                self.goes_on.wait()
            return call(*args)

        return called


class World:
    """A copy, and what happens to its processes."""

    def __init__(self, kind: str, seed: int, tmp_path, monkeypatch) -> None:
        self.model = Model(seed)
        self.random = Random(f"faults {seed}")
        options = self.random.choice([{"flush_seconds": 0.0}, {"journal_seconds": 0.0}, {"file_bytes": 600}])
        self.place = PLACES[kind](tmp_path / "lake", **{"flush_seconds": 60.0, **options})
        self._left = 0
        for module in (commits, staging, lake_layout, layout, table, delta_log, iceberg_log):
            monkeypatch.setattr(module, "reach", self._reach)

    def _reach(self, point: str) -> None:
        if point in STEPS:
            self._left -= 1
            if self._left == 0:
                raise Killed

    def run(self) -> None:
        paused = Paused(self.place.path, self.random.randint(20, 400))
        with ThreadPoolExecutor(1) as pool:
            try:
                old = pool.submit(self._live_paused, paused)
                paused.is_paused.wait()
                self._live_until_done()
                self._check()
                self._left = 0
            finally:
                paused.goes_on.set()
            old.result()
        self._check()

    def _live_paused(self, store: Paused) -> None:
        """Run a feed that others take over from."""
        place = type(self.place)(self.place.path, **self.place.options)
        place.index = self.place.index.with_name("paused.index")
        sink = place.sink(store=store)
        try:
            with suppress(SinkError):
                self._feed(sink)
                sink.close()
        finally:
            sink._target.layout.close()
            store.is_paused.set()

    def _live_until_done(self) -> None:
        for life in range(60):
            self._left = self.random.randint(1, 60) if life < 25 else 0
            if self._lived():
                break
            self._after_a_kill()
        else:
            pytest.fail("it never got to the end")

    def _lived(self) -> bool:
        """Run a feed; return False if it was killed. The index is left as a kill leaves it."""
        sink = self.place.sink(store=Broken(self.place.path, self.random))
        try:
            self._feed(sink)
            sink.close()
        except (Killed, SinkError) as error:
            if isinstance(error, SinkError) and "acknowledged rows wait in its journal" not in str(error):
                raise
            left = self.place.index.with_name("left")
            if self.place.index.exists():
                shutil.copytree(self.place.index, left)
            sink._target.layout.close()
            shutil.rmtree(self.place.index, ignore_errors=True)
            if left.exists():
                left.rename(self.place.index)
            return False
        return True

    def _feed(self, sink: Sink) -> None:
        while True:
            with suppress(Retryable):
                checkpoint = sink.open()
                break
        options = DeliveryOptions(max_rows=5, rowless_seconds=0)
        work = Delivery(sink, checkpoint, "src", options)
        for item in self.model.items:
            work.accept([item])
            self._until_done(work.run)
        self._until_done(work.run, work.flush)

    def _until_done(self, *steps) -> None:
        while True:
            try:
                for step in steps:
                    step(0)
            except Retryable:
                continue
            return

    def _after_a_kill(self) -> None:
        chance = self.random.random()
        if chance < 0.2:
            shutil.rmtree(self.place.index, ignore_errors=True)
        elif chance < 0.4:
            for name in NAMES:
                with suppress(Exception):
                    self.place.compact(f"shop.{name}")

    def _check(self) -> None:
        for name in NAMES:
            full = f"shop.{name}"
            if not self.place.exists(full):
                assert name not in self.model.tables
                continue
            own, rows = self.model.tables.get(name, (None, {}))
            assert self.place.definition(full) == own
            assert sorted(map(str, rows.values())) == sorted(
                str(tuple(row.values())) for row in self.place.list(full)
            )
            if own is not None:
                assert self.place.columns(full) == [
                    (one.name, self.place.types[one.kind], one.nullable) for one in own.columns
                ]


def run(kind: str, seed: int, tmp_path, monkeypatch) -> None:
    try:
        World(kind, seed, tmp_path, monkeypatch).run()
    except BaseException as error:
        error.add_note(f"with --seed {seed}")
        raise


def chosen(request, seed: int) -> int:
    one = request.config.getoption("--seed")
    return seed if one is None else one


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", PLACES)
def test_a_history_ends_with_the_tables_of_the_source(request, tmp_path, monkeypatch, kind, seed):
    run(kind, chosen(request, seed), tmp_path, monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("seed", SOAK_SEEDS)
@pytest.mark.parametrize("kind", PLACES)
def test_many_histories_end_with_the_tables_of_the_source(request, tmp_path, monkeypatch, kind, seed):
    run(kind, chosen(request, seed), tmp_path, monkeypatch)
