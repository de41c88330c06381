"""Pieces of raw changes and the items that they are mounted to."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tidemill.chain.selection.tables import TablePatterns
from tidemill.codec.blocks import block_of
from tidemill.codec.mysql import tokens
from tidemill.codec.mysql.collation import Charset
from tidemill.codec.mysql.entry import (
    COMMIT,
    DDL,
    RESULT_ROWS,
    ROLLBACK_MARKER,
    ROWS,
    ChunkRows,
    Commit,
    Definitions,
    NewTable,
    Query,
    decode_commit,
    decode_statement,
    encode_commit,
    encode_statement,
    entry_key,
)
from tidemill.codec.mysql.known_table import KnownTable
from tidemill.codec.mysql.layout import Layouts
from tidemill.codec.mysql.result_writer import ResultWriter
from tidemill.codec.native import library
from tidemill.errors import InvariantViolated, SourceError
from tidemill.events import (
    PUT,
    AddColumn,
    ChangeColumn,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    Item,
    KvChange,
    RenameTables,
    RowChange,
    Sorted,
    Table,
    TableProgress,
    Transaction,
    Ts,
)
from tidemill.mounter import Mounter
from tidemill.mounter.mysql.catalog import CatalogChange, TableChange
from tidemill.mounter.mysql.history import History
from tidemill.testing.binlog_events import DELETE, INSERT, INT, rows_event, table_map

pytestmark = pytest.mark.usefixtures("decoder")

TS = 100
TABLE = Table("shop", "t", (Column("c0", "int"),), key=(0,))


def sorted_of(changes: list[KvChange], resolved: Ts, continues: bool = False) -> Sorted:
    """Return these changes as the sorter passes them on."""
    return Sorted(block_of(changes), resolved, continues)


class Bench:
    """A mounter, and raw changes for it as a puller makes them."""

    def __init__(self) -> None:
        self.layouts = Layouts()
        self.binlog = self.layouts.number_of(table_map(INT))
        self.snapshot = self.layouts.add_table(TABLE)
        self.mounter = Mounter(self.layouts, "source-1", TablePatterns.parse(["shop.*"]))

    def transaction(self, *words: str, ts: int = TS) -> list[KvChange]:
        """A change for each word: "+1" and "-1" insert and delete, "=1" is a snapshot's row."""
        return [self.change(number, word, ts) for number, word in enumerate(words, 1)]

    def change(self, number: int, word: str, ts: int) -> KvChange:
        region = 0
        match word[0], word[1:]:
            case "+" | "-" as sign, rest:
                kind, region = ROWS, self.binlog
                row = [int(rest).to_bytes(4, "little")]
                value = rows_event(INSERT if sign == "+" else DELETE, [row])
            case "=", rest:
                kind, region = RESULT_ROWS, self.snapshot
                value = ResultWriter(TABLE).packets((int(rest),))
            case "!", statement:
                kind, value = (
                    DDL,
                    encode_statement(Query("shop", statement, 12.5, tokens.STRICT, utc_offset_seconds=3600)),
                )
            case "d", "efaults":
                databases = (("shop", Charset("utf8mb4", "utf8mb4_general_ci")),)
                kind, value = DDL, encode_statement(Definitions(databases, {}, loading=True))
            case "#", after:
                kind, value = DDL, encode_statement(ChunkRows("shop", "t", (int(after),)))
            case "*", "":
                kind, value = DDL, encode_statement(NewTable(KnownTable(TABLE)))
            case "x", "":
                kind, value, number = ROLLBACK_MARKER, b"", 0
            case ".", "":
                kind, value = COMMIT, encode_commit(Commit("log:7"))
            case ".", "end":
                kind, value = COMMIT, encode_commit(Commit("log:7", Chunk("")))
            case ".", chunk:
                kind, value = COMMIT, encode_commit(Commit("log:7", Chunk(chunk, TableProgress((3,)))))
            case _:
                raise ValueError(word)
        return KvChange(ts, ts, PUT, entry_key(number, kind), value, region_id=region)

    def mount(self, *words: str) -> list[Item]:
        return self.mounter.mount(sorted_of(self.transaction(*words), TS))

    def mount_each(self, changes: list[KvChange]) -> list[Item]:
        """One change at a time, as if each filled the memory."""
        released = [sorted_of([change], 0, change is not changes[-1]) for change in changes]
        return [item for message in released for item in self.mounter.mount(message)]


