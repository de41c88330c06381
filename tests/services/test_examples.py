"""The examples of what people build on changes, each as its reader would run it."""

from __future__ import annotations

import json
import os
import runpy
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest
from confluent_kafka import Consumer

from tidemill.testing.child import Child
from tidemill.testing.kafka_mock import MockKafka
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.progress import completed, eventually

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def shop(mariadb: MariaDb, database: str) -> Iterator[Client]:
    """A session in the schema that all examples name."""
    mariadb.execute("DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop")
    client = Client(mariadb, "shop")
    yield client
    client("DROP DATABASE shop")
    client.close()


def example(name: str) -> SimpleNamespace:
    """The names of an example, which isn't run."""
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / f"{name}.py")))


def test_a_cache_loses_what_changes(shop: Client, mariadb: MariaDb, tmp_path: Path) -> None:
    shop(
        "CREATE TABLE products (id INT PRIMARY KEY, price INT)",
        "INSERT INTO products VALUES (1, 10), (2, 20)",
    )
    made = example("cached")
    loads: list[int] = []
    during: list[Callable[[], object]] = []

    def load(key: int) -> object:
        loads.append(key)
        rows = mariadb.execute(f"SELECT price FROM products WHERE id = {key}", database="shop")
        value = rows[0] if rows else None
        for happens in during:
            happens()
        return value

    cache = made.Cache(load)
    with made.follow(cache, mariadb.url(), tmp_path / "state") as handle:
        eventually(lambda: handle.status().rows >= 2)
        assert [cache.get(1), cache.get(1), cache.get(2)] == [(10,), (10,), (20,)]
        assert loads == [1, 2]
        shop("UPDATE products SET price = 11 WHERE id = 1")
        eventually(lambda: cache.get(1) == (11,))
        assert cache.get(2) == (20,)
        assert loads.count(2) == 1
        shop("DELETE FROM products WHERE id = 2")
        eventually(lambda: cache.get(2) is None)

        def change() -> None:
            during.clear()
            before = handle.status().rows
            shop("UPDATE products SET price = 12 WHERE id = 1")
            eventually(lambda: handle.status().rows > before)

        shop("UPDATE products SET price = 0 WHERE id = 1")
        eventually(lambda: 1 not in cache._values)
        during.append(change)
        assert cache.get(1) == (0,), "read before the change"
        assert cache.get(1) == (12,), "and not kept"


def test_events_reach_a_browser(shop: Client, mariadb: MariaDb, tmp_path: Path) -> None:
    shop("CREATE TABLE item (id INT PRIMARY KEY, price DECIMAL(5,2))")
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "--app-dir",
        str(EXAMPLES),
        "--port",
        "0",
        "server_sent_events:app",
    ]
    environment = {"SOURCE": mariadb.url(), "DATA_DIR": str(tmp_path / "state")}
    with Child(command, tmp_path / "log", env=environment) as child:
        url = child.wait_until(lambda: found_in(child.output(), "running on "))
        with httpx.Client(timeout=60) as client, client.stream("GET", f"{url}/changes") as answer:
            lines = answer.iter_lines()
            assert next(lines) == ": connected"
            shop("INSERT INTO item VALUES (1, 9.50)")
            data = (line.removeprefix("data: ") for line in lines if line.startswith("data: "))
            (row,) = json.loads(next(data))
            assert row == {
                "op": "insert",
                "table": "shop.item",
                "before": None,
                "after": {"id": 1, "price": "9.50"},
            }
            shop("UPDATE item SET price = 10 WHERE id = 1")
            (row,) = json.loads(next(data))
            assert (row["op"], row["before"]["price"], row["after"]["price"]) == ("update", "9.50", "10.00")


def found_in(text: str, words: str) -> str:
    """The word after these words; empty if they aren't there yet."""
    return text.partition(words)[2].partition(" ")[0]


