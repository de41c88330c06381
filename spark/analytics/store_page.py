"""The part of the page about a store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from typing import Final

from ...codec.tidb.key import decode_record_key
from ...events import physical_ms
from .chart import Bar, Cell, bars, heat_map, spark_line, staircase
from .paper import counted, legend, section, share, size, table, tiles, times
from .report import StoreReport

MOST_ROWS: Final = 30
"""Maximum tables, generations and steps shown; the report has all."""
MOST_COLUMNS: Final = 60
"""Maximum columns of the heat map; longer times are grouped."""


def store_sections(report: StoreReport) -> Iterable[str]:
    total = sum(one.bytes for one in report.stores)
    dead = sum(one.dead_bytes for one in report.stores)
    free = sum(step.dead_bytes for step in report.plan.steps)
    moved = sum(step.live_bytes for step in report.plan.steps)
    amplification = max([one.write_amplification for one in report.stores], default=0.0)
    worst = max(report.tables, key=lambda one: one.read_amplification, default=None)
    yield f"<p class=sub>The store in <code>{escape(report.directory)}</code>. {_acknowledged(report)}</p>"
    yield tiles(
        [
            (size(total), "keys and values", f"{sum(one.changes for one in report.tables):,} changes"),
            (f"{share(dead, total)} dead", "acknowledged, still there", size(dead)),
            (size(free), "the plan frees", f"and rewrites {size(moved)}"),
            (
                times(worst.read_amplification if worst else 0),
                "worst read amplification",
                worst.name if worst else "",
            ),
            (times(amplification), "write amplification", "files per byte given"),
            (
                times(report.skew),
                "skew across stores",
                f"largest of {counted(len(report.stores), 'store')} to average",
            ),
        ]
    )
    yield section(
        "Windows",
        "A window is freed whole. Of what is dead in it, what shares a block with something live stays until "
        "that is acknowledged too.",
        legend(("live", "live"), ("stuck", "dead, in a live block"), ("free", "free once compacted")),
        _windows(report),
    )
    if report.plan.steps:
        yield section(
            "What compaction pays",
            "Each step moves what is live out of a window and drops it: the steepest first.",
            staircase(
                [(step.live_bytes, step.dead_bytes) for step in report.plan.steps],
                f"rewritten: {size(moved)} in all",
                f"freed: {size(free)} in all",
                "Bytes freed for bytes written, step by step",
            ),
            _plan(report),
        )
    yield section(
        "Tables by minute of commit",
        "The darker the more bytes; blue is live, orange dead.",
        _minutes(report),
    )
    yield section("Tables", "", _tables(report))
    yield section("Stores and levels", "", _stores(report))
    if report.hot_keys:
        yield section("Hot keys", "Changes of one row's key, as far as keys are the row's.", _hot(report))


def _acknowledged(report: StoreReport) -> str:
    if not report.acknowledged:
        return "Nothing is said to be acknowledged, so everything counts as live."
    moment = datetime.fromtimestamp(physical_ms(report.acknowledged) / 1000, UTC)
    return f"Dead is what was committed up to {moment:%Y-%m-%d %H:%M:%S} UTC."


def _windows(report: StoreReport) -> str:
    rows = []
    largest = sorted(report.windows, key=lambda one: -one.bytes)[:MOST_ROWS]
    for one in [one for one in report.windows if one in largest]:
        stuck = one.dead_bytes - one.free_bytes
        parts = [("live", one.bytes - one.dead_bytes), ("stuck", max(0, stuck)), ("free", one.free_bytes)]
        overlap = f", {counted(one.overlapping_files, 'overlap')}" if one.overlapping_files else ""
        files = counted(one.files, "file")
        note = f"{size(one.bytes)}, {share(one.dead_bytes, one.bytes)} dead, {files}{overlap}"
        rows.append(Bar(f"{one.store} {one.window}", parts, note))
    return bars(rows, "Live and dead bytes of each window")


def _plan(report: StoreReport) -> str:
    steps = report.plan.steps[:MOST_ROWS]
    return table(
        ("", "store", "window", "frees", "writes", "frees for each byte written"),
        [
            (
                str(number),
                step.store,
                step.window,
                size(step.dead_bytes),
                size(step.live_bytes),
                f"{step.dead_bytes / step.live_bytes:.1f}" if step.live_bytes else "drops it whole",
            )
            for number, step in enumerate(steps, 1)
        ],
        numbers=(3, 4, 5),
    )


def _minutes(report: StoreReport) -> str:
    shown = [one.table for one in report.tables[:MOST_ROWS]]
    rows = {number: row for row, number in enumerate(shown)}
    first = min([cell.minute for cell in report.cells], default=0)
    width = -(-(max([cell.minute for cell in report.cells], default=0) - first + 1) // MOST_COLUMNS)
    sums: dict[tuple[int, int], list[int]] = {}
    for cell in report.cells:
        if cell.table in rows:
            found = sums.setdefault((rows[cell.table], (cell.minute - first) // width), [0, 0, 0])
            for at, value in enumerate((cell.bytes, cell.dead_bytes, cell.changes)):
                found[at] += value
    columns = [_clock(first + number * width) for number in range(1 + max([c for _, c in sums], default=0))]
    names = [one.name for one in report.tables[:MOST_ROWS]]
    cells = {
        (row, column): Cell(
            all_, dead / all_ if all_ else 0.0,
            f"{names[row]}, {columns[column]}: {changes:,} changes, {size(all_)}, {share(dead, all_)} dead",
        )
        for (row, column), (all_, dead, changes) in sums.items()
    }  # fmt: skip
    return heat_map(names, columns, cells, "Bytes of each table by minute of commit")


def _clock(minute: int) -> str:
    return f"{datetime.fromtimestamp(minute * 60, UTC):%H:%M}"


def _tables(report: StoreReport) -> str:
    by_minute: dict[int, list[float]] = {}
    for cell in report.cells:
        by_minute.setdefault(cell.table, []).append(cell.bytes)
    return table(
        (
            "table",
            "bytes",
            "dead",
            "changes",
            "deletes",
            "blocks",
            "overlap",
            "read amplification",
            "by minute",
        ),
        [
            (
                escape(one.name),
                size(one.bytes),
                share(one.dead_bytes, one.bytes),
                f"{one.changes:,}",
                share(one.deletes, one.changes),
                f"{one.blocks:,}",
                f"{one.overlap:,}",
                times(one.read_amplification),
                spark_line(by_minute.get(one.table, []), f"{one.name}, bytes by minute"),
            )
            for one in report.tables[:MOST_ROWS]
        ],
        numbers=range(1, 8),
        is_html=True,
    )


def _stores(report: StoreReport) -> str:
    stores = [
        Bar(
            one.store,
            [("live", one.bytes - one.dead_bytes), ("free", one.dead_bytes)],
            f"{size(one.bytes)}, {counted(one.tables, 'table')}, {size(one.file_bytes)} in files",
        )
        for one in report.stores
    ]
    levels = [
        Bar(
            f"{one.store} level {one.level}",
            [("live", one.bytes)],
            f"{counted(one.files, 'file')}, {size(one.bytes)}, {counted(one.overlapping_files, 'overlap')}",
        )
        for one in report.levels
    ]
    return bars(stores, "Bytes of each store") + bars(levels, "Files of each level")


def _hot(report: StoreReport) -> str:
    hot = [
        Bar(one.name, [("live", one.changes)], f"{one.changes:,} changes of {row_of(one.key)}")
        for one in report.hot_keys
    ]
    return bars(hot, "The busiest keys")


def row_of(key: str) -> str:
    """Format a row's key for people: the handle, if it has one."""
    try:
        handle = decode_record_key(bytes.fromhex(key))[1]
    except ValueError:
        return key
    return f"row {handle}" if isinstance(handle, int) else f"row {handle.hex()}"