def described(items: list[Item]) -> list[str]:
    """A line for each item: its rows or actions, "..." where the transaction goes on, else its position."""
    lines = []
    for item in items:
        assert (item.commit_ts, item.start_ts, item.source) == (TS, TS, "source-1")
        end = item.position if item.last else "..."
        assert bool(item.position) == item.last
        if isinstance(item, Transaction):
            rows = [f"{'+' if r.op == 'insert' else '-'}{(r.after or r.before or ())[0]}" for r in item.rows]
            chunk = [f"chunk {item.chunk.table} {item.chunk.loaded.last}"] if item.chunk else []
            lines.append(" ".join([*rows, *chunk, end]))
        else:
            what = (
                item.refusal
                or (item.reload and "reload")
                or " ".join(type(action).__name__ for action in item.actions)
            )
            lines.append(f"{item.full_name}: {what} {end}")
    return lines


def test_rows_become_one_transaction() -> None:
    (item,) = Bench().mount("+1", "-2", ".")
    table = item.rows[0].table  # type: ignore[union-attr]
    assert table == TABLE
    assert item == Transaction(
        TS,
        TS,
        "source-1",
        [RowChange(TS, TS, table, "insert", None, (1,)), RowChange(TS, TS, table, "delete", (2,), None)],
        "log:7",
    )


def test_a_transaction_without_rows_moves_the_position() -> None:
    assert described(Bench().mount(".")) == ["log:7"]


def test_snapshot_rows_come_with_their_chunk() -> None:
    assert described(Bench().mount("=1", "=2", ".shop.t")) == ["+1 +2 chunk shop.t (3,) log:7"]


def test_rows_of_a_chunk_that_changed_while_it_was_read_come_in_their_last_state() -> None:
    logged = ("+2", "-2", "-1", "+1", "+3", "-4", "+0", "+7")
    words = ("#0", *logged, "=1", "=2", "=4", ".shop.t")  # the chunk is of the keys 1 to 3
    expected = ["+1", "+3"]
    (line,) = described(Bench().mount(*words))
    assert line == f"{' '.join(expected)} chunk shop.t (3,) log:7"
    bench = Bench()
    items = bench.mount_each(bench.transaction(*words))
    rows = [row for item in items if isinstance(item, Transaction) for row in item.rows]
    assert [row.after for row in rows] == [(1,), (3,)]
    assert described(bench.mount("+5", ".")) == ["+5 log:7"]


def test_a_table_about_to_be_loaded() -> None:
    assert Bench().mount("*", ".") == [
        Ddl(TS, TS, "source-1", "shop", "t", "", (CreateTable(TABLE),), "log:7"),
    ]


def test_a_schema_change_is_an_item_of_its_own() -> None:
    statement = "ALTER TABLE t ADD x INT"
    assert Bench().mount(f"!{statement}", ".") == [
        Ddl(
            TS,
            TS,
            "source-1",
            "shop",
            "t",
            statement,
            (AddColumn(Column("x", "int")),),
            "log:7",
            epoch_seconds=12.5,
            utc_offset_seconds=3600,
            sql_mode=tokens.STRICT,
        )
    ]


def test_a_refused_statement_is_quoted() -> None:
    (item,) = Bench().mount("!DROP DATABASE shop", ".")
    assert isinstance(item, Ddl)
    assert item.actions == ()
    assert item.refusal.endswith(": DROP DATABASE shop")


def test_a_statement_about_several_tables_is_one_transaction() -> None:
    assert described(Bench().mount("!DROP TABLE t, u, v", ".")) == [
        "shop.t: DropTable ...",
        "shop.u: DropTable ...",
        "shop.v: DropTable log:7",
    ]


def test_a_table_made_of_a_query_comes_before_its_rows() -> None:
    assert described(Bench().mount("!CREATE TABLE t (c0 INT)", "+1", "+2", ".")) == [
        "shop.t: CreateTable ...",
        "+1 +2 log:7",
    ]


