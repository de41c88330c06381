"""Tables as information_schema describes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tidemill.dialects.mysql.client import Session, connect
from tidemill.dialects.mysql.server import ServerOptions
from tidemill.emulator.mysql.mysql import Mysql
from tidemill.snapshot.mysql import definitions
from tidemill.snapshot.mysql.definitions import FEW, is_unchanged, read_tables
from tidemill.snapshot.mysql.tables import find_tables


@pytest.fixture
def mysql() -> Iterator[Mysql]:
    with Mysql() as mysql:
        mysql.execute("create database shop")
        yield mysql


@pytest.fixture
def session(mysql: Mysql) -> Iterator[Session]:
    options = ServerOptions(port=mysql.port, password=mysql.server.password)
    with closing(connect(options)) as session:
        yield session


@pytest.mark.parametrize("count", [1, FEW + 1])
def test_a_table_that_is_altered_while_it_is_described_has_one_definition(
    count: int, mysql: Mysql, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(count):
        mysql.execute(f"create table shop.t{number} (id int primary key)")
    statements = ["alter table shop.t0 add column late int"]
    table_of = definitions.table_of

    def altered_before(*arguments: object, **options: object) -> object:
        while statements:
            mysql.execute(statements.pop())
        return table_of(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(definitions, "table_of", altered_before)
    found = dict(read_tables(session, find_tables(session)))
    assert len(found) == count
    table = next(table for one, table in found.items() if one.name == "t0")
    assert [column.name for column in table.table.columns] == ["id", "late"]  # type: ignore[union-attr]
    assert is_unchanged(session, table)  # type: ignore[arg-type]


def test_a_table_that_is_dropped_while_it_is_described_is_left_out(
    mysql: Mysql, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql.execute("create table shop.t (id int primary key)")
    listed = find_tables(session)
    describe = definitions.describe

    def dropped_before(*arguments: object) -> object:
        if mysql.server.schema.tables:
            mysql.execute("drop table shop.t")
        return describe(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(definitions, "describe", dropped_before)
    assert list(read_tables(session, listed)) == []
