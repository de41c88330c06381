"""Changes as Arrow batches and back."""

from __future__ import annotations

import json
from itertools import pairwise

import pyarrow as pa
import pytest
from msgspec.structs import replace

from tidemill.errors import SinkError
from tidemill.events import (
    AddColumn,
    ChangeColumn,
    ChangeKey,
    Chunk,
    Column,
    CreateTable,
    Ddl,
    DropColumn,
    DropTable,
    Item,
    RenameTables,
    RowChange,
    Rows,
    Table,
    TableProgress,
    Transaction,
    TruncateTable,
)
from tidemill.spark.capture.texts import Texts
from tidemill.spark.envelope import ENVELOPE, Decoder, EnvelopeEncoder
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import ORDERS, PAIRS, delete, insert, transaction, update

from ..codec.runs import runs_of_rows
from ..codec.vectors import load

pytestmark = pytest.mark.usefixtures("decoder")


def at(ts: int, item: Transaction) -> Transaction:
    rows = [RowChange(ts, 0, row.table, row.op, row.before, row.after) for row in item.rows]
    return Transaction(ts, 0, item.source, rows, item.position, item.last, item.chunk)


def there_and_back(items: list[Item], **options: bool) -> list[Item]:
    batch = EnvelopeEncoder(**options).encode(items)
    batch.validate(full=True)
    assert batch.schema.equals(ENVELOPE)
    return Decoder().decode(batch)


THREE = [
    at(5, transaction(5, insert(ORDERS, 1, "a"), insert(PAIRS, 1, "b", None))),
    at(7, transaction(7, update(ORDERS, (1, "a"), (1, None)))),
    at(9, transaction(9, delete(ORDERS, 1, None))),
]


def test_transactions_come_back_equal() -> None:
    assert there_and_back(THREE) == THREE


def test_they_come_back_without_the_json_too() -> None:
    assert there_and_back(THREE, json=False) == THREE


@pytest.mark.parametrize("table", [kinds.KEYED, kinds.KEYLESS], ids=lambda table: table.name)
def test_values_of_every_kind_come_back_exactly(table: Table) -> None:
    rows = [*kinds.ROWS, kinds.NULLS]
    item = at(3, transaction(3, *[update(table, row, other) for row, other in pairwise(rows)]))
    (back,) = there_and_back([item])
    assert back == item
    assert [repr(row.after) for row in back.rows] == [repr(row.after) for row in item.rows]


@pytest.mark.parametrize(
    "actions",
    [
        (CreateTable(kinds.KEYED),),
        (AddColumn(Column("n", "enum", members=("a", "b"), default="'a'"), after="", unless_exists=True),),
        (DropColumn("n", if_exists=True), AddColumn(Column("m", "int"))),
        (),
        (DropTable(),),
        (TruncateTable(),),
        (RenameTables(((("shop", "a"), ("shop", "b")), (("shop", "b"), ("mall", "a")))),),
        (
            ChangeColumn("n", Column("m", "int"), Column("n", "bigint"), after="", if_exists=True),
            ChangeKey(("m",)),
        ),
    ],
    ids=["create", "add", "two", "none", "drop", "truncate", "rename", "change"],
)
def test_a_schema_change_comes_back_equal(actions) -> None:
    ddl = Ddl(8, 6, "src", "shop", "orders", "ALTER …", actions, "log:8", "no", 1.5, utc_offset_seconds=-7200)
    assert there_and_back([THREE[0], ddl, THREE[2]]) == [THREE[0], ddl, THREE[2]]


def test_snapshot_rows_keep_what_they_load() -> None:
    chunk = Chunk("shop.orders", TableProgress((2,)))
    item = at(4, transaction(4, insert(ORDERS, 1, "a"), insert(ORDERS, 2, "b"), chunk=chunk))
    assert there_and_back([item]) == [item]


def test_the_columns_are_what_people_expect() -> None:
    ddl = Ddl(8, 6, "src", "shop", "orders", "ALTER TABLE orders …", (), "log:8")
    rows = EnvelopeEncoder().encode([*THREE, ddl]).to_pylist()
    assert [(row["commit_ts"], row["start_ts"], row["sequence"], row["op"]) for row in rows] == [
        (5, 0, 0, "insert"),
        (5, 0, 1, "insert"),
        (7, 0, 0, "update"),
        (9, 0, 0, "delete"),
        (8, 6, 0, "ddl"),
    ]
    assert [row["table"] for row in rows] == ["orders", "pairs", "orders", "orders", "orders"]
    assert [row["position"] for row in rows] == [None, "log:5", "log:7", "log:9", "log:8"]
    assert json.loads(rows[1]["after"]) == {"a": 1, "b": "b", "n": None}
    assert json.loads(rows[2]["before"]) == {"id": 1, "note": "a"}
    assert (rows[0]["before"], rows[3]["after"]) == (None, None)
    assert rows[4]["query"] == "ALTER TABLE orders …"


def test_without_json_the_images_are_null() -> None:
    batch = EnvelopeEncoder(json=False).encode(THREE)
    assert batch.column("before").null_count == batch.column("after").null_count == 4


def test_items_without_rows_leave_nothing() -> None:
    assert EnvelopeEncoder().encode([transaction(3)]).num_rows == 0


