"""A feed's throughput while it verifies its target, and without that, in turn.

MariaDB's log of updates is applied to another MariaDB, or to SQLite, while another table is compared. The
period is so short that the verification uses all of its share of the time. `…_cpu` is per second of CPU
time of the feed's process. `…_again` is the feed without it a second time: its ratio shows what differs by
chance.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..compare.verification import verified_feed
from ..engine.options import feed_options
from ..testing.feed_run import run as run_feed
from ..testing.mariadb import MariaDb
from .in_turn import taken

_TRANSACTION_ROWS = 100


class _Run(NamedTuple):
    """One run of a feed over all changes."""

    seconds: float
    cpu_seconds: float
    """CPU time of this process."""
    compared: int
    """Number of rows compared in all runs so far."""


def run(
    *, rows: int = 200_000, changes: int = 1_000_000, share: float = 0.05, rounds: int = 3
) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share; the yardstick is the feed alone."""
    verify = {"verify": {"every": 1, "share": share, "tables": ["bench.still"]}}
    runs: dict[str, list[_Run]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name,
        MariaDb(Path(name, "source")) as source,
        MariaDb(Path(name, "target")) as target,
    ):
        _fill(source, rows)
        for place, url in (("mariadb", target.url("copy")), ("sqlite", f"sqlite:///{name}/copy.db")):
            document = {
                "name": place,
                "data_dir": f"{name}/{place}",
                "until": "now",
                "source": {"url": source.url(), "tables": ["bench.*"]},
                "sink": [{"name": "copy", "url": url}],
            }
            _applied(document)
            for _ in range(rounds):
                for figure, more in ((f"{place}_alone", {}), (place, verify), (f"{place}_again", {})):
                    _change(source, rows, changes)
                    runs.setdefault(figure, []).append(_applied(document | more))
    figures, yardstick = dict[str, float](), dict[str, float]()
    for figure, several in runs.items():
        place, _, which = figure.partition("_")
        if which == "alone":
            continue
        for suffix, seconds in ("", _seconds), ("_cpu", _cpu_seconds):
            figures[figure + suffix] = round(changes / seconds(several))
            yardstick[figure + suffix] = round(changes / seconds(runs[f"{place}_alone"]))
    return {
        "bench": "verify",
        "settings": {"rows": rows, "changes": changes, "share": share, "rounds": rounds}
        | {f"rows compared in {place}": runs[place][-1].compared for place in ("mariadb", "sqlite")},
        "figures": figures,
        "yardstick": yardstick,
        "ratio": {figure: round(figures[figure] / yardstick[figure], 3) for figure in figures},
    }


def _seconds(runs: Sequence[_Run]) -> float:
    return statistics.median(one.seconds for one in runs)


def _cpu_seconds(runs: Sequence[_Run]) -> float:
    return statistics.median(one.cpu_seconds for one in runs)


def _fill(server: MariaDb, rows: int) -> None:
    tables = "item", "still"
    server.execute(
        "CREATE DATABASE bench",
        "USE bench",
        *(f"CREATE TABLE {one} (id INT PRIMARY KEY, n INT NOT NULL, name VARCHAR(80))" for one in tables),
        *(f"INSERT INTO {one} SELECT seq, 0, REPEAT('n', 40) FROM seq_1_to_{rows}" for one in tables),
    )


def _change(server: MariaDb, rows: int, changes: int) -> None:
    """Update that number of rows, in transactions of 100."""
    firsts = (number % rows for number in range(0, changes, _TRANSACTION_ROWS))
    server.execute(
        *(
            f"UPDATE bench.item SET n=n+1 WHERE id > {first} AND id <= {first + _TRANSACTION_ROWS}"
            for first in firsts
        )
    )


def _applied(document: Mapping[str, Any]) -> _Run:
    """Run a feed to the source's end."""
    feed = verified_feed(feed_options(document))
    seconds = taken(lambda: run_feed(feed))
    verified = feed.status().verify
    if any(one.diverged for one in verified):
        raise RuntimeError(f"rows differ: {verified}")
    return _Run(*seconds, sum(one.rows_compared for one in verified))
