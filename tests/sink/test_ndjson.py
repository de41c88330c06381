from __future__ import annotations

import base64
import json
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec.structs import replace

from tidemill.errors import SinkError
from tidemill.events import Chunk, CreateTable, DropColumn, DropTable, RenameTables, TruncateTable, compose_ts
from tidemill.sink.files.file import FileSink
from tidemill.testing import column_kinds as kinds
from tidemill.testing.changes import (
    ORDERS,
    MemoryStore,
    alter,
    at,
    batch,
    chunk,
    create,
    delete,
    insert,
    transaction,
    update,
)
from tidemill.testing.sink_conformance import feed


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.ndjson"


@pytest.fixture
def store():
    return MemoryStore()


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_row_is_a_line(path, store):
    store.save(at(0))
    path.touch()
    ts = compose_ts(1_700_000_000_123)
    feed(
        FileSink("copy", path, store),
        [
            transaction(
                ts, insert(ORDERS, 1, "a"), update(ORDERS, (1, "a"), (1, None)), delete(ORDERS, 1, None)
            )
        ],
    )
    head = {"ts": str(ts), "time": "2023-11-14T22:13:20.123+00:00"}
    where = {"schema": "shop", "table": "orders"}
    assert lines(path) == [
        {**head, "n": 0, "op": "insert", **where, "after": {"id": 1, "note": "a"}},
        {
            **head,
            "n": 1,
            "op": "update",
            **where,
            "before": {"id": 1, "note": "a"},
            "after": {"id": 1, "note": None},
        },
        {**head, "n": 2, "op": "delete", **where, "before": {"id": 1, "note": None}},
    ]


def test_tables_and_schema_changes_are_lines_too(path, store):
    feed(
        FileSink("copy", path, store),
        [create(1, ORDERS), chunk(2, ORDERS, None, insert(ORDERS, 1, "a")), transaction(3, chunk=Chunk("")),
         alter(4, ORDERS, "ALTER TABLE orders DROP note", DropColumn("note"))],
    )  # fmt: skip
    made, row, altered = lines(path)
    assert made["op"] == "create"
    assert made["columns"] == [{"name": "id", "kind": "int"}, {"name": "note", "kind": "varchar"}]
    assert made["key"] == ["id"]
    assert row["snapshot"] is True
    assert (altered["op"], altered["query"]) == ("alter", "ALTER TABLE orders DROP note")


def test_changes_of_whole_tables_are_lines_too(path, store):
    pairs = ((("shop", "orders"), ("shop", "old")), (("shop", "new"), ("shop", "orders")))
    changes = [CreateTable(ORDERS, replaces=True), TruncateTable(), RenameTables(pairs), DropTable()]
    items = [alter(ts, ORDERS, f"statement {ts}", change) for ts, change in enumerate(changes, 2)]
    feed(FileSink("copy", path, store), [transaction(1, chunk=Chunk("")), *items])
    where = {"schema": "shop", "table": "orders"}
    made, emptied, renamed, dropped = [
        {name: value for name, value in line.items() if name not in ("ts", "time")} for line in lines(path)
    ]
    assert made == {
        "op": "create",
        **where,
        "query": "statement 2",
        "replaces": True,
        "columns": [{"name": "id", "kind": "int"}, {"name": "note", "kind": "varchar"}],
        "key": ["id"],
    }
    assert emptied == {"op": "truncate", **where, "query": "statement 3"}
    assert renamed == {
        "op": "rename",
        **where,
        "query": "statement 4",
        "renames": [
            {"from": where, "to": {"schema": "shop", "table": "old"}},
            {"from": {"schema": "shop", "table": "new"}, "to": where},
        ],
    }
    assert dropped == {"op": "drop", **where, "query": "statement 5"}


def test_rows_of_a_transaction_are_numbered_through_its_pieces(path, store):
    sink = FileSink("copy", path, store)
    sink.open()
    sink.write(batch(transaction(1, *[insert(ORDERS, n, "") for n in (1, 2)], last=False)))
    sink.write(batch(transaction(1, insert(ORDERS, 3, "")), transaction(2, insert(ORDERS, 4, ""))))
    sink.flush()
    sink.close()
    assert [(line["ts"], line["n"]) for line in lines(path)] == [("1", 0), ("1", 1), ("1", 2), ("2", 0)]


def test_rows_of_two_transactions_with_one_ts_are_numbered_through_both(path, store):
    sink = FileSink("copy", path, store)
    sink.open()
    first, second = (replace(transaction(7, insert(ORDERS, n, "")), start_ts=n) for n in (1, 2))
    sink.write(batch(first, second))
    sink.flush()
    sink.close()
    assert [(line["ts"], line["n"]) for line in lines(path)] == [("7", 0), ("7", 1)]