def test_pieces_are_numbered_through_and_the_last_row_has_the_position() -> None:
    encoder = EnvelopeEncoder()
    pieces = [
        at(5, transaction(5, insert(ORDERS, 1, "a"), insert(ORDERS, 2, "b"), last=False)),
        at(5, transaction(5, insert(ORDERS, 3, "c"), last=False)),
        at(5, transaction(5)),
        at(6, transaction(6, insert(ORDERS, 4, "d"))),
    ]
    batches = [encoder.encode([piece]) for piece in pieces]
    assert [batch.column("sequence").to_pylist() for batch in batches] == [[0], [1], [2], [0]]
    assert [batch.column("position").to_pylist() for batch in batches] == [
        [None],
        [None],
        ["log:5"],
        ["log:6"],
    ]


def test_rows_may_be_cut_into_batches_anywhere() -> None:
    batch = EnvelopeEncoder().encode(THREE)
    decoder = Decoder()
    found = [item for start in range(batch.num_rows) for item in decoder.decode(batch.slice(start, 1))]
    assert [item.last for item in found] == [False, True, True, True]
    assert [row for item in found for row in item.rows] == [row for item in THREE for row in item.rows]


def test_two_transactions_of_one_commit_ts_stay_two() -> None:
    one = at(5, transaction(5, insert(ORDERS, 1, "a")))
    other = Transaction(5, 3, "src", [RowChange(5, 3, ORDERS, "insert", None, (2, "b"))], "log:5")
    assert there_and_back([one, other]) == [one, other]


def test_rows_of_two_versions_of_a_table_keep_their_own() -> None:
    wider = Table("shop", "orders", (*ORDERS.columns, Column("more", "int")), key=(0,))
    items = [THREE[0], at(6, transaction(6, insert(wider, 1, "a", 2)))]
    assert there_and_back(items) == items


def test_a_missing_column_is_named() -> None:
    batch = EnvelopeEncoder().encode(THREE).drop_columns(["change"])
    with pytest.raises(SinkError, match=r"the rows lack the column change: .* commit_ts, start_ts, op"):
        Decoder().decode(batch)


def test_a_layout_of_others_is_refused() -> None:
    batch = EnvelopeEncoder().encode(THREE[:1])
    batch = batch.set_column(11, "layout", pa.array([b"x", b"y"]))
    with pytest.raises(SinkError, match="what tidemill didn't write"):
        Decoder().decode(batch)


@pytest.mark.parametrize("change", [None, b"x", b"\xff\xff"])
def test_a_change_that_is_not_as_it_was_read_is_refused(change: bytes | None) -> None:
    batch = EnvelopeEncoder().encode(THREE)
    place = batch.schema.get_field_index("change")
    damaged = pa.array([change] * batch.num_rows, pa.binary())
    with pytest.raises(SinkError, match="change and layout aren't as they were read"):
        Decoder().decode(batch.set_column(place, batch.schema.field(place), damaged))


@pytest.mark.parametrize("op", [23, 24, 25])
def test_bytes_and_rows_make_the_same_lines_and_come_back(op: int) -> None:
    for vector in load():
        whole = Transaction(7, 6, "source", Rows(runs_of_rows(vector, op)), "log:7")
        rows = [replace(row, commit_ts=7, start_ts=6) for row in whole.rows]
        decoded = Transaction(7, 6, "source", rows, "log:7")
        from_bytes, from_rows = EnvelopeEncoder().encode([whole]), EnvelopeEncoder().encode([decoded])
        from_bytes.validate(full=True)
        exact = ["change", "layout"]
        assert from_bytes.drop_columns(exact).equals(from_rows.drop_columns(exact))
        for batch in (from_bytes, from_rows):
            (item,) = Decoder().decode(batch)
            assert repr(item) == repr(decoded)
            bare = batch.set_column(6, batch.schema.field(6), pa.nulls(batch.num_rows, pa.string()))
            assert Texts()(bare).equals(batch)


def test_tables_and_statements_that_interleave_keep_their_order() -> None:
    vectors = [vector for vector in load() if vector.definition in ("INT", "BIGINT", "DATE")]
    runs = [run for several in zip(*map(runs_of_rows, vectors), strict=False) for run in several]
    ddl = Ddl(8, 8, "source", "shop", "t", "ALTER ...", (), "log:8")
    items = [
        Transaction(7, 7, "source", Rows(runs), "log:7"),
        ddl,
        Transaction(9, 9, "source", Rows(runs[::-1]), "log:9"),
    ]
    encoder = EnvelopeEncoder()
    batches = [encoder.encode(items[:1]), encoder.encode(items[1:])]
    plain = [replace(item, rows=list(item.rows)) if isinstance(item, Transaction) else item for item in items]
    wanted = EnvelopeEncoder().encode(plain)
    exact = ["change", "layout"]
    assert pa.concat_batches(batches).drop_columns(exact).equals(wanted.drop_columns(exact))
    assert not any(run.decoded is None for run in runs)


def test_without_json_no_row_is_decoded() -> None:
    runs = runs_of_rows(load()[0])
    EnvelopeEncoder(json=False).encode([Transaction(7, 7, "source", Rows(runs), "log:7")])
    assert all(run.decoded is None for run in runs)