def test_a_loaded_table_is_known_to_later_statements() -> None:
    bench = Bench()
    bench.mount("*", ".")
    (item,) = bench.mount("!ALTER TABLE t MODIFY c0 BIGINT", ".")
    assert isinstance(item, Ddl)
    before = Column("c0", "int")
    assert item.actions == (ChangeColumn("c0", Column("c0", "bigint", nullable=False), before),)
    assert item.sql_mode == tokens.STRICT


def test_without_its_definition_a_changed_table_is_loaded_again() -> None:
    (item,) = Bench().mount("!ALTER TABLE t MODIFY c0 BIGINT", ".")
    assert isinstance(item, Ddl)
    assert (item.actions, item.refusal, item.position) == ((), "", "log:7")
    assert item.reload.startswith("table shop.t is loaded again, ")
    assert item.reload.endswith(": ALTER TABLE t MODIFY c0 BIGINT")


@pytest.mark.parametrize("ends", [True, False])
def test_tables_are_all_known_when_the_snapshot_ends(ends: bool) -> None:
    bench = Bench()
    bench.mount("defaults", ".")
    bench.mount("*", ".")
    if ends:
        bench.mount(".end")
    shown = "shop.u: CreateTable log:7" if ends else "shop.u: reload log:7"
    assert described(bench.mount("!CREATE TABLE IF NOT EXISTS u (c0 INT)", ".")) == [shown]


def test_a_statement_about_other_tables_only_moves_the_position() -> None:
    assert described(Bench().mount("!TRUNCATE other.t", ".")) == ["log:7"]


def test_a_schema_change_keeps_its_place_between_rows() -> None:
    assert described(Bench().mount("+1", "!ALTER TABLE t DROP x", "+2", "!ALTER TABLE t DROP y", ".")) == [
        "+1 ...",
        "shop.t: DropColumn ...",
        "+2 ...",
        "shop.t: DropColumn log:7",
    ]


def test_a_schema_change_with_a_chunk_is_followed_by_it() -> None:
    assert described(Bench().mount("*", ".shop.t")) == [
        "shop.t: CreateTable ...",
        "chunk shop.t (3,) log:7",
    ]


def test_a_transaction_in_pieces_ends_with_its_position() -> None:
    bench = Bench()
    changes = bench.transaction("+1", "+2", "+3", ".")
    assert described(bench.mounter.mount(sorted_of(changes[:2], 0, continues=True))) == ["+1 +2 ..."]
    assert described(bench.mounter.mount(sorted_of(changes[2:], TS))) == ["+3 log:7"]


def test_every_piece_of_a_snapshot_names_its_table() -> None:
    bench = Bench()
    changes = bench.transaction("=1", "=2", ".shop.t")
    items = [
        item
        for change in changes
        for item in bench.mounter.mount(sorted_of([change], 0, change is not changes[-1]))
    ]
    assert described(items) == [
        "+1 chunk shop.t () ...",
        "+2 chunk shop.t () ...",
        "chunk shop.t (3,) log:7",
    ]
    assert described(bench.mounter.mount(sorted_of(bench.transaction("+1"), 0, continues=True))) == ["+1 ..."]


def test_a_transaction_that_was_taken_back_only_moves_the_position() -> None:
    bench = Bench()
    changes = sorted(bench.transaction("+1", "!TRUNCATE t", "x", "+3", "."))
    items = [
        item
        for change in changes
        for item in bench.mounter.mount(sorted_of([change], 0, change is not changes[-1]))
    ]
    assert described(items) == ["log:7"]
    assert described(bench.mount("+1", ".")) == ["+1 log:7"]


