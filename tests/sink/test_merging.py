"""Changes of a batch merged per row: cases of text, and seeded histories into a SQLite file.

A line `update 1 a -> 1 b` changes the row with the key 1 and the unique value a.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from tidemill.dialects.keys import Key, KeyPart, TableKeys
from tidemill.dialects.sqlite.sqlite import SqliteDatabase
from tidemill.events import Chunk, Column, Row, RowChange, Table, runs_of
from tidemill.sink import open_sink
from tidemill.sink.sql.merging import ChangeMerger
from tidemill.testing.cases import Case, load, title
from tidemill.testing.changes import MemoryStore, create, delete, insert, transaction, update
from tidemill.testing.sink_conformance import feed

CASES = load(Path(__file__).with_name("merging.txt"))
PAIR = Table(
    "shop", "pair", (Column("id", "int", nullable=False), Column("u", "varchar", length=9)), key=(0,)
)
KEYS = TableKeys("pair", (Key("id", (KeyPart(0),)), Key("u", (KeyPart(1),))))


def row_of(text: str) -> Row:
    key, value = text.split()
    return int(key), value


def change_of(line: str) -> RowChange:
    op, _, rest = line.partition(" ")
    before, _, after = rest.partition(" -> ")
    if op == "update":
        return update(PAIR, row_of(before), row_of(after))
    return (insert if op == "insert" else delete)(PAIR, *row_of(before))


def shown(change: RowChange) -> str:
    return " -> ".join(" ".join(map(str, row)) for row in (change.before, change.after) if row is not None)


@pytest.mark.parametrize("case", CASES, ids=title)
def test_merging(case: Case, rewrite: bool) -> None:
    changes = map(change_of, case.commands.splitlines())
    target = SimpleNamespace(keys_of=lambda _: KEYS, is_linked=lambda _: False)
    groups = ChangeMerger(target).groups(runs_of(changes), 100)
    lines = [f"{group.op}: {', '.join(map(shown, group.changes))}" for group in groups]
    case.expect("\n".join(lines), rewrite)


# --- histories

TABLE = Table(
    "shop",
    "seat",
    (
        Column("id", "int", nullable=False),
        Column("seat", "int"),
        Column("name", "varchar", length=9),
        Column("n", "int"),
    ),
    key=(0,),
)


def history(random: Random, rows: dict[int, Row], count: int) -> Iterator[RowChange]:
    """Yield changes of a few rows that leave and take keys and unique values, and note them in `rows`."""
    for n in range(count):
        taken = {row[1] for row in rows.values()}, {row[2] for row in rows.values()}
        seat = random.choice([None, *(one for one in range(6) if one not in taken[0])])
        name = random.choice([None, *(one for one in "abcde" if one not in taken[1])])
        free = [key for key in range(8) if key not in rows]
        action = random.randrange(5)
        if not rows or (action == 0 and free):
            row = (random.choice(free), seat, name, n)
            rows[row[0]] = row
            yield insert(TABLE, *row)
            continue
        old = rows.pop(random.choice(list(rows)))
        if action == 1:
            yield delete(TABLE, *old)
            continue
        key = random.choice(free) if action == 2 and free else old[0]
        rows[key] = new = (key, *random.choice([(seat, old[2]), (old[1], name), (old[1], old[2])]), n)
        yield update(TABLE, old, new)


def play(tmp_path, monkeypatch, seed, **options):
    random = Random(seed)
    file = tmp_path / "copy.db"
    rows: dict[int, Row] = {}
    rollbacks = []
    rolled_back = SqliteDatabase.rollback_to_savepoint
    monkeypatch.setattr(
        SqliteDatabase, "rollback_to_savepoint", lambda self: (rollbacks.append(1), rolled_back(self))
    )

    def sink():
        return open_sink(
            "copy", f"sqlite:///{file}", feed="test", store=MemoryStore(), options={"merge": True, **options}
        )

    feed(sink(), [create(1, TABLE), transaction(2, chunk=Chunk(""))])
    with closing(sqlite3.connect(file)) as copy:
        copy.execute('CREATE UNIQUE INDEX seats ON "shop.seat" (seat)')
        copy.execute('CREATE UNIQUE INDEX names ON "shop.seat" (name)')
    for ts in range(3, 13):
        changes = list(history(random, rows, random.choice([1, 5, 20, 60])))
        feed(sink(), [transaction(ts, *changes)], max_rows=1000)
        with closing(sqlite3.connect(file)) as copy:
            assert sorted(copy.execute('SELECT * FROM "shop.seat"')) == sorted(rows.values())
    return rollbacks


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("options", [{}, {"verify": "before"}], ids=["by key", "verified"])
def test_merged_changes_leave_the_same_rows_at_the_first_attempt(tmp_path, monkeypatch, seed, options):
    assert play(tmp_path, monkeypatch, seed, **options) == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 600))
def test_merged_changes_leave_the_same_rows_for_long(tmp_path, monkeypatch, seed):
    assert play(tmp_path, monkeypatch, seed) == []


@pytest.mark.parametrize("seed", range(3))
def test_safe_mode_does_not_merge(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(ChangeMerger, "groups", None)
    play(tmp_path, monkeypatch, seed, safe_mode=True)