def test_an_outbox_sends_what_is_committed(
    shop: Client, mariadb: MariaDb, mock_kafka: MockKafka, tmp_path: Path
) -> None:
    made = example("outbox")
    create = made.__doc__.partition("CREATE TABLE")[2].partition("\n    )\n")[0]
    shop(f"CREATE TABLE{create})")
    row = "INSERT INTO outbox (topic, about, payload) VALUES ('orders', 'order 1', '{}')"
    shop("BEGIN", row.format("created"), row.format("paid"), "COMMIT")
    shop("BEGIN", row.format("never"), "ROLLBACK")
    shop("DELETE FROM outbox WHERE id = 1")
    made.main(mariadb.url(), mock_kafka.brokers, str(tmp_path / "state"), "now")
    shop(row.format("shipped"))
    made.main(mariadb.url(), mock_kafka.brokers, str(tmp_path / "state"), "now")
    consumer = Consumer(
        {"bootstrap.servers": mock_kafka.brokers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    messages: list[Any] = []
    eventually(lambda: [messages.extend(consumer.consume(10, 0.1)), len(messages) >= 2][-1])
    consumer.close()
    assert [(one.key(), one.value()) for one in messages] == [(b"order 1", b"paid"), (b"order 1", b"shipped")]
    assert len({one.headers()[0][1] for one in messages}) == 2


def test_an_index_finds_what_is_there(shop: Client, mariadb: MariaDb, tmp_path: Path) -> None:
    shop(
        "CREATE TABLE articles (id INT PRIMARY KEY, title VARCHAR(50), text TEXT)",
        "INSERT INTO articles VALUES (1, 'Tides', 'the sea rises'), (2, 'Mills', 'the wind turns')",
    )
    made = example("search_index")
    given = str(tmp_path / "index.db"), str(tmp_path / "state"), "now"
    made.main(mariadb.url(), *given)
    shop("UPDATE articles SET text = 'the sea turns' WHERE id = 2", "DELETE FROM articles WHERE id = 1")
    made.main(mariadb.url(), *given)
    index = made.Index(given[0])
    assert (index.find("sea"), index.find("wind"), index.find("rises")) == (["Mills"], [], [])
    index.close()


def test_a_frame_follows_its_table(shop: Client, mariadb: MariaDb, tmp_path: Path) -> None:
    shop(
        "CREATE TABLE orders (id INT PRIMARY KEY, total DECIMAL(8,2))",
        "INSERT INTO orders VALUES (1, 1.50), (2, 2.50), (3, NULL)",
    )
    made = example("mariadb_to_polars")
    given = mariadb.url(), str(tmp_path / "state")
    rows = made.merged(made.pl.DataFrame(), made.changes(*given))
    shop(
        "UPDATE orders SET total = 9 WHERE id = 1",
        "DELETE FROM orders WHERE id = 2",
        "INSERT INTO orders VALUES (4, 4)",
    )
    shop("UPDATE orders SET total = 10 WHERE id = 1", "UPDATE orders SET id = 5 WHERE id = 3")
    rows = made.merged(rows, made.changes(*given))
    wanted = [(1, Decimal(10)), (4, Decimal(4)), (5, None)]
    assert sorted(rows.select("id", "total").rows()) == wanted
    assert sorted(made.merged(rows, made.changes(*given)).select("id", "total").rows()) == wanted


def test_changes_are_objects_of_models(shop: Client, mariadb: MariaDb, tmp_path: Path) -> None:
    shop(
        "CREATE TABLE orders (id INT PRIMARY KEY, total DECIMAL(8,2), note TEXT)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "INSERT INTO orders VALUES (1, 1.50, 'x')",
        "INSERT INTO other VALUES (1)",
    )
    made = example("sqlalchemy_models")
    seen: list[tuple[str, Any, Any]] = []
    given = (lambda *found: seen.append(found)), mariadb.url(), str(tmp_path / "state"), "now"
    made.follow(*given)
    shop("UPDATE orders SET total = 2 WHERE id = 1")
    made.follow(*given)
    (loaded, none, first), (updated, before, after) = seen
    assert (loaded, none, updated) == ("insert", None, "update")
    assert {type(one) for one in (first, before, after)} == {made.Order}
    assert [(one.id, one.total) for one in (first, before, after)] == [
        (1, Decimal("1.50")),
        (1, Decimal("1.50")),
        (1, Decimal("2.00")),
    ]


def test_changes_are_objects_of_django_models(shop: Client, mariadb: MariaDb, tmp_path: Path) -> None:
    shop(
        "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(50), note TEXT)",
        "CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT, total DECIMAL(8,2),"
        " is_paid BOOL, placed DATETIME(6), details JSON)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
        "INSERT INTO customers VALUES (7, 'Ada', 'x')",
        "INSERT INTO other VALUES (1)",
    )
    command = [sys.executable, EXAMPLES / "django_models.py", mariadb.url(), tmp_path / "state", "now"]

    def printed() -> list[str]:
        done = completed(command, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert printed() == ["insert: None -> customer 7 (Ada)"]
    shop(
        """INSERT INTO orders VALUES (1, 7, 1.50, 0, '2026-05-04 03:02:01', '{"gift": [true, null]}')""",
        "UPDATE orders SET total = NULL, is_paid = 1 WHERE id = 1",
        "DELETE FROM customers",
    )
    rest = "2026-05-04 03:02:01+00:00, {'gift': [True, None]})"
    assert printed() == [
        f"insert: None -> order 1 of 7 (1.50, open, {rest}",
        f"update: order 1 of 7 (1.50, open, {rest} -> order 1 of 7 (None, paid, {rest}",
        "delete: customer 7 (Ada) -> None",
    ]


OTHER_FIELDS = """
import sys

from django.db import models
from django_models import MODELS, follow


class Visit(models.Model):
    guest = models.UUIDField(primary_key=True)
    day = models.DateField()
    began = models.TimeField(null=True, db_column="start")
    lasted = models.DurationField()
    noted = models.DateTimeField()
    stars = models.IntegerField(default=3)

    class Meta:
        app_label = "shop"


MODELS["visits"] = Visit
names = [field.attname for field in Visit._meta.concrete_fields]
follow(lambda op, before, after: print([getattr(after, name) for name in names]), *sys.argv[1:])
"""


def test_fields_of_django_have_the_types_of_their_queries(
    shop: Client, mariadb: MariaDb, tmp_path: Path
) -> None:
    shop(
        "CREATE TABLE visits (guest CHAR(32) PRIMARY KEY, day DATE, start TIME(6), lasted BIGINT,"
        " noted TIMESTAMP(6))",
        "SET time_zone = '+00:00'",
        "INSERT INTO visits VALUES"
        f" ('{'0' * 31}1', '2026-05-04', '09:30:00.5', 1500000, '2026-05-04 12:00:00'),"
        f" ('{'0' * 31}2', '2026-05-05', NULL, 60000000, '2026-05-05 12:00:00')",
    )
    program = tmp_path / "program.py"
    program.write_text(OTHER_FIELDS)
    command = [sys.executable, program, mariadb.url(), tmp_path / "state", "now"]
    done = completed(command, env=os.environ | {"PYTHONPATH": str(EXAMPLES)})
    assert done.returncode == 0, done.stderr
    wanted = [
        [
            UUID(int=1),
            date(2026, 5, 4),
            time(9, 30, 0, 500000),
            timedelta(seconds=1.5),
            datetime(2026, 5, 4, 12, tzinfo=UTC),
            3,
        ],
        [UUID(int=2), date(2026, 5, 5), None, timedelta(minutes=1), datetime(2026, 5, 5, 12, tzinfo=UTC), 3],
    ]
    assert done.stdout.splitlines() == [repr(row) for row in wanted]
