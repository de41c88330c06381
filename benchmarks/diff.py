"""Comparison of equal tables, in rows per second, each with a plain SELECT of all columns from both sides.

* `diff`: two MariaDB servers, by checksums; against the client `mariadb` that throws the rows away.
* `diff_sqlite`: MariaDB and its copy in SQLite, row by row; against pymysql and sqlite3.
"""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from pymysql.cursors import SSCursor

from ..compare import TableResult, open_diff
from ..engine.checkpoint import CheckpointFile
from ..events import Item
from ..sink import Delivery, open_sink
from ..testing.mariadb import MariaDb
from .in_turn import median_pairs, seconds_of
from .sink import TABLE, loads, login, row

_SELECT = f"SELECT * FROM {TABLE.name}"


def run(*, rows: int = 500_000, rounds: int = 3) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share."""
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
        MariaDb(Path(name, "source")) as source,
        MariaDb(Path(name, "target")) as target,
    ):
        items = loads([row(key, "n" * 40) for key in range(rows)])
        file = Path(name, "copy.db")
        targets = {"diff": target.url(), "diff_sqlite": f"sqlite:///{file}"}
        for url in source.url(TABLE.schema), *targets.values():
            _load(url, items)
        yardsticks = {
            "diff": lambda: _printed(source) + _printed(target),
            "diff_sqlite": lambda: _fetched(source) + _read(file),
        }
        pairs = {
            key: (
                partial(seconds_of, partial(_compare, Path(name), source, url, rows)),
                partial(seconds_of, yardsticks[key]),
            )
            for key, url in targets.items()
        }
        seconds = median_pairs(pairs, rounds)
    figures = {key: round(rows / ours) for key, (ours, _) in seconds.items()}
    yardstick = {key: round(rows / theirs) for key, (_, theirs) in seconds.items()}
    return {
        "bench": "diff",
        "settings": {"rows": rows, "rounds": rounds},
        "figures": figures,
        "yardstick": yardstick,
        "ratio": {key: round(figures[key] / yardstick[key], 2) for key in targets},
    }


def _load(url: str, items: list[Item]) -> None:
    with closing(open_sink("bench", url, feed="bench", store=CheckpointFile(Path("unused")))) as sink:
        work = Delivery(sink, sink.open(), "bench")
        work.accept(items)
        work.run(0)
        work.flush(0)


def _compare(directory: Path, source: MariaDb, url: str, rows: int) -> None:
    feed = {
        "name": "bench",
        "data_dir": str(directory / "state"),
        "source": {"url": source.url(), "tables": [TABLE.full_name]},
        "sink": [{"url": url}],
    }
    with open_diff(feed) as compared:
        results = list(compared)
    assert [(one.is_equal, one.rows) for one in results if isinstance(one, TableResult)] == [(True, rows)], (
        results
    )


def _printed(server: MariaDb) -> int:
    """Read all rows by the C client."""
    program = shutil.which("mariadb") or "mariadb"
    command = [program, *login(server), "--batch", "--quick", "-e", _SELECT, TABLE.schema]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=True).returncode


def _fetched(server: MariaDb) -> int:
    with closing(server.connect(database=TABLE.schema, cursorclass=SSCursor)) as connection:
        cursor = connection.cursor()
        cursor.execute(_SELECT)
        return sum(1 for _ in cursor)


def _read(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return sum(1 for _ in connection.execute(f'SELECT * FROM "{TABLE.full_name}"'))
