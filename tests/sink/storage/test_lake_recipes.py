"""The statements and programs of docs/how-to/read-a-lake.md, on tables of each kind of lake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tidemill.events import LOGICAL_BITS, Chunk, TruncateTable
from tidemill.testing.changes import ORDERS, alter, create, delete, insert, transaction, update
from tidemill.testing.sink_conformance import feed

from .lakes import LAKES, Lake

DOCUMENTS = Path(__file__).parents[3] / "docs"
DOCUMENT = "".join((DOCUMENTS / name).read_text() for name in ("how-to/read-a-lake.md", "reference/lakes.md"))


def ts(milliseconds: int) -> int:
    return milliseconds << LOGICAL_BITS


HISTORY = [
    create(ts(1), ORDERS),
    transaction(ts(2), insert(ORDERS, 1, "early"), chunk=Chunk("")),
    alter(ts(5), ORDERS, "TRUNCATE", TruncateTable()),
    transaction(ts(8), insert(ORDERS, 1, "one"), insert(ORDERS, 2, "two")),
    transaction(ts(12), update(ORDERS, (1, "one"), (1, "uno")), insert(ORDERS, 3, "three")),
    transaction(ts(18), delete(ORDERS, 2, "two"), update(ORDERS, (3, "three"), (4, "four"))),
    transaction(ts(20), update(ORDERS, (4, "four"), (4, "vier")), update(ORDERS, (4, "vier"), (4, "quatre"))),
]
PRESENT = [(1, "uno"), (4, "quatre")]


@pytest.fixture(params=LAKES)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    lake = LAKES[request.param](tmp_path / "copy")
    feed(lake.sink(), HISTORY, max_rows=1)
    return lake


@pytest.fixture
def database(lake: Lake) -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as database:
        for name in ("shop.orders", "ddl", "versions"):
            database.register(name.removeprefix("shop."), lake.arrow(name))
        yield database


def block(heading: str, language: str = "sql") -> str:
    """Return the first block of code after a heading."""
    section = DOCUMENT[DOCUMENT.index(f"# {heading}\n") :]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


def test_present_rows(database):
    assert sorted(database.sql(block("Present rows")).fetchall()) == PRESENT


def test_present_rows_in_polars(lake):
    names: dict[str, Any] = {"orders": lake.arrow("shop.orders"), "ddl": lake.arrow("ddl")}
    exec(block("Present rows", "python"), names)
    assert sorted(names["present"].rows()) == PRESENT


@pytest.mark.parametrize(
    ("milliseconds", "rows"),
    [(2, [(1, "early")]), (6, []), (8, [(1, "one"), (2, "two")]), (19, [(1, "uno"), (4, "four")])],
)
def test_rows_as_of_a_ts(database, milliseconds, rows):
    condition = f" AND commit_ts <= {ts(milliseconds)}"
    sql = block("Present rows")
    for end in ("op <> 'insert'", "op <> 'delete'", "op IN ('truncate', 'drop')"):
        assert f"{end}\n" in sql
        sql = sql.replace(f"{end}\n", f"{end}{condition}\n")
    assert sorted(database.sql(sql).fetchall()) == rows


def test_changes_between_two(database):
    changes = database.sql(block("Changes between two")).fetchall()
    assert [(op, before and before["note"], after and after["note"]) for op, before, after, _ in changes] == [
        ("update", "one", "uno"),
        ("insert", None, "three"),
        ("delete", "two", None),
        ("update", "three", "four"),
    ]
    assert changes[0][3] == datetime.fromtimestamp(0.012, UTC).replace(tzinfo=None)


def test_the_history_of_each_row(database):
    states = database.sql(block("Each row's history")).fetchall()

    def milliseconds(at: datetime | None) -> int | None:
        return None if at is None else round(at.replace(tzinfo=UTC).timestamp() * 1000)

    assert sorted(
        (number, note, milliseconds(begin), milliseconds(end) or 0) for number, note, begin, end in states
    ) == [
        (1, "early", 2, 5),
        (1, "one", 8, 12),
        (1, "uno", 12, 0),
        (2, "two", 8, 18),
        (3, "three", 12, 18),
        (4, "four", 18, 20),
        (4, "quatre", 20, 0),
    ]


def test_one_point_in_all_tables(database, lake):
    assert database.sql(block("One point in all tables")).fetchall() == [(ts(20),)]
    by_version = re.findall(r"```sql\n(SELECT \"table\", arg_max.*?)```", DOCUMENT, re.DOTALL)[0]
    [(name, version)] = database.sql(by_version.replace("452984832000", str(ts(12)))).fetchall()
    assert name == "shop.orders"
    rows = lake.arrow(name, version).num_rows
    assert rows == sum(row["commit_ts"] <= ts(12) for row in lake.list(name))


@pytest.mark.parametrize("number", [0, 1], ids=["Delta", "Iceberg"])
def test_the_programs_that_open_the_tables(tmp_path, number):
    kind = [*LAKES.values()][number]
    feed(kind(tmp_path / "lake").sink(), HISTORY)
    programs = re.findall(r"```python\n(import duckdb.*?)```", DOCUMENT, re.DOTALL)
    exec(programs[number].replace("/var/lake", str(tmp_path / "lake")), {})