@given(
    words=st.lists(st.sampled_from(["+1", "-2", "=3", "!ALTER TABLE t DROP x", "!GRANT x"]), max_size=6),
    cuts=st.sets(st.integers(1, 6)),
)
@settings(deadline=None)
def test_pieces_make_no_difference(words: list[str], cuts: set[int]) -> None:
    whole = Bench().mount(*words, ".")
    bench = Bench()
    changes = bench.transaction(*words, ".")
    bounds = [0, *sorted(cut for cut in cuts if cut < len(changes)), len(changes)]
    items = [
        item
        for start, end in pairwise(bounds)
        for item in bench.mounter.mount(sorted_of(changes[start:end], 0, end < len(changes)))
    ]
    assert joined(items) == joined(whole)
    assert [item.last for item in items] == [False] * (len(items) - 1) + [True]
    assert [item.position for item in items][-1] == "log:7"


def joined(items: list[Item]) -> list[object]:
    """Rows and statements in order, without the cuts."""
    flat: list[object] = []
    for item in items:
        if isinstance(item, Transaction):
            flat += [(row.op, row.before, row.after) for row in item.rows]
        else:
            flat.append(item.query)
    return flat


def test_a_transaction_without_commit_is_a_bug() -> None:
    with pytest.raises(InvariantViolated, match="no commit"):
        Bench().mount("+1")


def test_rows_of_an_unknown_definition_are_refused_while_generated_columns_are_left_out() -> None:
    bench = Bench()
    bench.mounter = Mounter(
        bench.layouts, "source-1", TablePatterns.parse(["shop.*"]), copies_generated=False
    )
    with pytest.raises(SourceError, match=r"shop\.t: its definition isn't known, .*--resnapshot shop\.t"):
        bench.mount("+1", ".")


def partial(change: KvChange) -> KvChange:
    """The same rows without their only column."""
    at = 19 + 8 + 1  # after the head and the number of columns
    value = change.value[:at] + b"\0" + change.value[at + 1 :]
    return replace(change, value=value)


def rows_of(bench: Bench, *changes: KvChange) -> list[RowChange]:
    items = bench.mounter.mount(sorted_of([*changes, bench.change(9, ".", TS)], TS))
    return [row for item in items if isinstance(item, Transaction) for row in item.rows]


@pytest.mark.parametrize(
    "loaded",
    [("*",), ("!DROP TABLE t", "!CREATE TABLE t (c0 INT PRIMARY KEY)"), ("!RENAME TABLE shop.u TO shop.t",)],
)
def test_rows_that_no_target_needs_are_not_read_until_there_is_another_table(loaded: tuple[str, ...]) -> None:
    bench = Bench()
    with pytest.raises(SourceError, match="without column c0"):
        rows_of(bench, partial(bench.change(1, "+1", TS)))
    bench.mounter = Mounter(bench.layouts, "source-1", TablePatterns.parse(["shop.*"]), reloading=["shop.t"])
    assert rows_of(bench, partial(bench.change(1, "+1", TS)), bench.change(2, "+2", TS)) == []
    bench.mount("!CREATE TABLE u (c0 INT PRIMARY KEY)", ".")
    assert rows_of(bench, partial(bench.change(1, "+1", TS))) == []
    for word in loaded:
        bench.mount(word, ".")
    with pytest.raises(SourceError, match="without column c0"):
        rows_of(bench, partial(bench.change(1, "+1", TS)))
    assert [row.after for row in rows_of(bench, bench.change(1, "+3", TS))] == [(3,)]


@pytest.mark.parametrize("words", [[], ["*"]])
def test_a_table_that_was_paused_during_the_snapshot_is_a_table_when_it_is_renamed(words: list[str]) -> None:
    """Another one that isn't known by then is a view, and its renaming is of no concern."""
    bench = Bench()
    bench.mounter = Mounter(bench.layouts, "source-1", TablePatterns.parse(["shop.*"]), reloading=["shop.t"])
    bench.mount("defaults", *words, ".end")
    (ddl,) = bench.mount("!RENAME TABLE shop.t TO shop.other", ".")
    assert isinstance(ddl, Ddl)
    assert ddl.actions == (RenameTables(((("shop", "t"), ("shop", "other")),)),)
    (item,) = bench.mount("!RENAME TABLE shop.v TO shop.w", ".")
    assert isinstance(item, Transaction)


