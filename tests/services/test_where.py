"""Conditions on rows, compared with what the source's server says of the same rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

import tidemill
from tidemill.chain.selection.where import Where
from tidemill.events import Row, Table
from tidemill.testing.feed_run import run_to_end
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client
from tidemill.testing.mysql import MySql

COLUMNS = {
    "n": ("INT", ["0", "1", "-1", "7", "8"]),
    "m": ("BIGINT UNSIGNED", ["0", "1", "7", "9223372036854775808", "18446744073709551615"]),
    "price": ("DECIMAL(30,3)", ["0.1", "1", "7.000", "-1.5", "123456789012345678901234567.891"]),
    "ratio": ("DOUBLE", ["0.1", "1", "7", "-1.5", "1234567890.25"]),
    "bits": ("BIT(9)", ["0", "1", "7", "511"]),
    "name": ("VARCHAR(9) COLLATE utf8mb4_general_ci", ["'a'", "'Ä'", "'b  '", "'B'", "'a%b'", "'ab'", "''"]),
    "other": ("VARCHAR(9) COLLATE utf8mb4_general_ci", ["'A'", "'á '", "'b'", "'a_b'", "''"]),
    "exact": ("VARCHAR(9) COLLATE utf8mb4_bin", ["'a'", "'A'", "'a '", "'😀'", "'aXb'"]),
    "latin": ("CHAR(9) CHARACTER SET latin1", ["'a'", "'é'", "'E'", "'x y'"]),
    "raw": ("VARBINARY(9)", ["X'00'", "X'0aff'", "X'0AFF00'", "X''"]),
    "day": ("DATE", ["'2026-01-31'", "'2026-02-01'", "'0999-12-31'"]),
    "at": ("DATETIME(3)", ["'2026-01-31'", "'2026-01-31 00:00:00.5'", "'1000-01-01 10:00:00'"]),
    "span": ("TIME(2)", ["'00:00:00'", "'-12:30:00.5'", "'838:59:59'"]),
    "born": ("YEAR", ["1901", "1999", "2155"]),
    "size": ("ENUM('small','large')", ["'small'", "'large'"]),
}
COMPARED = [{"n", "m", "price", "bits"}, {"name", "other"}]
"""Columns that can be compared with each other."""
PATTERNS = ["'a%'", "'%B'", "'a_b'", r"'a\%b'", r"'a\_b'", "'%'", "'_'", "''"]
TEXTS = ["name", "other", "exact", "latin"]


@pytest.fixture(params=["MariaDB", "MySQL"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    name = {"MariaDB": "mariadb", "MySQL": "mysql97"}[request.param]
    server = request.getfixturevalue(name)
    assert isinstance(server, (MariaDb, MySql))
    schema = "where_cases"
    server.execute(f"CREATE DATABASE {schema}")
    client = Client(server, schema)
    yield client
    client(f"DROP DATABASE {schema}")


def condition(random: Random, depth: int = 0) -> str:
    if depth < 3 and random.random() < 0.5:
        if random.random() < 0.3:
            return f"NOT {bracketed(random, depth)}"
        parts = [bracketed(random, depth) for _ in range(random.randint(2, 3))]
        return random.choice([" AND ", " OR "]).join(parts)
    name = random.choice(list(COLUMNS))
    values = COLUMNS[name][1]
    if name == "size":
        return random.choice(["size = 'small'", "size <> 'small'", "size IN ('small', 'large')"])
    negated = random.choice(["", "NOT "])
    match random.randrange(6 if name in TEXTS else 5):
        case 0:
            return f"{name} IS {negated}NULL"
        case 1:
            return f"{name} {negated}IN ({', '.join(random.choices(values, k=random.randint(1, 3)))})"
        case 2:
            return f"{name} {negated}BETWEEN {random.choice(values)} AND {random.choice(values)}"
        case 3:
            sign = random.choice(["=", "<>", "!=", "<", "<=", ">", ">="])
            return f"{name} {sign} {random.choice(values)}"
        case 4:
            for group in COMPARED:
                if name in group:
                    return f"{name} {random.choice(['=', '<>', '<', '>='])} {random.choice(sorted(group))}"
            return f"{random.choice(values)} <= {name}"
    return f"{name} {negated}LIKE {random.choice(PATTERNS)}"


def bracketed(random: Random, depth: int) -> str:
    inner = condition(random, depth + 1)
    return f"({inner})" if random.random() < 0.7 else inner


def made(client: Client, random: Random, count: int, directory: Path) -> tuple[Table, list[Row]]:
    """Make a table of random rows; return it and them as a feed reads them."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    client(
        f"CREATE TABLE t (id INT PRIMARY KEY, {columns}) DEFAULT CHARSET utf8mb4 COLLATE utf8mb4_general_ci"
    )
    for number in range(count):
        values = [random.choice([*values, "NULL"]) for _, values in COLUMNS.values()]
        client(f"INSERT INTO t VALUES ({number}, {', '.join(values)})")
    table = f"{client.database}.t"
    with tidemill.open(client.server.url(), [table], data_dir=directory, until="now") as feed:
        found = []
        for item in feed:
            found += item.rows
            feed.ack(item)
    return found[0].table, [row.after for row in found if row.after is not None]


