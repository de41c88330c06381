"""Tables that are loaded beside the log, which goes on meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from threading import Thread
from threading import enumerate as enumerate_threads
from typing import Any

import pytest
from msgspec.structs import replace

from tidemill.codec.mysql.entry import DDL, ChunkRows, decode_statement
from tidemill.codec.mysql.position import Position
from tidemill.dialects.mysql.key_range import chunk_query, up_to
from tidemill.events import Column, Item, KeyRange, OrderedKey, Table, Transaction, key_order, load_again
from tidemill.puller.mysql.chunk_reader import _ChunkReader
from tidemill.puller.puller import SnapshotReport
from tidemill.testing.mariadb_client import Client
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.progress import eventually

from .pulling import Copy, Pulling, binlog_end, mysql_end, rows_of, source_rows
from .test_snapshot import Shop


@dataclass
class Source:
    server: PrivateServer
    database: str
    is_mysql: bool

    def execute(self, cursor: Any, *statements: str) -> None:
        for statement in statements:
            cursor.execute(statement)

    def end(self) -> Position:
        return mysql_end(self.server) if self.is_mysql else binlog_end(self.server)  # type: ignore[arg-type]

    def pulling(self, copy: Copy, **options: Any) -> Pulling:
        return Pulling(self.server, f"{self.database}.*", copies=[copy], **options)


@pytest.fixture(params=["mariadb", "mysql97"])
def source(request: pytest.FixtureRequest) -> Source:
    is_mysql = request.param == "mysql97"
    server = request.getfixturevalue(request.param)
    database = request.getfixturevalue("mysql_database" if is_mysql else "database")
    return Source(server, database, is_mysql)


@pytest.fixture
def cursor(source: Source) -> Iterator[Any]:
    with source.server.connect(database=source.database) as connection, connection.cursor() as cursor:
        yield cursor


MEANWHILE = {
    "rows": [
        "UPDATE loaded SET a = 7 WHERE id IN (2, 4, 10)",
        "DELETE FROM loaded WHERE id IN (1, 5)",
        "INSERT INTO loaded VALUES (3, 33), (100, 1)",
        "UPDATE loaded SET id = 50 WHERE id = 6",
        "UPDATE loaded SET id = 6 WHERE id = 14",
    ],
    "rows twice": [
        "INSERT INTO loaded VALUES (3, 33)",
        "DELETE FROM loaded WHERE id = 3",
        "DELETE FROM loaded WHERE id = 4",
        "INSERT INTO loaded VALUES (4, 44)",
    ],
    "no rows": ["DELETE FROM loaded"],
    "a column": ["ALTER TABLE loaded ADD b INT", "UPDATE loaded SET b = id"],
    "truncated": ["TRUNCATE loaded", "INSERT INTO loaded VALUES (1, 2)"],
    "dropped": ["DROP TABLE loaded"],
}


@pytest.mark.parametrize("statements", MEANWHILE.values(), ids=MEANWHILE)
def test_a_chunk_has_what_changed_while_it_was_read(
    source: Source, cursor: Any, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source.execute(
        cursor,
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "CREATE TABLE loaded (id INT PRIMARY KEY, a INT)",
        "INSERT INTO loaded VALUES (1, 0), (2, 0), (4, 0), (5, 0), (6, 0), (10, 0), (12, 0), (14, 0)",
    )
    copy = Copy()
    with source.pulling(copy) as pulling:
        pulling.catch_up(source.end())
    assert copy.checkpoint is not None
    loaded, other = f"{source.database}.loaded", f"{source.database}.other"
    copy.checkpoint = replace(copy.checkpoint, loading=load_again(None, [loaded]))
    copy.restart()

    def meanwhile() -> None:
        source.execute(cursor, *statements, "INSERT INTO other VALUES (1)")
        pulling.wait_for(lambda: rows_of(copy)[other])
        assert rows_of(copy).get(loaded) or "DROP" in statements[0], (
            "the old copy stays until the table is loaded again"
        )

    first_view_begins(monkeypatch, meanwhile)
    with source.pulling(copy, chunk_rows=3) as pulling:
        pulling.catch_up(source.end())
    assert rows_of(copy) == source_rows(source.server, source.database)


def first_view_begins(monkeypatch: pytest.MonkeyPatch, then: Callable[[], None]) -> None:
    """Call `then` when the first view of a chunk has begun, before anything is read in it."""
    begin = _ChunkReader._begin
    views = count(1)

    def begin_view(reader: _ChunkReader, *args: Any) -> Position:
        end = begin(reader, *args)
        if next(views) == 1:
            then()
        return end

    monkeypatch.setattr(_ChunkReader, "_begin", begin_view)


def test_a_load_that_waits_for_a_lock_is_stopped_at_once(
    source: Source, cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.execute(cursor, "CREATE TABLE loaded (id INT PRIMARY KEY)", "INSERT INTO loaded VALUES (1)")
    first_view_begins(monkeypatch, lambda: cursor.execute("LOCK TABLES loaded WRITE"))
    with source.server.connect() as connection, connection.cursor() as looking:

        def waits() -> bool:
            looking.execute("SHOW PROCESSLIST")
            return any("metadata lock" in str(row) for row in looking.fetchall())

        with source.pulling(Copy()):
            eventually(waits)
    assert not [thread.name for thread in enumerate_threads() if thread.name.startswith("tidemill-chunks")]
    cursor.execute("UNLOCK TABLES")


KEYS = {
    "DECIMAL(40,3)": ["-0.001", "0", "1.25", "99999999999999999999999999999999999.5"],
    "DATE": ["'0000-00-00'", "'0999-01-01'", "'2024-02-29'", "'2024-02-31'"],
    "DATETIME(3)": [
        "'0000-00-00 00:00:00'", "'2024-02-29 12:00:00.5'", "'2024-02-29 12:00:00.501'", "'2024-02-31'"
    ],
    "TIMESTAMP(6)": ["'2024-02-29 12:00:00'", "'2024-02-29 12:00:00.000001'"],
    "TIME(2)": ["'-30:00:00.5'", "'-00:00:01'", "'0'", "'100:00:00'"],
    "VARBINARY(9)": ["x''", "x'00'", "x'61'", "x'6100'", "x'ff27'"],
    "BINARY(3)": ["x'00'", "x'6120'", "x'ff'"],
    "VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": [
        "''", "'A'", "'a'", "'a b'", "'a\t'", "'it''s'", "'é'", "'\U0001f600'"
    ],
    "CHAR(9) CHARACTER SET ascii COLLATE ascii_general_ci": ["'b'", "'A'", "'_'", "'c d'", "'C'"],
    "VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci": [
        "'b'", "'Ä '", "'a\t'", "'ab c'", "'ß'", "'st'", "'_'", "'日本'", "'\U0001f600'",
        "'a\0b'", "'it''s'", "''"
    ],
    "CHAR(9) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci": ["'x'", "'É'", "'f'", "'ž '", "''"],
    "VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci": [
        "'z'", "'Å'", "'ä'", "'Ö'", "'_'", "'€'", "'ß'"
    ],
    "VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin": ["'z'", "'Z'", "'Å'", "'å'", "'€'"],
    "ENUM('c', 'a', 'it''s', 'B', '')": ["'c'", "'a'", "'it''s'", "'B'", "''", "0"],
    "BIT(9)": ["b'0'", "b'100000001'"],
    "YEAR": ["0", "1999", "2024"],
    "DOUBLE": ["-1.5e300", "-0.1", "0", "0.1", "0.30000000000000004", "16777217"],
    "FLOAT": ["-0.1", "0.1", "16777216", "3.4028235e38"],
}  # fmt: skip

OF_MYSQL = {"VARCHAR(9) COLLATE utf8mb4_0900_bin": ["'a'", "'a '", "'b'", "'é'"]}


def test_a_load_is_resumed_at_keys_of_other_types(source: Source, cursor: Any) -> None:
    cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
    keys = KEYS | (OF_MYSQL if source.is_mysql else {})
    names = {f"t{number}": column for number, column in enumerate(keys)}
    for name, column in names.items():
        cursor.execute(f"CREATE TABLE {name} (k {column} PRIMARY KEY, n INT)")
        cursor.execute(f"INSERT INTO {name} VALUES {', '.join(f'({value}, 0)' for value in keys[column])}")
    copy = Copy()
    chunks: Counter[str] = Counter()
    for items in (25, 45, 1_000):
        seen = count(1)
        copy.restart(lambda _, seen=seen, items=items: next(seen) > items)
        with source.pulling(copy, chunk_rows=1) as pulling:
            pulling.catch_up(source.end())
        chunks.update(
            item.chunk.table
            for item in pulling.items
            if isinstance(item, Transaction) and item.chunk is not None and item.rows
        )
        for name in names:
            cursor.execute(f"UPDATE {name} SET n = n + 1")
    copy.restart()
    with source.pulling(copy) as pulling:
        pulling.catch_up(source.end())
    for name, column in names.items():
        full_name = f"{source.database}.{name}"
        assert [row[1] for row in rows_of(copy)[full_name].elements()] == [3] * len(keys[column]), column
        assert chunks[full_name] >= len(keys[column]), column


def test_rows_change_while_they_are_read_in_the_order_of_any_key(
    source: Source, cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
    keys = KEYS | (OF_MYSQL if source.is_mysql else {})
    names = {f"t{number}": column for number, column in enumerate(keys)}
    for name, column in names.items():
        cursor.execute(f"CREATE TABLE {name} (k {column} PRIMARY KEY, n INT)")
        cursor.execute(f"INSERT INTO {name} VALUES {', '.join(f'({value}, 0)' for value in keys[column])}")
    begin = _ChunkReader._begin

    def begin_view(reader: _ChunkReader, *args: Any) -> Position:
        end = begin(reader, *args)
        source.execute(cursor, *[f"UPDATE {name} SET n = n + 1" for name in names])
        return end

    monkeypatch.setattr(_ChunkReader, "_begin", begin_view)
    copy = Copy()
    with source.pulling(copy, chunk_rows=3, snapshot_workers=1) as pulling:
        pulling.wait_for(lambda: any(not report.table for report in _reports(pulling)))
        pulling.catch_up(source.end())
    for name, column in names.items():
        cursor.execute(f"SELECT n FROM {name}")
        wanted = [n for (n,) in cursor.fetchall()]
        assert [row[1] for row in rows_of(copy)[f"{source.database}.{name}"].elements()] == wanted, column


@pytest.mark.parametrize("workers", [0, 1])
def test_keys_with_members_that_the_server_cannot_print_are_loaded(
    source: Source, cursor: Any, workers: int
) -> None:
    cursor.execute("CREATE TABLE t (k ENUM('b', '\U0001f600', 'a') CHARACTER SET utf8mb4 PRIMARY KEY)")
    cursor.execute("INSERT INTO t VALUES ('\U0001f600'), ('a'), ('b')")
    copy = Copy()
    with source.pulling(copy, chunk_rows=1, snapshot_workers=workers) as pulling:
        pulling.catch_up(source.end())
    assert rows_of(copy) == source_rows(source.server, source.database)


@pytest.mark.parametrize("workers", [0, 1])
def test_no_row_is_lost_by_keys_that_a_condition_compares_differently(sql: Client, workers: int) -> None:
    sql("CREATE TABLE t (k CHAR(9) COLLATE utf8mb4_nopad_bin PRIMARY KEY)")
    sql("INSERT INTO t VALUES ('a'), ('a\\0'), ('a\t'), ('b'), ('b!'), ('')")
    copy = Copy()
    with Pulling(
        sql.server, f"{sql.database}.*", copies=[copy], chunk_rows=1, snapshot_workers=workers
    ) as pulling:
        pulling.catch_up(binlog_end(sql.server))
    assert rows_of(copy) == source_rows(sql.server, sql.database)


@pytest.mark.parametrize("workers", [0, 1])
def test_the_report_of_a_resumed_load_counts_the_tables_and_rows_of_the_whole_load(
    source: Source, cursor: Any, workers: int
) -> None:
    for name in ("a", "b", "c"):
        cursor.execute(f"CREATE TABLE {name} (id INT, part INT, PRIMARY KEY (part, id))")
        cursor.execute(f"INSERT INTO {name} VALUES {', '.join(f'({n}, {n % 2})' for n in range(20))}")
        cursor.execute(f"ANALYZE TABLE {name}")
        cursor.fetchall()

    def ends(item: Item) -> bool:
        chunk = item.chunk if isinstance(item, Transaction) else None
        # 12 rows, of which the last one has the key (1, 3)
        return chunk is not None and chunk.table == f"{source.database}.b" and chunk.loaded.last == (1, 3)

    copy = Copy()
    copy.restart(ends)
    options: dict[str, Any] = {"chunk_rows": 4, "snapshot_workers": workers}
    with source.pulling(copy, **options) as pulling:
        pulling.catch_up(source.end())
    copy.restart()
    with source.pulling(copy, **options) as pulling:
        pulling.wait_for(lambda: any(not report.table for report in _reports(pulling)))
    first, *_, last = reports = _reports(pulling)
    assert (first.table, first.tables_done, first.tables) == (f"{source.database}.b", 1, 3)
    assert 32 <= first.rows <= 40
    assert {report.rows_estimated for report in reports} == {60}
    assert replace(last, estimates={}) == SnapshotReport("", 60, 60, 3, 3)
    assert last.estimates == {f"{source.database}.{name}": 20 for name in "abc"}


def _reports(pulling: Pulling) -> list[SnapshotReport]:
    return [message for message in pulling.messages if isinstance(message, SnapshotReport)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("INET4", ["9.0.0.1", "10.0.0.1", "0.0.0.0", "255.1.2.3", "100.0.0.0"]),
        ("INET6", ["fe80::1", "::", "::ffff:1.2.3.4", "::1", "a::", "1:2:3:4:5:6:7:8"]),
    ],
)
def test_addresses_are_ordered_as_by_the_server(sql: Client, kind: str, values: list[str]) -> None:
    sql(f"CREATE TABLE t (k {kind} PRIMARY KEY)", *(f"INSERT INTO t VALUES ('{one}')" for one in values))
    column = Column("k", "inet4" if kind == "INET4" else "inet6", nullable=False)
    table = Table(sql.database, "t", (column,), (0,))
    order = key_order(table)
    assert order is not None
    after: OrderedKey | None = None
    for address in sorted(values, key=lambda value: order((value,))):
        assert sql(chunk_query(table, KeyRange(after), 1)) == [(address,)]
        after = order((address,))
    assert sql(chunk_query(table, KeyRange(after), 1)) == []


def test_keys_of_several_columns_are_ordered_as_by_the_server(sql: Client) -> None:
    collation = "utf8mb4_general_ci"
    sql(
        "CREATE TABLE t (e ENUM('z','a','m'), k VARCHAR(9) CHARACTER SET utf8mb4, f ENUM('y','b'), "
        "PRIMARY KEY (e, k, f))"
    )
    columns = (
        Column("e", "enum", members=("z", "a", "m"), nullable=False),
        Column("k", "varchar", charset="utf8mb4", collation=collation, nullable=False),
        Column("f", "enum", members=("y", "b"), nullable=False),
    )
    table = Table(sql.database, "t", columns, (0, 1, 2))
    rows = [(e, k, f) for e in ("z", "a", "m") for k in ("", "Ä", "b ", "é") for f in ("y", "b")]
    sql(*(f"INSERT INTO t VALUES {row}" for row in rows))
    order = key_order(table)
    assert order is not None
    for after, row in pairwise(sorted(rows, key=order)):
        assert sql(chunk_query(table, KeyRange(order(after)), 1)) == [row]
        (found,) = sql(f"SELECT COUNT(*) FROM t WHERE {up_to(table, order(after))}")
        assert found == (sorted(rows, key=order).index(after) + 1,)


def test_tables_whose_rows_change_all_the_time_are_loaded(source: Source) -> None:
    shop = Shop(source.server, source.database)  # type: ignore[arg-type]
    shop.create(rows=150)
    copy = Copy()
    writers = [Shop(source.server, source.database, seed) for seed in (1, 2)]  # type: ignore[arg-type]
    threads = [Thread(target=writer.change, args=(150,), kwargs={"keys": 300}) for writer in writers]
    with source.pulling(copy, chunk_rows=5, snapshot_workers=3) as pulling:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pulling.catch_up(source.end())
    for one in (shop, *writers):
        one.close()
    assert rows_of(copy) == source_rows(source.server, source.database)
    assert sum(_starts_chunk(change) for batch in pulling.batches for change in batch.changes) > 50


def _starts_chunk(change: Any) -> bool:
    return change.key[-1] == DDL and isinstance(decode_statement(change.value), ChunkRows)