def test_rows_before_a_later_definition_are_for_no_target(tmp_path: Path) -> None:
    def learned(known: KnownTable | None) -> CatalogChange:
        return CatalogChange((TableChange("shop", "t", known),))

    bench, history = Bench(), History(tmp_path / "catalog", "source-1")
    history.restore(0)
    history.append([(1, learned(None)), (TS, learned(KnownTable(TABLE)))])
    catalog = history.restore(1)
    bench.mounter = Mounter(
        bench.layouts,
        "source-1",
        TablePatterns.parse(["shop.*"]),
        catalog=catalog,
        history=history,
        copies_generated=False,
    )
    for ts, rows in ((TS, 0), (TS + 1, 1)):
        (item,) = bench.mounter.mount(sorted_of(bench.transaction("+1", ".", ts=ts), ts))
        assert len(item.rows) == rows  # type: ignore[union-attr]
    history.close()


def test_damaged_rows_stop_with_the_name_of_their_table() -> None:
    bench = Bench()
    first, commit = bench.transaction("+1", ".")
    damaged = KvChange(TS, TS, PUT, first.key, first.value[:-1], region_id=first.region_id)
    (item,) = bench.mounter.mount(sorted_of([damaged, commit], TS))
    place = rf"table shop\.t: .* column c0 \(int\).* ends at byte \d+ of its binlog.* ts {TS}"
    for ask in (len, list, repr, lambda rows: rows[0]):
        with pytest.raises(SourceError, match=place):
            ask(item.rows)  # type: ignore[union-attr]


def test_no_row_of_a_transaction_is_seen_where_a_later_one_is_damaged() -> None:
    bench = Bench()
    first, second, commit = bench.transaction("+1", "-2", ".")
    damaged = KvChange(TS, TS, PUT, second.key, second.value[:-1], region_id=second.region_id)
    (item,) = bench.mounter.mount(sorted_of([first, damaged, commit], TS))
    with pytest.raises(SourceError):
        next(iter(item.rows))  # type: ignore[union-attr]


def test_rows_that_have_the_position_end_their_transaction() -> None:
    bench = Bench()
    first, last = bench.transaction("+1", "-2")
    following = replace(bench.change(3, "+3", TS), old_value=b"log:8")
    assert described(bench.mounter.mount(sorted_of([first, replace(last, old_value=b"log:7")], TS))) == [
        "+1 -2 log:7"
    ]
    whole = [first, replace(last, old_value=b"log:7"), following]
    assert described(bench.mounter.mount(sorted_of(whole, TS))) == ["+1 -2 log:7", "+3 log:8"]
    with pytest.raises(InvariantViolated, match="has no commit"):
        bench.mounter.mount(sorted_of([first, last], TS))


def test_rows_after_a_rollback_end_their_transaction_without_rows() -> None:
    bench = Bench()
    marker, first, last = bench.transaction("x", "+1", "-2")
    (item,) = bench.mounter.mount(sorted_of([marker, first, replace(last, old_value=b"log:7")], TS))
    assert (list(item.rows), item.position) == ([], "log:7")  # type: ignore[union-attr]
    assert described(bench.mount("+1", ".")) == ["+1 log:7"]


def test_rows_are_decoded_when_asked_for_and_once() -> None:
    (item,) = Bench().mount("+1", "-2", ".")
    runs = item.runs  # type: ignore[union-attr]
    assert [(run.op, run.decoded) for run in runs] == [("insert", None), ("delete", None)]
    assert runs[1].changes() is runs[1].changes()
    assert runs[0].decoded is None
    assert [*item.rows][1] is item.rows[1] is runs[1].changes()[0]  # type: ignore[union-attr]


# --- the encoding between puller and mounter ------------------------------------------------------------


def test_keys_sort_by_number() -> None:
    keys = [entry_key(number, kind) for number in (0, 1, 255, 256, 2**40) for kind in (ROWS, COMMIT)]
    assert sorted(keys) == keys


@pytest.mark.parametrize("chunk", [None, Chunk(""), Chunk("shop.t", TableProgress((1, -(2**63), 2**64 - 1)))])
def test_a_commit_comes_back(chunk: Chunk | None) -> None:
    commit = Commit("mysql-bin.000003:4711", chunk)
    assert decode_commit(encode_commit(commit)) == commit


