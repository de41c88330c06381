"""The part of the page about a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

from ...codec.tidb.key import decode_record_key
from ...events import physical_ms
from .advice import FeedPlace, advice_section, store_advice
from .buckets import Buckets, buckets
from .chart import Bar, bars, spark_line
from .growth import columns
from .paper import amount, counted, legend, rest, section, share, size, table, tiles, times
from .report import StoreReport, TableFigures
from .store_words import growth_words, overlap_words, short_words, skew_words, windows_words

MOST_ROWS: Final = 30
"""Maximum tables, generations and steps shown; the report has all."""
_NOTHING_TO_DO: Final = "Nothing: no generation is worth compacting, and no sink is awaited."
EMPTY: Final = (
    "A feed puts changes here that don't fit into its memory, until they are delivered. There are none now: "
    "all are in memory, or delivered and dropped, so there is nothing to measure, and nothing to do. Analyze "
    "it again while a sink is behind, or analyze the archive of changes with --archive."
)
_NO_FEED: Final = FeedPlace()


def store_sections(report: StoreReport, place: FeedPlace = _NO_FEED) -> Iterable[str]:
    free = sum(step.dead_bytes for step in report.plan.steps)
    moved = sum(step.live_bytes for step in report.plan.steps)
    yield f"<p class=sub>The store in <code>{escape(report.directory)}</code>. {_acknowledged(report)}</p>"
    if not report.bytes:
        yield section("The store is empty", EMPTY)
        return
    yield section(
        "In short", "", f"<ul>{''.join(f'<li>{escape(one)}</li>' for one in short_words(report))}</ul>"
    )
    yield tiles(_tiles(report, free, moved))
    yield advice_section(
        "What to do next, and what it would give", [*store_advice(report, place)], _NOTHING_TO_DO
    )
    time = buckets(cell.minute for cell in report.cells)
    yield section("Tables", overlap_words(report), _tables(report, time), _other_tables(report))
    yield section(
        "Generations",
        windows_words(report),
        legend(("live", "live"), ("stuck", "dead, in a live block"), ("free", "free once compacted")),
        _windows(report),
    )
    yield section(
        "Growth",
        growth_words(report, time),
        legend(("live", "live"), ("free", "dead")),
        _growth(report, time),
    )
    if len(report.stores) > 1:
        yield section("Stores", skew_words(report), _stores(report))
    if report.hot_keys:
        yield section(
            "Hot keys",
            "Rows with the most changes. Each of their changes is kept until it is delivered, so they are "
            "where fewer writes at the source would save most.",
            _hot(report),
        )


def _tiles(report: StoreReport, free: int, moved: int) -> list[tuple[str, str, str]]:
    changes = sum(one.changes for one in report.tables)
    amplification = max([one.write_amplification for one in report.stores], default=0.0)
    largest = max(report.stores, key=lambda one: one.bytes, default=None)
    of_largest = f"{largest.store} has {share(largest.bytes, report.bytes)} of the bytes" if largest else ""
    return [
        (size(report.bytes), "keys and values", f"in {counted(len(report.windows), 'generation')}"),
        (
            amount(report.rows),
            "rows",
            f"in {counted(changes, 'change')} of {counted(_named(report), 'table')}",
        ),
        (
            share(report.dead_bytes, report.bytes),
            "dead: acknowledged, still there",
            size(report.dead_bytes),
        ),
        (size(free), "the plan frees", f"and rewrites {size(moved)}"),
        (times(report.read_amplification), "read amplification", "bytes read per byte of a table"),
        (times(amplification), "write amplification", "bytes of files per byte given"),
        (times(report.skew), "skew across stores", of_largest),
    ]


def _named(report: StoreReport) -> int:
    """Return the number of tables, without the changes of none."""
    return sum(one.rows != 0 for one in report.tables)


def _growth(report: StoreReport, time: Buckets) -> str:
    sums = [[0, 0] for _ in range(time.count)]
    for cell in report.cells:
        own = sums[time.of(cell.minute)]
        own[0] += cell.bytes - cell.dead_bytes
        own[1] += cell.dead_bytes
    parts = [[("live", float(live)), ("free", float(dead))] for live, dead in sums]
    return columns(parts, time.labels, f"Bytes per {time.unit}", size, base=1024)


def _acknowledged(report: StoreReport) -> str:
    if not report.acknowledged:
        return "Nothing is said to be acknowledged, so everything counts as live."
    moment = datetime.fromtimestamp(physical_ms(report.acknowledged) / 1000, UTC)
    return f"Dead is what was committed up to {moment:%Y-%m-%d %H:%M:%S} UTC."


def _windows(report: StoreReport) -> str:
    rows = []
    by_bytes = sorted(report.windows, key=lambda one: -one.bytes)
    shown = {(one.store, one.window) for one in by_bytes[:MOST_ROWS]}
    for one in [one for one in report.windows if (one.store, one.window) in shown]:
        stuck = one.dead_bytes - one.free_bytes
        parts = [("live", one.bytes - one.dead_bytes), ("stuck", max(0, stuck)), ("free", one.free_bytes)]
        overlap = f", {counted(one.overlapping_files, 'overlap')}" if one.overlapping_files else ""
        files = counted(one.files, "file")
        note = f"{size(one.bytes)}, {share(one.dead_bytes, one.bytes)} dead, {files}{overlap}"
        rows.append(Bar(f"{one.store} {one.window}", parts, note))
    hidden = by_bytes[MOST_ROWS:]
    remark = rest(len(hidden), "generation", f"together {size(sum(one.bytes for one in hidden))}")
    return bars(rows, "Live and dead bytes of each generation") + remark


def _other_tables(report: StoreReport) -> str:
    hidden = report.tables[MOST_ROWS:]
    return rest(len(hidden), "table", f"together {size(sum(one.bytes for one in hidden))}")


def _by_time(report: StoreReport, time: Buckets, shown: Sequence[TableFigures]) -> dict[int, list[float]]:
    bytes_of = {one.table: [0.0] * time.count for one in shown}
    for cell in report.cells:
        if cell.table in bytes_of:
            bytes_of[cell.table][time.of(cell.minute)] += cell.bytes
    return bytes_of


def _tables(report: StoreReport, time: Buckets) -> str:
    shown = report.tables[:MOST_ROWS]
    curves = _by_time(report, time, shown)
    return table(
        (
            "table",
            "bytes",
            "dead",
            "changes",
            "rows",
            "deleted",
            "blocks",
            "overlap",
            "read amplification",
            f"per {time.unit}",
        ),
        [
            (
                escape(one.name),
                size(one.bytes),
                share(one.dead_bytes, one.bytes),
                f"{one.changes:,}",
                amount(one.rows),
                share(one.deletes, one.rows or 0),
                f"{one.blocks:,}",
                f"{one.overlap:,}",
                times(one.read_amplification),
                spark_line(curves[one.table], f"{one.name}, bytes per {time.unit}"),
            )
            for one in shown
        ],
        numbers=range(1, 9),
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
    return bars(stores, "Bytes of each store")


def _hot(report: StoreReport) -> str:
    hot = [(one.name, row_of(one.key), f"{one.changes:,}") for one in report.hot_keys]
    return table(("table", "row", "changes"), hot, numbers=(2,))


def row_of(key: str) -> str:
    """Format a row's key for people: the handle, if it has one."""
    try:
        handle = decode_record_key(bytes.fromhex(key))[1]
    except ValueError:
        return key
    return f"row {handle}" if isinstance(handle, int) else f"row {handle.hex()}"
