"""README.md, the tutorials and some other pages do what they say; Spark's tutorial is in tests/spark."""

from __future__ import annotations

import asyncio
import runpy
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from tidemill.testing.mariadb import MariaDb
from tidemill.testing.postgres import PostgreSql
from tidemill.testing.progress import LOOK_SECONDS, RetryDelay

from .tutorials import PAGES, Execute, follow, shell


@pytest.fixture
def shop(private_mariadb: MariaDb) -> MariaDb:
    return private_mariadb.start()


@pytest.fixture
def execute(shop: MariaDb) -> Iterator[Execute]:
    with shop.connect() as connection, connection.cursor() as cursor:
        yield cursor.execute


def no_statements(statement: str) -> None:
    raise AssertionError(statement)


def test_each_page_is_followed_here() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {"index", "service", "postgres", "spark", "emulator"}


async def test_the_service_follows_and_answers(
    shop: MariaDb, execute: Execute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow("service", tmp_path, execute, shell(tmp_path, {"SHOP": shop.url()}))
    monkeypatch.setenv("SHOP", shop.url())
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    web = runpy.run_path("web.py")
    monkeypatch.delitem(sys.modules, "service")
    transport = httpx.ASGITransport(web["app"])
    async with web["following"](web["app"]), httpx.AsyncClient(transport=transport) as client:
        execute("INSERT INTO shop.orders VALUES (5, 'eve', 1)")
        patience = RetryDelay()
        while (await client.get("http://service/totals")).json() != {"ada": 1150, "eve": 501}:
            patience.check()
            await asyncio.sleep(LOOK_SECONDS)


def test_the_copy_in_postgresql_is_equal(
    shop: MariaDb,
    execute: Execute,
    postgresql: PostgreSql,
    postgres_database: str,
    tmp_path: Path,
) -> None:
    url = postgresql.url(postgres_database)
    follow("postgres", tmp_path, execute, shell(tmp_path, {"SHOP": shop.url(), "COPY": url}))
    with psycopg.connect(url) as copy:
        rows = copy.execute("SELECT id, customer, total::text, at::text, note FROM shop.orders ORDER BY id")
        assert rows.fetchall() == [
            (1, "ada", "10.50", "2026-03-01 12:00:00.125", "none"),
            (3, "eve", "5.00", "2026-03-02 08:30:00", "gift"),
        ]


@pytest.mark.parametrize("page", ["emulator", "../how-to/test-sinks-and-stages"])
def test_the_tests_of_a_program_of_ones_own_pass(page: str, tmp_path: Path) -> None:
    follow(page, tmp_path, no_statements, shell(tmp_path, {}))


def test_the_program_and_the_command_of_the_readme_run(
    shop: MariaDb, execute: Execute, tmp_path: Path
) -> None:
    execute("CREATE DATABASE shop")
    execute("CREATE TABLE shop.orders (id INT PRIMARY KEY)")
    execute("INSERT INTO shop.orders VALUES (1)")
    readme = (PAGES.parents[1] / "README.md").read_text()
    run = shell(tmp_path, {})

    program = readme.split("```python\n")[1].split("```")[0]
    there = '"mysql://repl:secret@127.0.0.1:3306"'
    assert there in program
    (tmp_path / "program.py").write_text(program.replace(there, f'"{shop.url()}", until="now"'))
    assert run("python program.py") == "insert shop.orders None {'id': 1}\n"

    (command,) = (line.strip() for line in readme.splitlines() if line.startswith("    tidemill run"))
    run(command.replace("mysql://repl:secret@db:3306", shop.url()) + " --until now")
    with sqlite3.connect(tmp_path / "copy.db") as copy:
        assert copy.execute('SELECT id FROM "shop.orders"').fetchall() == [(1,)]