@pytest.mark.parametrize(
    "statement",
    [
        NewTable(KnownTable(TABLE, "c0")),
        Query("s", "ALTER ...", 1.5, 4, True, False, "SYSTEM", None, Charset("latin1"), "log:5"),
        Definitions(
            (("s", Charset("latin1", "latin1_bin")),), {"latin1": "latin1_bin"}, True, (KnownTable(TABLE),)
        ),
    ],
)
def test_a_statement_comes_back(statement: NewTable | Query) -> None:
    assert decode_statement(encode_statement(statement)) == statement


def test_a_chunk_of_which_all_rows_were_changed_has_no_empty_run() -> None:
    (item,) = Bench().mount("#0", "-1", "-2", "=1", "=2", ".shop.t")
    assert isinstance(item, Transaction)
    assert item.runs == []
    (item,) = Bench().mount("#0", "-1", "=1", "=2", ".shop.t")
    assert [len(run) for run in item.runs] == [1]


def random_changes(bench: Bench, random: Random) -> list[KvChange]:
    """Return transactions of some tables: of one event or several, rolled back, empty, or with statements."""
    layouts = [bench.layouts.number_of(table_map(INT, table=("shop", name))) for name in ("t", "u", "other")]
    changes: list[KvChange] = []
    for ts in range(TS, TS + random.randint(1, 30)):
        part = [
            replace(bench.change(number, random.choice(("+1", "-2")), ts), region_id=random.choice(layouts))
            for number in range(1, random.choice((2, 2, 2, 3, 4)))
        ]
        match random.randrange(10):
            case 0:
                part = [bench.change(9, ".", ts)]
            case 1:
                part = [bench.change(1, "!TRUNCATE TABLE shop.t", ts), bench.change(2, ".", ts)]
            case 2:
                part += [bench.change(0, "x", ts), bench.change(9, ".", ts)]
            case 3:
                part.append(bench.change(9, ".", ts))
            case _:
                part[-1] = replace(part[-1], old_value=f"log:{ts}".encode())
        changes += part
    return changes


def compare(seed: int) -> None:
    """Compare the items of random transactions, with the native module and without it."""
    mounted = []
    for in_use in (False, library.native is not None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library, "in_use", in_use)
            random, bench = Random(seed), Bench()
            tables = TablePatterns.parse(["shop.*"])
            bench.mounter = Mounter(bench.layouts, "source-1", tables, reloading=["shop.other"])
            changes = random_changes(bench, random)
            cut = random.randint(0, len(changes))
            while 0 < cut < len(changes) and changes[cut - 1].commit_ts == changes[cut].commit_ts:
                cut -= 1
            parts = [part for part in (changes[:cut], changes[cut:]) if part]
            items = [item for part in parts for item in bench.mounter.mount(sorted_of(part, TS))]
            rows = [_changes(item) for item in items]
            bare = [replace(item, rows=()) if isinstance(item, Transaction) else item for item in items]
            mounted.append((bare, rows))
    assert mounted[0] == mounted[1], seed


@pytest.mark.parametrize("seed", range(100))
def test_transactions_of_one_event_are_the_same_natively(seed: int) -> None:
    compare(seed)


def _changes(item: Item) -> list[object]:
    return [
        (one.commit_ts, one.start_ts, one.table.full_name, one.op, one.before, one.after)
        for one in (item.rows if isinstance(item, Transaction) else ())
    ]


@pytest.mark.parametrize("end", [".", ""])
def test_a_transaction_whose_first_rows_are_left_out_has_the_others(end: str) -> None:
    bench = Bench()
    tables = TablePatterns.parse(["shop.*"])
    bench.mounter = Mounter(bench.layouts, "source-1", tables, reloading=["shop.other"])
    other = bench.layouts.number_of(table_map(INT, table=("shop", "other")))
    bench.mount("+1", ".")
    first, last, commit = bench.transaction("+1", "+2", ".")
    ended = [last, commit] if end else [replace(last, old_value=b"log:7")]
    items = bench.mounter.mount(sorted_of([replace(first, region_id=other), *ended], TS))
    assert described(items) == ["+2 log:7"]
