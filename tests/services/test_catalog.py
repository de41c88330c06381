"""The catalog after every statement of a real server, compared with its information_schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest
from msgspec.structs import replace

import tidemill
from tests.services.pulling import Pulling
from tidemill.codec.mysql.entry import DDL, Query, decode_statement
from tidemill.codec.mysql.known_table import KnownTable
from tidemill.codec.mysql.position import Position
from tidemill.codec.mysql.tokens import Tokens, literal
from tidemill.dialects.mysql.client import Session, connect, disconnect
from tidemill.errors import SourceError
from tidemill.events import ChangeColumn, Column, CreateTable, Ddl, Item, Transaction
from tidemill.mounter.mysql.catalog import Catalog
from tidemill.mounter.mysql.defaults import plain_default
from tidemill.snapshot.mysql.definitions import read_table
from tidemill.snapshot.mysql.tables import find_tables
from tidemill.testing import cases
from tidemill.testing.mariadb import MariaDb

STATEMENTS = Path(__file__).with_name("catalog.txt")


class Bed:
    """A schema of a server, and the catalog of a puller that follows it from its first table on."""

    def __init__(self, server: MariaDb, schema: str, pulling: Pulling, session: Session) -> None:
        self.schema = schema
        self.pulling = pulling
        self.session = session
        self._connection = server.connect(database=schema)
        self._ends = 0

    @property
    def catalog(self) -> Catalog:
        return self.pulling.catalog

    def execute(self, *statements: str) -> list[Ddl]:
        """Run statements; return what comes of them."""
        begin = len(self.pulling.items)
        self._ends += 1
        end = f"end_{self._ends}"
        with self._connection.cursor() as cursor:
            for statement in [*statements, f"CREATE TABLE `{end}` (id INT)", f"DROP TABLE `{end}`"]:
                if statement.startswith("fails: "):
                    with pytest.raises(pymysql.err.Error):
                        cursor.execute(statement.removeprefix("fails: "))
                else:
                    cursor.execute(statement)
        self.pulling.wait_for(lambda: not self.catalog.exists((self.schema, end)) and self._ended(end))
        ddls = [item for item in self.pulling.items[begin:] if isinstance(item, Ddl)]
        return [ddl for ddl in ddls if ddl.table != end]

    def _ended(self, name: str) -> bool:
        last = self.pulling.items[-1]
        return any(isinstance(item, Ddl) and item.table == name for item in [last, *self.pulling.items[-3:]])

    def check(self) -> None:
        """Compare the catalog with the server. A table to be loaded again is read first."""
        there: dict[str, KnownTable] = {}
        for found in find_tables(self.session):
            name = found.schema, found.name
            if found.schema != self.schema or found.name.startswith("tmp_"):
                continue
            try:
                source = read_table(self.session, found)
            except SourceError:
                assert self.catalog.exists(name)
                assert self.catalog.get(name) is None
                continue
            assert source is not None
            if self.catalog.get(name) is None and self.catalog.exists(name):
                self.catalog.put(source.known)
            there[found.name] = plain(source.known)
        names = [table.name for table in self.catalog.tables() if table.schema == self.schema]
        known: dict[str, KnownTable] = {}
        for name in names:
            one = self.catalog.get((self.schema, name))
            assert one is not None
            assert one.has_unique or not there[name].has_unique
            if one.details.unknown:
                there[name] = replace(there[name], details=one.details)
            known[name] = plain(replace(one, has_unique=there[name].has_unique))
        assert known == there

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def bed(mariadb: MariaDb, database: str) -> Iterator[Bed]:
    mariadb.execute(
        "CREATE TABLE first (id INT PRIMARY KEY, name VARCHAR(9), at TIMESTAMP NULL, d TIME(3))",
        database=database,
    )
    with Pulling(mariadb, f"{database}.*", f"!{database}.tmp_*", snapshot=False) as pulling:
        session = connect(pulling.options)
        pulling.wait_for(lambda: pulling.catalog.state == "complete")
        bed = Bed(mariadb, database, pulling, session)
        yield bed
        bed.close()
        disconnect(session)


def plain(known: KnownTable) -> KnownTable:
    """Return a table with one spelling of CURRENT_TIMESTAMP, and of the SQL text in its details."""
    columns = tuple(
        replace(column, default=plain_default(column.default), on_update=plain_default(column.on_update))
        for column in known.table.columns
    )
    details = replace(
        known.details,
        partitions=plain_text(known.details.partitions),
        checks=tuple(replace(one, condition=plain_text(one.condition)) for one in known.details.checks),
        columns=tuple(replace(one, check=plain_text(one.check)) for one in known.details.columns),
    )
    return replace(known, table=replace(known.table, columns=columns), details=details)


def plain_text(sql: str) -> str:
    """Return SQL in one spelling of names and spaces, without the engine that a server prints."""
    tokens = Tokens(sql)
    words: list[str] = []
    while tokens.next.kind != "end":
        if tokens.accept("ENGINE", "=", "INNODB"):
            continue
        token = tokens.take()
        words.append(literal(token.value) if token.kind == "string" else token.value.lower())
    return " ".join(words)


def described(ddl: Ddl) -> str:
    if ddl.refusal or ddl.reload:
        return f"{ddl.table}: {'refused' if ddl.refusal else 'loaded again'}"
    return f"{ddl.table}: {', '.join(type(action).__name__ for action in ddl.actions)}"


def test_the_catalog_is_as_the_server_s_information_schema_after_every_statement(
    bed: Bed, rewrite: bool
) -> None:
    def play(statements: str) -> str:
        ddls = bed.execute(*statements.split(";\n"))
        bed.check()
        return "\n".join(map(described, ddls))

    bed.check()
    cases.expect_history(STATEMENTS, play, rewrite)


def test_a_table_made_of_a_query_comes_before_its_rows(bed: Bed) -> None:
    begin = len(bed.pulling.items)
    bed.execute("CREATE TABLE made AS SELECT 1 AS a UNION SELECT 2", "DROP TABLE made")
    created, rows, dropped = [item for item in bed.pulling.items[begin:] if touches(item, "made")]
    assert isinstance(created, Ddl)
    assert isinstance(created.actions[0], CreateTable)
    assert (created.last, created.position) == (False, "")
    assert isinstance(rows, Transaction)
    assert [row.after for row in rows.rows] == [(1,), (2,)]
    assert rows.last
    assert rows.commit_ts == created.commit_ts
    assert isinstance(dropped, Ddl)
    assert dropped.last


def touches(item: Item, table: str) -> bool:
    if isinstance(item, Ddl):
        return item.table == table
    return any(row.table.name == table for row in item.rows)


def test_a_statement_s_position_is_that_after_its_transaction(bed: Bed) -> None:
    (ddl,) = bed.execute("ALTER TABLE first ADD COLUMN n INT")
    changes = [change for batch in bed.pulling.batches for change in batch.changes]
    (query,) = [
        decode_statement(change.value)
        for change in changes
        if change.commit_ts == ddl.commit_ts and change.key[-1] == DDL
    ]
    assert isinstance(query, Query)
    assert Position.parse(query.position).rank == Position.parse(ddl.position).rank


def test_a_restarted_feed_knows_its_tables(mariadb: MariaDb, database: str, tmp_path: Path) -> None:
    def run(*statements: str) -> list[Ddl]:
        mariadb.execute(*statements, database=database)
        found: list[Ddl] = []
        with tidemill.open(
            mariadb.url(), [f"{database}.*"], data_dir=tmp_path, until="now", ddl=True
        ) as feed:
            for item in feed:
                if isinstance(item, Ddl):
                    found.append(item)
                feed.ack(item)
        return found

    (created,) = run("CREATE TABLE a (id INT PRIMARY KEY, n INT)", "INSERT INTO a VALUES (1, 1)")
    assert isinstance(created.actions[0], CreateTable)
    assert [described(ddl) for ddl in run("ALTER TABLE a MODIFY n BIGINT", "CREATE TABLE b LIKE a")] == [
        "a: ChangeColumn",
        "b: CreateTable",
    ]
    (last,) = run("ALTER TABLE b CHANGE n m BIGINT NOT NULL")
    (action,) = last.actions
    assert isinstance(action, ChangeColumn)
    assert action.before == Column("n", "bigint")
