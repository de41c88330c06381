"""A feed's throughput while it verifies its target, and without that, in turn.

MariaDB's log of updates is applied to another MariaDB, or to SQLite. The period is so short that the
verification uses all of its share of the time. `…_again` is the feed without it a second time: its ratio
shows what differs by chance.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..compare.verification import verified_feed
from ..engine.options import feed_options
from ..testing.mariadb import MariaDb

_TRANSACTION_ROWS = 100


def run(
    *, rows: int = 200_000, changes: int = 600_000, share: float = 0.05, rounds: int = 3
) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share; the yardstick is the feed alone."""
    verify = {"verify": {"every": 1, "share": share}}
    figures: dict[str, list[float]] = {}
    yardstick: dict[str, list[float]] = {}
    compared: dict[str, int] = {}
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
        MariaDb(Path(name, "source")) as source,
        MariaDb(Path(name, "target")) as target,
    ):
        _fill(source, rows)
        for place, url in (("mariadb", target.url("copy")), ("sqlite", f"sqlite:///{name}/copy.db")):
            given = {
                "name": place,
                "data_dir": f"{name}/{place}",
                "until": "now",
                "source": {"url": source.url(), "tables": ["bench.item"]},
                "sink": [{"name": "copy", "url": url}],
            }
            _applied(given)
            for _ in range(rounds):
                for figure, more in (("", {}), (place, verify), (f"{place}_again", {})):
                    _change(source, rows, changes)
                    seconds, done = _applied(given | more)
                    if not figure:
                        yardstick.setdefault(place, []).append(changes / seconds)
                        continue
                    figures.setdefault(figure, []).append(changes / seconds)
                    compared[place] = max(compared.get(place, 0), done)
    medians = {figure: statistics.median(several) for figure, several in figures.items()}
    alone = {figure: statistics.median(yardstick[figure.removesuffix("_again")]) for figure in medians}
    return {
        "bench": "verify",
        "settings": {"rows": rows, "changes": changes, "share": share, "rounds": rounds}
        | {f"rows compared in {place}": count for place, count in compared.items()},
        "figures": {figure: round(value) for figure, value in medians.items()},
        "yardstick": {figure: round(value) for figure, value in alone.items()},
        "ratio": {figure: round(medians[figure] / alone[figure], 3) for figure in medians},
    }


def _fill(server: MariaDb, rows: int) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE bench")
        cursor.execute("CREATE TABLE bench.item (id INT PRIMARY KEY, n INT NOT NULL, name VARCHAR(80))")
        cursor.execute("USE bench")
        cursor.execute(f"INSERT INTO item SELECT seq, 0, REPEAT('n', 40) FROM seq_1_to_{rows}")


def _change(server: MariaDb, rows: int, changes: int) -> None:
    """Update that number of rows, in transactions of 100."""
    with server.connect() as connection, connection.cursor() as cursor:
        for number in range(0, changes, _TRANSACTION_ROWS):
            first = number % rows
            cursor.execute(
                f"UPDATE bench.item SET n=n+1 WHERE id > {first} AND id <= {first + _TRANSACTION_ROWS}"
            )


def _applied(given: Mapping[str, Any]) -> tuple[float, int]:
    """Run a feed to the source's end; return the seconds, and the number of rows compared so far."""
    feed = verified_feed(feed_options(given))
    begun = time.perf_counter()
    feed.start()
    feed.wait()
    seconds = time.perf_counter() - begun
    if feed.error is not None:
        raise feed.error
    verified = feed.status().verify
    if any(one.diverged for one in verified):
        raise RuntimeError(f"rows differ: {verified}")
    return seconds, sum(one.rows_compared for one in verified)
