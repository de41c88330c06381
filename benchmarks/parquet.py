"""A MariaDB's binlog into Parquet files, in rows a second of the clock and of CPU time of this process.

* `parquet`: into an archive, until the feed has ended and all files are visible.
* `directory`: into Parquet files of a directory, whose checkpoint moves with them.
* `none`: to a sink that looks at nothing: the rows of the log, sorted.

The yardstick is a callback that looks at each row. `write_table` is Arrow's writer alone, with the settings
of the sinks, writing the same tables to memory; its ratio is the part of the archive's time that it takes.
Transactions have 1,000 rows. A ratio is the median of those of all rounds.
"""

from __future__ import annotations

import gc
import statistics
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ..codec.native import library
from ..embedded import follow
from ..engine.feed import Feed
from ..engine.opening import open_sinks
from ..engine.options import FeedOptions, feed_options
from ..events import Transaction
from ..sink import SinkFactory
from ..sink.files.parquet_format import write_parquet
from ..sink.sink import SinkTraits
from ..testing.feed_run import run as run_feed
from ..testing.mariadb import MariaDb
from .dropping_sink import DroppingSink
from .in_turn import Taken, taken
from .mysql import create_tables, write_rows

_TABLE: Final = "bench.followed"
_SINKS: Final = {"parquet": "parquet://{}", "directory": "directory://{}?format=parquet"}
Span: TypeAlias = tuple[str, str, int]
"""Positions before and after, and the rows between them."""


def run(*, rows: int = 4_000_000, rounds: int = 3) -> dict[str, object]:
    """Return one result in the form that all benchmarks share."""
    if library.native is None:
        raise RuntimeError(f"there is nothing to measure: {library.description()}")
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name, MariaDb(Path(name, "db")) as server:
        create_tables(server)
        span = (*write_rows(server, rows, 1_000), rows)
        results = [_round(server.url(), span, Path(name, str(number))) for number in range(rounds + 1)][1:]
    works = [(work, place, unit) for work in results[0][0] for place, unit in enumerate(("", "_cpu"))]
    rates = {
        f"{work}{unit}": rows / statistics.median(seconds[work][place] for seconds, _ in results)
        for work, place, unit in works
    }
    yardstick = {f"python{unit}": rates.pop(f"python{unit}") for unit in ("", "_cpu")}

    def ratio(work: str, place: int) -> float:
        over, under = (work, "parquet") if work == "write_table" else ("python", work)
        return statistics.median(seconds[over][place] / seconds[under][place] for seconds, _ in results)

    return {
        "bench": "parquet",
        "settings": {"rows": rows, "rounds": rounds, "bytes_per_row": round(results[-1][1] / rows, 1)},
        "figures": {name: round(rate) for name, rate in rates.items()},
        "yardstick": {name: round(rate) for name, rate in yardstick.items()},
        "ratio": {
            f"{work}{unit}": round(ratio(work, place), 2) for work, place, unit in works if work != "python"
        },
    }


def _round(url: str, span: Span, folder: Path) -> tuple[dict[str, Taken], int]:
    """Return the seconds of each work, which come in turn, and the bytes of the archive's files."""
    archive = folder / "parquet-archive"
    folder.mkdir()
    works: dict[str, Callable[[], object]] = {
        "python": partial(_python, url, folder / "python", span),
        "none": partial(_run, _options(url, folder / "none", span), [SinkFactory(_Nothing)]),
        **{sink: partial(_to_files, url, folder / sink, span, address) for sink, address in _SINKS.items()},
    }
    seconds = {name: _seconds(work) for name, work in works.items()}
    paths = sorted(archive.glob("table=*/*/*.parquet"))
    tables = [pq.read_table(path, partitioning=None) for path in paths]
    if sum(table.num_rows for table in tables) != span[2]:
        raise RuntimeError(f"the archive hasn't the {span[2]} rows of the log")
    seconds["write_table"] = _seconds(partial(_write_tables, tables))
    return seconds, sum(path.stat().st_size for path in paths)


def _to_files(url: str, folder: Path, span: Span, address: str) -> None:
    archive = f"{folder}-archive"
    options = _options(url, folder, span, sink=[{"url": address.format(archive)}])
    _run(options, open_sinks(options))


def _python(url: str, folder: Path, span: Span) -> None:
    count = 0

    def receive(txn: Transaction) -> None:
        nonlocal count
        for row in txn.rows:
            count += row.after is not None

    source = {"snapshot": False, "position": span[0]}
    follow(receive, url, [_TABLE], data_dir=folder, until=span[1], source_options=source)
    if count != span[2]:
        raise RuntimeError(f"{count} rows arrived of {span[2]}")


def _options(url: str, folder: Path, span: Span, **more: object) -> FeedOptions:
    source = {"url": url, "tables": [_TABLE], "snapshot": False, "position": span[0]}
    return feed_options({"data_dir": str(folder), "until": span[1], "source": source, **more})


def _run(options: FeedOptions, sinks: list[SinkFactory]) -> None:
    run_feed(Feed(options, sinks))


def _write_tables(tables: Sequence[pa.Table]) -> None:
    for table in tables:
        write_parquet(table, pa.BufferOutputStream())


def _seconds(work: Callable[[], object]) -> Taken:
    gc.collect()
    return taken(work)


class _Nothing(DroppingSink):
    """A sink that looks at no row."""

    name, target = "none", "none:"
    traits = SinkTraits(reads_rows=False)
