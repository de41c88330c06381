"""The page with feeds that run: what an operator does in a minute, MariaDB to MariaDB and TiDB to SQLite."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tidemill.client import Client
from tidemill.codec.tidb.key import record_key
from tidemill.emulator.sql.sql import Tidb
from tidemill.server.asgi import application
from tidemill.server.registry import Registry
from tidemill.server.security import Access
from tidemill.server.serving import HttpServer
from tidemill.testing import mariadb_client
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.progress import eventually

from .conftest import Open

Sql = mariadb_client.Client


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServer]:
    """A server with a directory for feeds."""
    with (
        Registry(directory=tmp_path / "feeds") as registry,
        HttpServer(application(registry, Access()), "127.0.0.1:0") as started,
    ):
        yield started


class Copied:
    """A table `item` of one database and its copy in another one."""

    def __init__(self, sql: Sql, mariadb: MariaDb) -> None:
        self.sql = sql
        self.source, self.copy = sql.database, f"{sql.database}_copy"
        self.url = mariadb.url()
        sql(
            f"CREATE DATABASE {self.copy}",
            "CREATE TABLE item (id INT PRIMARY KEY, note VARCHAR(20))",
            "INSERT INTO item VALUES (1, 'a'), (2, 'b')",
        )

    def document(self, sink: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return {
            "name": "shop",
            "source": {"url": self.url, "tables": [f"{self.source}.*"]},
            "sink": [{"name": "copy", "url": self.url, "schema": self.copy, **(sink or {})}],
            **more,
        }

    def rows(self, table: str = "item") -> list[tuple[Any, ...]]:
        return self.sql(f"SELECT * FROM {self.copy}.{table} ORDER BY 1")

    def arrives(self, *rows: tuple[Any, ...], table: str = "item") -> None:
        def found() -> list[tuple[Any, ...]]:
            tables = self.sql(f"SHOW TABLES IN {self.copy} LIKE '{table}'")
            return self.rows(table) if tables else []

        eventually(lambda: found() == [*rows], sign=found)


@pytest.fixture
def copied(sql: Sql, mariadb: MariaDb) -> Iterator[Copied]:
    made = Copied(sql, mariadb)
    yield made
    sql(f"DROP DATABASE {made.copy}")


@pytest.fixture
def start(server: HttpServer, open_page: Open) -> Callable[[dict[str, Any], str], Page]:
    """Return a function that creates a feed, opens the page, and waits until the feed has a condition."""

    def started(document: dict[str, Any], condition: str = "Idle|Following") -> Page:
        Client(server.url).create(document)
        page = open_page(server.url)
        is_in(page, condition)
        return page

    return started


def is_in(page: Page, condition: str) -> None:
    expect(page.locator(".badge").first).to_contain_text(re.compile(condition))


def confirm(page: Page, title: str, verb: str) -> None:
    page.get_by_role("dialog", name=title).get_by_role("button", name=verb, exact=True).click()


def test_a_failed_feed_is_resumed_in_three_clicks(copied: Copied, start: Any) -> None:
    page = start(copied.document())
    copied.arrives((1, "a"), (2, "b"))
    copied.sql(f"DELETE FROM {copied.copy}.item WHERE id = 1", "UPDATE item SET note = 'c' WHERE id = 1")
    expect(page.get_by_role("heading", level=1)).to_have_text("The feed needs you")
    expect(page.get_by_role("row", name="shop")).to_contain_text(re.compile("Failed.*item", re.DOTALL))
    copied.sql(f"INSERT INTO {copied.copy}.item VALUES (1, 'a')")
    page.get_by_role("link", name="shop").click()
    page.get_by_role("button", name="Resume").click()
    confirm(page, "Resume shop?", "Resume")
    is_in(page, "Idle|Following")
    copied.arrives((1, "c"), (2, "b"))


def test_a_feed_is_paused_and_resumed(copied: Copied, start: Any) -> None:
    page = start(copied.document())
    copied.arrives((1, "a"), (2, "b"))
    page.get_by_role("link", name="shop").click()
    page.get_by_role("button", name="Pause").click()
    confirm(page, "Pause shop?", "Pause")
    expect(page.locator("#said")).to_contain_text("shop is paused.")
    is_in(page, "Paused")
    copied.sql("DELETE FROM item WHERE id = 2")
    assert copied.rows() == [(1, "a"), (2, "b")]
    page.get_by_role("button", name="Resume").click()
    confirm(page, "Resume shop?", "Resume")
    is_in(page, "Idle|Following")
    copied.arrives((1, "a"))
    page.get_by_role("link", name="History").click()
    expect(page.locator(".entries li", has_text="paused by 127.0.0.1")).to_be_visible()


def test_a_comparison_shows_what_differs(copied: Copied, start: Any) -> None:
    page = start(copied.document())
    copied.arrives((1, "a"), (2, "b"))
    page.get_by_role("link", name="shop").click()
    page.get_by_role("button", name="Compare").click()
    confirm(page, "Compare shop with its target?", "Compare")
    first = page.get_by_role("article", name="Comparison 1")
    expect(first).to_contain_text("Equal")
    copied.sql(f"DELETE FROM {copied.copy}.item WHERE id = 1")
    page.get_by_role("button", name="Compare …").click()
    dialog = page.get_by_role("dialog", name="Compare shop with its target?")
    dialog.get_by_label("Tables").fill(f"{copied.source}.item")
    dialog.get_by_role("button", name="Compare").click()
    second = page.get_by_role("article", name="Comparison 2")
    expect(second).to_contain_text("1 different")
    expect(second.get_by_role("table")).to_contain_text(
        re.compile(r'item \{"id":1\}.*missing in the target', re.DOTALL)
    )


def test_dead_letters_are_applied_or_discarded(copied: Copied, start: Any) -> None:
    page = start(copied.document({"on_error": "dead letters"}))
    copied.arrives((1, "a"), (2, "b"))
    copied.sql(
        f"ALTER TABLE {copied.copy}.item ADD CONSTRAINT short CHECK (length(note) < 3)",
        "INSERT INTO item VALUES (3, 'too long'), (4, 'too long'), (5, 'd')",
    )
    expect(page.get_by_role("row", name="shop")).to_contain_text("2 dead letters")
    page.get_by_role("link", name="shop").click()
    page.get_by_role("link", name="Show 2 dead letters").click()
    letter = page.get_by_role("row", name=re.compile("item id=4"))
    expect(letter).to_contain_text("short")
    letter.get_by_role("button", name="Retry").click()
    dialog = page.get_by_role("dialog", name="Retry the dead letters of")
    dialog.get_by_role("button", name="Retry").click()
    expect(page.locator("#refused")).to_contain_text("0 dead letters applied; rejected again")
    letter.get_by_role("button", name="Discard").click()
    page.get_by_role("dialog").get_by_role("button", name="Discard").click()
    expect(letter).to_have_count(0)
    copied.sql(f"ALTER TABLE {copied.copy}.item DROP CONSTRAINT short")
    page.get_by_role("button", name="Retry all").click()
    confirm(page, "Retry the dead letter?", "Retry")
    expect(page.locator("#said")).to_contain_text("1 dead letter applied.")
    expect(page.get_by_text("There are none.")).to_be_visible()
    copied.arrives((1, "a"), (2, "b"), (3, "too long"), (5, "d"))
    is_in(page, "Idle|Following")


def test_a_statement_is_skipped(copied: Copied, start: Any) -> None:
    page = start(copied.document(on_ddl=[{"tables": ["*.*"], "kinds": ["drop table"], "action": "stop"}]))
    copied.arrives((1, "a"), (2, "b"))
    copied.sql(
        "CREATE TABLE other (id INT PRIMARY KEY)", "DROP TABLE other", "INSERT INTO item VALUES (3, 'c')"
    )
    is_in(page, "Failed")
    page.get_by_role("link", name="shop").click()
    page.get_by_role("button", name="Skip this statement").click()
    page.get_by_role("dialog").get_by_role("button", name="Skip and resume").click()
    is_in(page, "Idle|Following")
    copied.arrives((1, "a"), (2, "b"), (3, "c"))
    assert copied.rows("other") == []


def test_a_lock_of_merged_tables_is_resolved(copied: Copied, start: Any) -> None:
    copied.sql("DROP TABLE item", *[f"CREATE TABLE item_{n} (id INT PRIMARY KEY, note INT)" for n in (1, 2)])
    route = {"tables": [f"{copied.source}.item_*"], "target": f"{copied.source}.item"}
    page = start(copied.document(route=[route]))
    copied.sql("INSERT INTO item_1 VALUES (1, 1)", "INSERT INTO item_2 VALUES (2, 2)")
    copied.arrives((1, 1), (2, 2))
    copied.sql("ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5", "INSERT INTO item_1 VALUES (3, 3, 3)")
    page.get_by_role("link", name="shop").click()
    page.get_by_role("link", name="Show 1 lock").click()
    lock = page.get_by_role("article")
    expect(lock).to_contain_text("ALTER TABLE item_1 ADD COLUMN c INT DEFAULT 5")
    lock.get_by_role("button", name="Execute").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It will execute 'ALTER TABLE item_1")
    dialog.get_by_role("button", name="Execute").click()
    expect(page.get_by_text("There are none.")).to_be_visible()
    copied.arrives((1, 1, 5), (2, 2, 5), (3, 3, 3))


def test_a_removed_feed_is_gone_with_its_data(copied: Copied, start: Any, tmp_path: Path) -> None:
    page = start(copied.document())
    copied.arrives((1, "a"), (2, "b"))
    page.get_by_role("link", name="shop").click()
    page.get_by_role("button", name="Remove").click()
    dialog = page.get_by_role("dialog", name="Remove shop?")
    dialog.get_by_label("Remove its data directory too").check()
    dialog.get_by_role("textbox").fill("shop")
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("No feeds")
    expect(page.locator("#said")).to_contain_text("shop is removed.")
    assert not (tmp_path / "feeds" / "data" / "shop").exists()


def test_a_refusal_is_said_in_the_server_s_words(copied: Copied, start: Any) -> None:
    page = start(copied.document())
    page.get_by_role("link", name="shop").click()
    page.get_by_role("button", name="Compare").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Tables").fill("nothing.like_it")
    dialog.get_by_role("button", name="Compare").click()
    page.get_by_role("link", name="Comparisons").click()
    expect(page.locator("main, #refused").filter(has_text="nothing.like_it").first).to_be_visible()


def test_tidb_to_sqlite(start: Any, tmp_path: Path) -> None:
    with Tidb(stores=1, tick_seconds=0.02) as tidb:
        tidb.execute("create database shop")
        tidb.execute("create table shop.item (id int primary key)")
        document = {
            "name": "tidb",
            "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
            "sink": [{"name": "copy", "url": f"sqlite:///{tmp_path}/copy.db"}],
        }
        page = start(document)
        page.get_by_role("link", name="tidb").click()
        with tidb.transaction() as txn:
            for number in range(1_234):
                txn.insert("shop.item", (number,))
        decoder = page.locator(".stage").filter(has=page.get_by_role("heading", name="Decoder"))
        expect(decoder).to_contain_text("1,234")
        table = tidb.schema.table("shop.item").info.id
        tidb.leave_lock(record_key(table, 5_001), primary=record_key(table, 5_000), ttl_ms=7_200_000)
        source = page.locator(".stage").filter(has=page.get_by_role("heading", name="Source"))
        expect(source).to_contain_text(re.compile("its lock is on row 500[01] of table shop.item"))
        with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
            assert copy.execute('select count(*) from "shop.item"').fetchone() == (1_234,)
        page.get_by_role("button", name="Pause").click()
        confirm(page, "Pause tidb?", "Pause")
        is_in(page, "Paused")