def json_value(column, text):
    """The value that a reader gets from a line, by the rules of docs/reference/ndjson.md."""
    binary = ("binary", "varbinary", "blob", "geometry")
    if text is None or column.kind not in ("bigint", "bit", "decimal", *binary):
        return text
    if column.kind == "decimal":
        return Decimal(text)
    return int(text) if column.kind in ("bigint", "bit") else base64.b64decode(text)


def test_every_value_can_be_read_back(path, store):
    rows = [*kinds.ROWS, kinds.NULLS]
    feed(
        FileSink("copy", path, store),
        [create(1, kinds.KEYED), chunk(2, kinds.KEYED, None, *[insert(kinds.KEYED, *row) for row in rows])],
    )
    found = [line["after"] for line in lines(path)[1:]]
    for row, line in zip(rows, found, strict=True):
        for column, value in zip(kinds.KEYED.columns, row, strict=True):
            read = json_value(column, line[column.name])
            if column.kind in ("date", "time", "datetime", "timestamp") and value is not None:
                assert isinstance(read, str)
                assert len(read.partition(".")[2]) == column.scale
            else:
                assert read == value, column.name
            assert not isinstance(line[column.name], int) or abs(line[column.name]) < 2**53


def test_what_a_crash_left_is_cut_off(path, store):
    feed(FileSink("copy", path, store), [create(1, ORDERS)])
    kept = path.read_bytes()
    with path.open("ab") as file:
        file.write(b'{"half a li')
    sink = FileSink("copy", path, store)
    sink.open()
    assert path.read_bytes() == kept
    sink.close()


def test_a_checkpoint_without_rows_counts_nothing_that_was_cut_off(path, store):
    store.save(at(0))
    feed(FileSink("copy", path, store), [transaction(1, insert(ORDERS, 1, ""))])
    with path.open("ab") as file:
        file.write(b'{"half a li')
    feed(FileSink("copy", path, store), [transaction(2)])
    feed(FileSink("copy", path, store), [transaction(3, insert(ORDERS, 2, ""))])
    assert [line["ts"] for line in lines(path)] == ["1", "3"]


def test_a_crash_before_the_first_checkpoint_leaves_no_file(path, store):
    sink = FileSink("copy", path, store)
    sink.open()
    sink.write(batch(transaction(1, *[insert(ORDERS, n, "x" * 1000) for n in range(100)])))
    sink.close()
    assert not path.exists()
    feed(FileSink("copy", path, store), [create(1, ORDERS)])
    assert len(lines(path)) == 1


def test_a_crash_between_the_first_checkpoint_and_the_name_is_mended(path, store, monkeypatch):
    class DeathError(Exception):
        pass

    def dies(*_):
        raise DeathError

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", dies)
        with pytest.raises(DeathError):
            feed(FileSink("copy", path, store), [create(1, ORDERS)])
    assert not path.exists()
    sink = FileSink("copy", path, store)
    assert sink.open() == at(1, loading=store.load()[0].loading)
    sink.close()
    assert len(lines(path)) == 1


def test_a_file_of_somebody_else_is_left_alone(path, store):
    path.write_text("mine")
    with pytest.raises(SinkError, match="holds something already: remove it, or name another file"):
        FileSink("copy", path, store).open()
    assert path.read_text() == "mine"


def test_a_file_that_was_cut_is_noticed(path, store):
    feed(FileSink("copy", path, store), [create(1, ORDERS)])
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(SinkError, match=f"has {size - 5} bytes, its checkpoint says {size}"):
        FileSink("copy", path, store).open()


def test_a_file_that_is_gone_is_noticed(path, store):
    feed(FileSink("copy", path, store), [create(1, ORDERS)])
    path.unlink()
    with pytest.raises(SinkError, match="has 0 bytes, its checkpoint says"):
        FileSink("copy", path, store).open()


def test_a_directory_that_is_not_there_is_named(tmp_path, store):
    with pytest.raises(SinkError, match=r"can't open .*no/rows\.ndjson: No such file or directory"):
        FileSink("copy", tmp_path / "no" / "rows.ndjson", store).open()


def test_a_full_disk_is_an_error_that_says_so(store):
    sink = FileSink("copy", Path("/dev/full"), store)
    sink._new_path = Path("/dev/full")
    sink.open()
    sink.write(batch(replace(transaction(1), rows=[insert(ORDERS, 1, "x")])))
    with pytest.raises(SinkError, match="can't write /dev/full: No space left on device"):
        sink.flush()
    sink.close()
