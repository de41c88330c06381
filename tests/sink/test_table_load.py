"""Schema changes while tables are loaded, as cases of text, and their path through a Delivery."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
from msgspec.structs import replace

from tidemill.chain import Element, StageContext
from tidemill.chain.selection.former import with_former
from tidemill.chain.selection.rule import only
from tidemill.chain.selection.stage import SelectionStage
from tidemill.chain.selection.tables import TablePatterns
from tidemill.errors import NotReproducible, Retryable, SinkError
from tidemill.events import (
    CREATED,
    FORMER,
    PENDING,
    REST,
    STALE,
    WHOLE,
    Action,
    AddColumn,
    Batch,
    ChangeColumn,
    Checkpoint,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    DropTable,
    Item,
    Parking,
    RenameTables,
    SnapshotProgress,
    Table,
    TablePosition,
    TableProgress,
    Transaction,
    TruncateTable,
)
from tidemill.sink import Delivery, LoadRequired
from tidemill.sink.reached import Reached
from tidemill.sink.resume_filter import ResumeFilter
from tidemill.sink.sink import Sink, SinkTraits
from tidemill.testing.cases import Case, load, title
from tidemill.testing.changes import LOOSE, ORDERS, PAIRS, at, insert, transaction

NUMBER = Column("id", "int")
STATES: tuple[Literal["paused", "failed", "removed"], ...] = ("paused", "failed", "removed")
PARKED = {state: Parking(state, 7.0, TablePosition(1, "log:1")) for state in STATES}


def progress(text: str) -> SnapshotProgress:
    found = {}
    for part in text.split(", "):
        name, _, have = part.partition("=")
        kept = {"whole": WHOLE, "stale": STALE, "pending": PENDING, "()": CREATED}
        kept |= {state: TableProgress((), parked=PARKED[state]) for state in PARKED}
        made = kept[have] if have in kept else TableProgress((int(have.strip("()")),))
        found[REST if name == REST else f"s.{name}"] = made
    return found


def spelled(loading: SnapshotProgress | None) -> str:
    def one(have: TableProgress) -> str:
        if have.parked is not None:
            return have.parked.state
        if have.stale or have.pending:
            return "stale" if have.stale else "pending"
        return "whole" if have.last is None else f"({', '.join(map(str, have.last))})"

    return ", ".join(
        f"{name.removeprefix('s.')}={one(have)}" for name, have in sorted((loading or {}).items())
    )


def statement(line: str) -> list[Item]:
    """Return the rows of tables, a chunk, or the schema changes of a statement, one for each table unless it
    is a renaming."""
    verb, _, rest = line.partition(" ")
    if verb in ("rows", "chunk", "end"):
        rows = [insert(Table("s", name, (NUMBER,), (0,)), 1) for name in rest.split(", ") if name]
        chunk = Chunk(f"s.{rest}" if rest else "") if verb != "rows" else None
        return [replace(transaction(2, *rows), chunk=chunk)]
    names = [line] if verb == "rename" else [f"{verb} {name}" for name in rest.split(", ")]
    changes = [change(name) for name in names]
    return [*(replace(one, last=False) for one in changes[:-1]), changes[-1]]


def change(line: str) -> Ddl:
    verb, _, rest = line.partition(" ")
    name = rest.split(" ")[0]
    table = Table("s", name, (NUMBER,), (0,))
    pairs = tuple(tuple(("s", part) for part in pair.split(" ")) for pair in rest.split(", "))
    actions: dict[str, tuple[Action, ...]] = {
        "snapshot": (CreateTable(table),),
        "create": (CreateTable(table),),
        "alter": (AddColumn(Column("x", "int")),),
        "change": (ChangeColumn("id", NUMBER),),
        "truncate": (TruncateTable(),),
        "drop": (DropTable(),),
        "rename": (RenameTables(pairs),) if verb == "rename" else (),
        "refuse": (),
    }
    query = "" if verb == "snapshot" else line
    refusal = "no" if verb == "refuse" else ""
    return Ddl(2, 2, "src", "s", name, query, actions[verb], "log:2", refusal)


def told(ddl: Element) -> str:
    if isinstance(ddl, Transaction) and ddl.rows:
        return f"rows {', '.join(run.table.name for run in ddl.runs)}"
    if not isinstance(ddl, Ddl):
        return "nothing"
    if ddl.reload:
        names = {table for action in ddl.actions if isinstance(action, RenameTables) for pair in action.pairs
                 for _, table in pair} or {ddl.table}  # fmt: skip
        return f"load again {', '.join(sorted(names))}"
    (action,) = ddl.actions
    if isinstance(action, CreateTable):
        return f"create {ddl.table}" + (", replacing" if action.replaces else "")
    return ddl.query


@pytest.mark.parametrize("case", load(Path(__file__).with_suffix("").parent / "table_load.txt"), ids=title)
def test_schema_changes_while_tables_are_loaded(case: Case, request: pytest.FixtureRequest) -> None:
    first, *rest = case.commands.splitlines()
    listed, _, former = first.removeprefix("loading ").partition("; former ")
    stages = {FORMER: with_former("", [TablePatterns.parse(former.split(", "))])} if former else {}
    start = Checkpoint(1, "log:1", progress(listed), stages=stages)
    resume, reached = ResumeFilter(), Reached(start)
    resume.open(StageContext(feed="", sink="copy", checkpoint=start, now=float, seek=lambda _: None))
    said = []
    for line in rest:
        for passed in resume.apply(statement(line)):
            assert isinstance(passed, (Ddl, Transaction))
            said.append(told(passed))
            reached.add(passed)
    assert reached.checkpoint is not None
    kept = "; former" if FORMER in reached.checkpoint.stages else ""
    found = [*said, f"loading {spelled(reached.checkpoint.loading)}{kept}"]
    case.expect("\n".join(found), request.config.getoption("--rewrite"))


# --- through a Delivery --------------------------------------------------------------------------


class Target(Sink):
    """Keeps what it is given, and is durable at once."""

    name = target = "copy"

    def __init__(self) -> None:
        self.written: list[object] = []
        self.at: Checkpoint | None = None
        self.fails: list[Exception] = []
        self._reached: Checkpoint | None = None

    def open(self) -> Checkpoint | None:
        return self.at

    def write(self, batch: Batch) -> None:
        if self.fails and isinstance(batch.items[0], Ddl):
            self._reached = self.at
            raise self.fails.pop(0)
        self.written += [
            item.query if isinstance(item, Ddl) else [(row.table.name, row.after[0]) for row in item.rows]
            for item in batch.items
        ]
        self._reached = batch.checkpoint or self._reached

    def flush(self) -> Checkpoint | None:
        self.at = self._reached
        return self.at

    def has_table(self, schema: str, table: str) -> bool:
        return table != "nowhere"

    def close(self) -> None:
        pass


def delivery(target: Target, *, can_reload: bool = True, loading: SnapshotProgress | None = None) -> Delivery:
    return Delivery(target, at(1, loading=loading), "src", can_reload=can_reload)  # type: ignore[arg-type]


def test_a_statement_about_a_paused_table_and_another_one_comes_after_complete_rows() -> None:
    batches: list[Batch] = []

    class Noting(Target):
        def write(self, batch: Batch) -> None:
            batches.append(batch)
            super().write(batch)

    work = delivery(Noting(), loading={REST: WHOLE, "s.a": TableProgress((), parked=PARKED["paused"])})
    work.accept(
        [
            transaction(2, insert(ORDERS, 1, "")),
            *(replace(one, commit_ts=3) for one in statement("drop a, b")),
        ]
    )
    work.run(0)
    assert [(len(batch.items), batch.checkpoint and batch.checkpoint.ts) for batch in batches] == [
        (1, 2),
        (1, 3),
    ]


def test_a_table_to_be_loaded_again_that_leaves_the_sink_s_tables_is_looked_for_again() -> None:
    target = Target()
    start = Checkpoint(1, "log:1", {REST: WHOLE, "s.a": STALE}, "src")
    stages = [SelectionStage([only(TablePatterns.parse(["s.a"]))])]
    work = Delivery(target, start, "src", stages=stages, can_reload=True)
    work.accept(statement("rename a b"))
    with pytest.raises(LoadRequired):
        work.run(0)
    assert target.at is not None
    assert target.at.loading == {REST: WHOLE, "s.a": STALE}


def unknown(ts: int, table: Table, *, last: bool = True) -> Ddl:
    query = f"ALTER TABLE {table.name} DROP PARTITION p"
    reload = f"table {table.full_name}: rows are gone: {query}"
    start_ts = transaction(ts).start_ts
    position = f"log:{ts}" if last else ""
    return Ddl(ts, start_ts, "src", table.schema, table.name, query, (), position, reload=reload, last=last)


def test_a_table_whose_change_is_unknown_is_loaded_again_and_the_others_keep_what_they_have() -> None:
    target = Target()
    work = delivery(target)
    work.accept(
        [transaction(2, insert(ORDERS, 1, "")), unknown(3, ORDERS), transaction(4, insert(ORDERS, 2, ""))]
    )
    with pytest.raises(LoadRequired, match=r"table shop\.orders: rows are gone") as raised:
        work.run(0)
    assert raised.value.tables == {"shop.orders"}
    assert target.at == at(3, loading={REST: WHOLE, "shop.orders": STALE})
    assert target.written == [[("orders", 1)], []]


def test_a_table_that_the_snapshot_lacked_is_loaded_after_it() -> None:
    target = Target()
    work = delivery(target, loading={REST: WHOLE, "shop.orders": PENDING})
    work.accept([transaction(2, chunk=Chunk(""))])
    with pytest.raises(LoadRequired, match=r"shop\.orders: they changed their names"):
        work.run(0)
    assert target.at == at(2, loading={REST: WHOLE, "shop.orders": STALE})


def test_rows_of_such_a_table_in_the_same_transaction_are_left_to_the_load() -> None:
    target = Target()
    work = delivery(target)
    rows = transaction(2, insert(ORDERS, 1, ""), insert(PAIRS, 1, 2, ""))
    work.accept([unknown(2, ORDERS, last=False), rows])
    with pytest.raises(LoadRequired):
        work.run(0)
    assert target.written == [[], [("pairs", 1)]]
    assert target.at == at(2, loading={REST: WHOLE, "shop.orders": STALE})


def test_a_change_that_the_target_can_t_reproduce_is_replaced_by_a_load() -> None:
    target = Target()
    target.fails = [NotReproducible("shop.orders", "INT to VARCHAR")]
    work = delivery(target)
    ddl = replace(unknown(3, ORDERS), reload="", actions=(ChangeColumn("id", NUMBER),))
    work.accept([transaction(2, insert(ORDERS, 1, "")), ddl, transaction(4, insert(PAIRS, 1, 2, ""))])
    with pytest.raises(LoadRequired, match="INT to VARCHAR"):
        work.run(0)
    assert target.at == at(3, loading={REST: WHOLE, "shop.orders": STALE})


@pytest.mark.parametrize("computes", [False, True])
def test_an_added_generated_column_loads_the_table_again_unless_the_sink_computes_it(
    computes: bool,
) -> None:
    class Computing(Target):
        traits = SinkTraits(computes_columns=computes)

    target = Computing()
    work = delivery(target)
    added = AddColumn(Column("twice", "int", generated=True), expression="(id * 2)")
    work.accept([replace(unknown(2, ORDERS), actions=(added,)), transaction(3, insert(ORDERS, 1, ""))])
    if computes:
        work.run(0)
        assert target.at == at(3)
    else:
        with pytest.raises(LoadRequired):
            work.run(0)
        assert target.at == at(2, loading={REST: WHOLE, "shop.orders": STALE})
    assert (unknown(2, ORDERS).query in target.written) == computes


class Slow(Target):
    """Is durable only when it is asked for it the second time."""

    traits = SinkTraits(is_pipelined=True)

    asked = 0

    def progress(self) -> Checkpoint | None:
        self.asked += 1
        return self.flush() if self.asked > 2 else self.at


@pytest.mark.parametrize("target", [Target(), Slow()], ids=["at once", "slow"])
def test_a_table_in_part_that_is_loaded_again_has_no_keys_to_compare(target: Target) -> None:
    """Its rows come in one batch with the statement, and have another key by then, or none."""
    work = delivery(target, loading={"shop.orders": TableProgress((7,))})
    pair = ("shop", "orders"), ("shop", "loose")
    rename = replace(unknown(2, ORDERS), reload="", actions=(RenameTables((pair,)),))
    rows = transaction(3, insert(LOOSE, 1, "x"))
    work.accept([rename, rows, transaction(4, insert(LOOSE, 2, "y"), chunk=Chunk("shop.loose", WHOLE))])
    with suppress(LoadRequired):
        for now in range(9):
            work.run(now)
    assert target.at is not None
    assert target.at.loading == {"shop.orders": STALE, "shop.loose": STALE}
    assert target.written[0] == []


def test_what_the_target_hasn_t_got_needs_no_load() -> None:
    target = Target()
    work = delivery(target)
    gone = replace(unknown(2, ORDERS), table="nowhere", if_exists=True)
    work.accept([gone, transaction(3, insert(ORDERS, 1, ""))])
    work.run(0)
    assert target.at == at(3)


def test_a_source_that_can_t_load_a_table_again_ends_the_feed_with_the_reason() -> None:
    target = Target()
    work = delivery(target, can_reload=False)
    work.accept([transaction(2, insert(ORDERS, 1, "")), unknown(3, ORDERS)])
    with pytest.raises(SinkError, match=r"rows are gone.*give every sink of the feed an empty target"):
        work.run(0)
    assert target.at == at(2)


def test_a_target_that_is_away_when_it_is_asked_for_a_table_is_asked_again() -> None:
    answers: list[bool | Exception] = [Retryable("not now"), False]

    class Away(Target):
        def has_table(self, schema: str, table: str) -> bool:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    target = Away()
    work = delivery(target)
    work.accept([replace(unknown(2, ORDERS), if_exists=True)])
    with pytest.raises(Retryable):
        work.run(0)
    work.run(1)
    work.run(2)
    assert target.at == at(2)
