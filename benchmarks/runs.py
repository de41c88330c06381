"""A MariaDB's binlog into each kind of sink; rows a second of CPU time of this process.

The yardstick is the same with the decoder in Python; that of `parquet_to_python` is `python_large`.

* `python_large`, `python_small`: into a callback that looks at each row; transactions of 1,000 rows, of one.
* `parquet`, `capture`: into an archive, and into what a capture keeps; transactions of 1,000 rows.
* `typed`, `raw`, `raw_none`: what a task of Spark reads, as Arrow batches: the columns of the table, the
  envelope, and the envelope without JSON.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from ..actors import SystemClock
from ..codec.native import library
from ..embedded import follow
from ..engine.feed import Feed
from ..engine.opening import checkpoint_file, open_sinks
from ..engine.options import FeedOptions, feed_options
from ..events import Transaction
from ..sink import SinkFactory
from ..spark.capture.buffer import ChangeBuffer
from ..spark.capture.place import rank_of
from ..spark.capture.sink import CaptureSink
from ..spark.offsets.offsets import batch_range, open_offsets
from ..spark.read.bounded import change_items
from ..spark.read.options import read_options
from ..spark.read.output import Output
from ..spark.read.parts import WHOLE
from ..spark.read.pick import Pick
from ..spark.read.schema import full_type
from ..testing.mariadb import MariaDb
from .mysql import _create, _write

TABLE = "bench.followed"
WORKS = ("python_large", "python_small", "parquet", "capture", "typed", "raw", "raw_none")
_WAIT_SECONDS = 600.0
Span: TypeAlias = tuple[str, str, int]
"""Positions before and after, and the rows between them."""


def run(
    *, large_rows: int = 100_000, small_rows: int = 20_000, rounds: int = 3, works: Sequence[str] = WORKS
) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share."""
    if library.native is None:
        raise RuntimeError(f"there is nothing to measure: {library.description()}")
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name, MariaDb(Path(name, "db")) as server:
        _create(server)
        small = (*_write(server, small_rows, 1), small_rows)
        large = (*_write(server, large_rows, 1_000), large_rows)  # last: a capture goes on to the log's end
        figures, yardstick = measure(server.url(), large, small, rounds, works)
    ratio = {name: round(figures[name] / yardstick[name], 2) for name in figures}
    if {"parquet", "python_large"} <= figures.keys():
        ratio["parquet_to_python"] = round(figures["parquet"] / figures["python_large"], 2)
    return {
        "bench": "runs",
        "settings": {"large_rows": large_rows, "small_rows": small_rows, "rounds": rounds},
        "figures": figures,
        "yardstick": yardstick,
        "ratio": ratio,
    }


Rates: TypeAlias = dict[str, float]


def measure(url: str, large: Span, small: Span, rounds: int, works: Sequence[str]) -> tuple[Rates, Rates]:
    """Return rows a second of CPU time by the native decoder and by the one in Python: the median of the
    rounds."""
    taken: dict[bool, dict[str, list[float]]] = {True: {}, False: {}}
    with tempfile.TemporaryDirectory(prefix="tidemill-bench-") as name:
        for number, work, in_use in product(range(rounds + 1), works, taken):
            span = small if work.endswith("small") else large
            rate = _rate(work, url, Path(name, f"{work}-{number}-{in_use}"), span, in_use=in_use)
            if number:  # the first round warms up
                taken[in_use].setdefault(work, []).append(rate)
    return _medians(taken[True]), _medians(taken[False])


def _rate(work: str, url: str, folder: Path, span: Span, *, in_use: bool) -> float:
    was, library.in_use = library.in_use, in_use
    try:
        gc.collect()
        begun = time.process_time()
        arrived = _work(work)(url, folder, span)
        if arrived != span[2]:
            raise RuntimeError(f"{work}: {arrived} rows arrived of {span[2]}")
        return span[2] / (time.process_time() - begun)
    finally:
        library.in_use = was


def _medians(rates: dict[str, list[float]]) -> Rates:
    return {work: round(statistics.median(one)) for work, one in rates.items()}


def _work(name: str) -> Callable[[str, Path, Span], int]:
    match name:
        case "python_large" | "python_small":
            return _python
        case "parquet":
            return _parquet
        case "capture":
            return _capture
    return partial(_task, name)


def _python(url: str, folder: Path, span: Span) -> int:
    count = 0

    def receive(txn: Transaction) -> None:
        nonlocal count
        for row in txn.rows:
            count += row.after is not None

    source = {"snapshot": False, "position": span[0]}
    follow(receive, url, [TABLE], data_dir=folder, until=span[1], source_options=source)
    return count


def _options(url: str, folder: Path, span: Span, **more: Any) -> FeedOptions:
    source = {"url": url, "tables": [TABLE], "snapshot": False, "position": span[0]}
    return feed_options({"data_dir": str(folder), "until": span[1], "source": source, **more})


def _run(options: FeedOptions, sinks: list[SinkFactory]) -> int:
    feed = Feed(options, sinks)
    feed.start()
    feed.wait()
    if feed.error is not None:
        raise feed.error
    return feed.status().rows


def _parquet(url: str, folder: Path, span: Span) -> int:
    options = _options(url, folder, span, sink=[{"url": f"parquet://{folder}-archive"}])
    return _run(options, open_sinks(options))


def _capture(url: str, folder: Path, span: Span) -> int:
    options = _options(url, folder, span)
    held = ChangeBuffer(4 << 30, 0, lambda: folder / "none", SystemClock())
    store = checkpoint_file(options, "capture")
    rank = rank_of(options)
    sink = SinkFactory(lambda: CaptureSink("flight://bench", store, held, rank))
    feed = Feed(replace(options, until=""), [sink])
    feed.start()
    try:
        end = rank(span[1])
        held.wait(end, end, _WAIT_SECONDS, lambda: True)
        return held.statistics().rows
    finally:
        feed.stop()
        feed.wait()


def _task(kind: str, url: str, folder: Path, span: Span) -> int:  # noqa: ARG001
    typed = {"table": TABLE} if kind == "typed" else {"tables": TABLE}
    values = {"values": "none"} if kind == "raw_none" else {}
    options = read_options({"source": url, **typed, **values, "fromPosition": span[0], "toPosition": span[1]})
    with closing(open_offsets(options)) as offsets:
        table = offsets.tables()[0] if kind == "typed" else None
        start, end = batch_range(options, offsets)
    output = Output(options, table, full_type(table))
    with closing(change_items(options, WHOLE, start, end)) as items:
        return sum(batch.num_rows for batch in output.batches(Pick(WHOLE, options.operations), items))


if __name__ == "__main__":
    arguments: dict[str, Any] = {k: int(v) for k, _, v in (a.partition("=") for a in sys.argv[1:])}
    print(json.dumps(run(**arguments)))