@pytest.mark.parametrize(
    ("seed", "rows", "conditions"),
    [(0, 60, 150), *(pytest.param(seed, 1000, 3000, marks=pytest.mark.soak) for seed in range(1, 6))],
)
def test_conditions_are_true_false_or_unknown_where_the_server_says_so(
    client: Client, tmp_path: Path, seed: int, rows: int, conditions: int
) -> None:
    random = Random(seed)
    table, read = made(client, random, rows, tmp_path)
    for _ in range(conditions):
        text = condition(random)
        test = Where(text, "where").test(table)
        ours = {row[0]: test(row) for row in read}
        theirs = {
            key: None if truth is None else bool(truth) for key, truth in client(f"SELECT id, {text} FROM t")
        }
        assert ours == theirs, text


def test_a_copy_has_the_rows_for_which_the_condition_is_not_true(client: Client, tmp_path: Path) -> None:
    client("CREATE TABLE t (id INT PRIMARY KEY, n INT, note VARCHAR(9))")
    client("INSERT INTO t VALUES (1, 1, 'a'), (2, 5, 'b'), (3, NULL, 'c'), (4, 9, 'd')")
    config = {
        "source": {"url": client.server.url(), "tables": [f"{client.database}.*"]},
        "sink": [{"url": f"sqlite:///{tmp_path}/copy.db"}],
        "data_dir": str(tmp_path / "state"),
        "filter": [{"tables": [f"{client.database}.t"], "where": "n > 4"}],
    }
    loads: list[str] = []

    def same(columns: str) -> None:
        run_to_end(config, loads)
        with closing(sqlite3.connect(tmp_path / "copy.db")) as copy:
            found = copy.execute(f'SELECT {columns} FROM "{client.database}.t" ORDER BY id').fetchall()
        wanted = client(f"SELECT {columns} FROM t WHERE (n > 4) IS NOT TRUE ORDER BY id")
        assert found == [tuple(row) for row in wanted]

    same("id, n, note")
    client("UPDATE t SET n = n + 4")
    client("UPDATE t SET n = 0 WHERE id = 4")
    client("INSERT INTO t VALUES (5, 5, 'e'), (6, 4, 'f')")
    client("DELETE FROM t WHERE id IN (2, 3)")
    same("id, n, note")
    client("UPDATE t SET id = id + 10, n = 4")
    same("id, n, note")
    client("ALTER TABLE t ADD COLUMN more INT, MODIFY n BIGINT")
    client("UPDATE t SET n = 30000000000 WHERE id > 13")
    same("id, n, note, more")
    assert loads == []
    client("ALTER TABLE t MODIFY n DECIMAL(20, 2)")
    client("UPDATE t SET n = 3.5 WHERE id > 13")
    same("id, more, note")
    assert len(loads) == 1
    assert "column n of the filter where = 'n > 4' was changed" in loads[0]
