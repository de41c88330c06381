"""Rows of one source in several sinks: by a hash, and by conditions; compared with the source."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tidemill.engine.options import feed_options
from tidemill.engine.preflight import check_feed
from tidemill.errors import SinkError
from tidemill.testing.feed_run import run_to_end
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb_client import Client


@pytest.fixture
def client(mariadb: MariaDb, database: str) -> Client:
    return Client(mariadb, database)


def config(client: Client, directory: Path, *sinks: dict[str, Any]) -> dict[str, Any]:
    source = {"url": client.server.url(), "tables": [f"{client.database}.*"]}
    return {"source": source, "sink": list(sinks), "data_dir": str(directory / "state")}


def rows(client: Client, path: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as copy:
        return copy.execute(f'SELECT {columns} FROM "{client.database}.t"').fetchall()


def churn(client: Client, random: Random, steps: int) -> None:
    """Change rows and their keys at random, some in transactions."""
    for _ in range(steps):
        key, other, n = (random.randrange(60) for _ in range(3))
        client(
            random.choice(
                [
                    f"INSERT IGNORE INTO t VALUES ({key}, 'w{other}', {n})",
                    f"REPLACE INTO t VALUES ({key}, 'W{other}', {n})",
                    f"UPDATE t SET n = {n} WHERE n < {other}",
                    f"UPDATE IGNORE t SET id = {other}, word = UPPER(word) WHERE id = {key}",
                    f"UPDATE t SET id = id + 100 ORDER BY id DESC LIMIT {1 + n % 3}",
                    f"DELETE FROM t WHERE id IN ({key}, {other}, 1{n:02})",
                ]
            )
        )


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 60), *(pytest.param(seed, 600, marks=pytest.mark.soak) for seed in range(1, 6))]
)
def test_each_row_is_in_exactly_one_of_several_sinks(
    client: Client, tmp_path: Path, seed: int, steps: int
) -> None:
    random = Random(seed)
    client("CREATE TABLE t (id INT, word VARCHAR(9), n INT, PRIMARY KEY (id, word))")
    paths = [tmp_path / f"copy-{number}.db" for number in range(3)]
    feed = config(client, tmp_path, {"name": "copy", "urls": [f"sqlite:///{path}" for path in paths]})
    loads: list[str] = []

    def check(columns: str = "id, word, n") -> None:
        run_to_end(feed, loads)
        found = [rows(client, path, columns) for path in paths]
        assert sorted(row for share in found for row in share) == sorted(
            map(tuple, client(f"SELECT {columns} FROM t"))
        )
        assert all(found)

    client(f"INSERT INTO t SELECT seq, CONCAT('w', seq), seq FROM seq_1_to_{40 + seed}")
    check()
    churn(client, random, steps)
    client("ALTER TABLE t ADD COLUMN more INT DEFAULT 7")
    client("ALTER TABLE t RENAME COLUMN more TO note")
    client("UPDATE t SET note = id WHERE id < 20")
    check("id, word, n, note")
    assert loads == []
    client("UPDATE t SET id = id * 1000, n = n + 1")
    client("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (word, id)")
    client("UPDATE t SET word = CONCAT('x', word) WHERE id < 30000")
    check("id, word, n, note")
    assert len(loads) == 3
    assert "the key by which its rows are divided was changed" in loads[0]

    feed["sink"][0]["urls"].append(f"sqlite:///{tmp_path}/copy-3.db")
    with pytest.raises(
        SinkError, match=r"sink copy-0: its rows were loaded by urls, split_by and rows = .*share 0 of 3"
    ):
        run_to_end(feed, loads)


def test_sinks_have_the_rows_of_their_conditions_and_the_changes_of_their_events(
    client: Client, tmp_path: Path
) -> None:
    client("CREATE TABLE t (id INT PRIMARY KEY, region VARCHAR(9) COLLATE utf8mb4_general_ci)")
    client("INSERT INTO t VALUES (1, 'north'), (2, 'South'), (3, NULL)")
    chosen = {"north": "region = 'north'", "rest": "region <> 'north' OR region IS NULL"}
    sinks: list[dict[str, Any]] = [
        {"name": name, "url": f"sqlite:///{tmp_path}/{name}.db", "rows": [{"where": where}]}
        for name, where in chosen.items()
    ]
    sinks.append(
        {"name": "all", "url": f"sqlite:///{tmp_path}/all.db", "rows": [{"events": ["insert", "update"]}]}
    )
    feed = config(client, tmp_path, *sinks)
    for statement in ["", "INSERT INTO t VALUES (4, 'NORTH')", "UPDATE t SET region = 'north' WHERE id > 1"]:
        if statement:
            client(statement)
        run_to_end(feed, [])
        for name, where in chosen.items():
            wanted = client(f"SELECT * FROM t WHERE {where} ORDER BY id")
            assert sorted(rows(client, tmp_path / f"{name}.db")) == list(map(tuple, wanted))
    client("DELETE FROM t WHERE id > 2")
    run_to_end(feed, [])
    assert sorted(rows(client, tmp_path / "north.db")) == [(1, "north"), (2, "north")]
    assert [row[0] for row in sorted(rows(client, tmp_path / "all.db"))] == [1, 2, 3, 4]


def test_the_check_says_what_the_start_would_refuse(client: Client, tmp_path: Path) -> None:
    client("CREATE TABLE t (id INT PRIMARY KEY, word VARCHAR(9))")
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("a", "b")]
    copy = {"name": "copy", "urls": urls, "split_by": ["word"]}

    def problems(**sink: Any) -> list[str]:
        found = check_feed(feed_options(config(client, tmp_path, copy | sink)))
        return [f"{one.about}: {one.text}" for one in found if one.level == "error"]

    table = f"{client.database}.t"
    (problem, other) = problems(rows=[{"where": "size > 1"}])
    assert problem.startswith(f"sink copy-0: rows 1.where = 'size > 1': table {table} has no column")
    assert problems(split_by=["size"])[1].startswith(
        f"sink copy-1: table {table} can't be divided among several"
    )
    run_to_end(config(client, tmp_path, copy), [])
    assert problems() == problems(split_by=["WORD"]) == []
    (problem, other) = problems(urls=urls[::-1])
    assert problem.startswith(
        'sink copy-0: its rows were loaded by urls, split_by and rows = [["*.*", "share 1 of'
    )
    assert "restore them, or give sink copy-1, and those that share rows with it, an empty target" in other
