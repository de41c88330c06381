"""Rows of MariaDB to tuples and to Arrow columns, by the native decoder; rows a second of one core.

The yardstick is the decoder in Python, which makes tuples. `tuples` and `arrow` are of row images in events
of 1,000 rows with eight columns, ten events in a batch; `result_tuples` and `result_arrow` are of the same
rows of a snapshot. `mb_per_second` is that of `arrow`, in 10^6 bytes of row images. `threads` and `processes`
are rows to Arrow by two threads and by two processes in rows a second of the clock, beside one of them.
"""

from __future__ import annotations

import gc
import json
import statistics
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, wait
from datetime import datetime
from decimal import Decimal
from functools import cache
from itertools import islice
from multiprocessing import get_context
from typing import Any

from ..codec.images import read_images
from ..codec.mysql.layout import Layouts
from ..codec.mysql.result_writer import ResultWriter
from ..codec.native import library
from ..events import Column, Kind, Row, Run, Table
from ..testing.binlog_events import (
    BLOB,
    INSERT,
    INT,
    TINY,
    UTF8MB4_BIN,
    VARCHAR,
    ColumnSpec,
    datetime_bytes,
    decimal,
    decimal_bytes,
    rows_event,
    table_map,
    varchar,
)

_BATCH = 1_000
_EVENTS = 10
_REPEATS = 25
"""How often a worker decodes all rows, as one time is too short for a clock."""
COLUMNS = (
    INT._replace(nullable=False), ColumnSpec(8), decimal(12, 2), ColumnSpec(5, b"\x08"), VARCHAR,
    ColumnSpec(18, b"\0"), TINY, BLOB._replace(collation=UTF8MB4_BIN),
)  # fmt: skip
_KINDS: tuple[Kind, ...] = ("int", "bigint", "decimal", "double", "varchar", "datetime", "tinyint", "text")
_TABLE = Table(
    "shop", "t", tuple([Column(kind, kind, length=12, scale=2 * (kind == "decimal")) for kind in _KINDS])
)


def run(*, rows: int = 200_000, rounds: int = 5) -> dict[str, Any]:
    """Return one result in the form that all benchmarks share."""
    if library.native is None:
        raise RuntimeError(f"there is nothing to measure: {library.description()}")
    events = _events(rows)
    packet = ResultWriter(_TABLE).packets
    packets = [b"".join([packet(_values(key)) for key in batch]) for batch in _numbers(rows)]
    made: dict[str, Callable[[], Iterator[Run]]] = {
        "": lambda: _event_runs(events),
        "result_": lambda: _result_runs(packets),
    }
    seconds: dict[str, list[float]] = {}
    for _ in range(rounds):  # in turn, so that drift of the machine affects all
        for name, runs in made.items():
            for figure, in_use, work in (
                ("python", False, _tuples),
                ("tuples", True, _tuples),
                ("arrow", True, _arrow),
            ):
                seconds.setdefault(name + figure, []).append(_seconds(runs, work, in_use=in_use))
    figures = {name: rows / statistics.median(taken) for name, taken in seconds.items()}
    python = {name: figures.pop(f"{name}python") for name in made}
    yardstick = {name: python["result_" * name.startswith("result_")] for name in figures}
    size = sum(map(len, events)) / rows
    clock = {kind: _by_two(rows, rounds, kind) for kind in ("threads", "processes")}
    figures |= {name: two for name, (_, two) in clock.items()}
    yardstick |= {name: one for name, (one, _) in clock.items()}
    return {
        "bench": "columns",
        "settings": {"rows": rows, "rounds": rounds, "columns": len(COLUMNS), "bytes_per_row": size},
        "figures": {**figures, "mb_per_second": figures["arrow"] * size / 1e6},
        "yardstick": yardstick,
        "ratio": {name: figures[name] / yardstick[name] for name in figures},
    }


def _by_two(rows: int, rounds: int, kind: str) -> tuple[float, float]:
    """Return the rows a second of one worker, and of two side by side that decode all rows each: the best
    rounds, since other processes need the second core at times."""
    rates_by_count: dict[int, list[float]] = {1: [], 2: []}
    with _workers(rows, kind) as workers:
        wait([workers.submit(_decode_all, rows) for _ in range(2)])
        for _ in range(rounds):
            for count, rates in rates_by_count.items():
                begun = time.perf_counter()
                for done in [workers.submit(_decode_all, rows) for _ in range(count)]:
                    done.result()
                rates.append(count * _REPEATS * rows / (time.perf_counter() - begun))
    return max(rates_by_count[1]), max(rates_by_count[2])


def _workers(rows: int, kind: str) -> Executor:
    if kind == "threads":
        return ThreadPoolExecutor(2, initializer=_events, initargs=(rows,))
    return ProcessPoolExecutor(2, get_context("spawn"), initializer=_events, initargs=(rows,))


def _decode_all(rows: int) -> None:
    for _ in range(_REPEATS):
        event_runs = _event_runs(_events(rows))
        while batch := list(islice(event_runs, _EVENTS)):
            _arrow(batch)


@cache
def _events(rows: int) -> list[bytes]:
    return [rows_event(INSERT, [image(number) for number in batch]) for batch in _numbers(rows)]


def _numbers(rows: int) -> list[range]:
    return [range(at, min(rows, at + _BATCH)) for at in range(0, rows, _BATCH)]


def _event_runs(events: Sequence[bytes]) -> Iterator[Run]:
    layouts = Layouts()
    layout = layouts.layout(layouts.number_of(table_map(*COLUMNS)))
    block = layout.block()
    return iter([block.add(event, 1, 1) for event in events])


def _result_runs(packets: Sequence[bytes]) -> Iterator[Run]:
    layouts = Layouts()
    layout = layouts.layout(layouts.add_table(_TABLE))
    return (layout.result_run(one, 1, 1) for one in packets)


def _tuples(runs: Sequence[Run]) -> None:
    for run in runs:
        run.changes()


def _arrow(runs: Sequence[Run]) -> None:
    if read_images(runs) is None:
        raise RuntimeError("these rows can't be read as columns")


def _seconds(
    runs: Callable[[], Iterator[Run]], work: Callable[[Sequence[Run]], None], *, in_use: bool
) -> float:
    was, library.in_use = library.in_use, in_use
    try:
        gc.collect()
        started = time.process_time()
        event_runs = runs()
        while batch := list(islice(event_runs, _EVENTS)):
            work(batch)
        return time.process_time() - started
    finally:
        library.in_use = was


def image(key: int) -> list[bytes | None]:
    return [
        key.to_bytes(4, "little"),
        (2**62 + key).to_bytes(8, "little"),
        decimal_bytes(Decimal(f"{key % 10_000}.25"), 12, 2),
        struct.pack("<d", key / 7),
        varchar(f"name of {key}"),
        datetime_bytes(datetime(2026, 3, key % 9 + 1, 4, 5, 6), 0),  # noqa: DTZ001
        bytes((key % 100,)),
        (40).to_bytes(2, "little") + b"n" * 40,
    ]


def _values(key: int) -> Row:
    moment = datetime(2026, 3, key % 9 + 1, 4, 5, 6)  # noqa: DTZ001
    price = Decimal(f"{key % 10_000}.25")
    return key, 2**62 + key, price, key / 7, f"name of {key}", moment, key % 100, "n" * 40


if __name__ == "__main__":
    print(
        json.dumps(run(**{name: int(value) for name, _, value in (a.partition("=") for a in sys.argv[1:])}))
    )
