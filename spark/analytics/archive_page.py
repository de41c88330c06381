"""The part of the page about an archive."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Final

from .chart import Bar, Cell, bars, heat_map
from .paper import counted, legend, section, size, table, tiles, times
from .report import ArchiveReport, ArchiveTable

MOST_ROWS: Final = 30
MOST_DAYS: Final = 60


def archive_sections(report: ArchiveReport) -> Iterable[str]:
    total = sum(one.bytes for one in report.tables)
    changes = sum(one.changes for one in report.tables)
    live = sum(one.live for one in report.tables)
    dead = sum(one.dead_bytes for one in report.tables if not one.left)
    files = sum(one.files for one in report.tables)
    yield "<h3>The archive</h3>"
    yield f"<p class=sub>In <code>{escape(report.directory)}</code>.</p>"
    yield tiles(
        [
            (size(total), "of Parquet", f"{files:,} files, {size(total / files) if files else '0 B'} each"),
            (f"{changes:,}", "changes", f"of {len(report.tables)} tables"),
            (f"{live:,}", "latest rows", f"{changes / live:.1f} changes for each" if live else ""),
            (size(dead), "folding frees", f"{100 * dead / total:.0f} % of it" if total else ""),
        ]
    )
    yield section(
        "Tables, those first whose folding frees most",
        "",
        legend(("live", "latest rows"), ("free", "changes that later ones made void")),
        bars([_bar(one) for one in report.tables[:MOST_ROWS]], "Live and void bytes of each table"),
    )
    yield section("Days", "The darker the more changes; blue is still true, orange void.", _days(report))
    yield section("Tables in figures", "", _tables(report))
    if report.hot_keys:
        hot = [
            Bar(one.name, [("live", one.changes)], f"{one.changes:,} changes of {one.key}")
            for one in report.hot_keys
        ]
        yield section("Hot keys", "Rows with the most changes.", bars(hot, "The rows changed most"))


def _bar(one: ArchiveTable) -> Bar:
    note = f"{size(one.bytes)} in {counted(one.files, 'file')}" + (f": {one.left}" if one.left else "")
    return Bar(one.table, [("live", one.bytes - one.dead_bytes), ("free", one.dead_bytes)], note)


def _days(report: ArchiveReport) -> str:
    names = [one.table for one in report.tables[:MOST_ROWS]]
    dates = sorted({day.date for day in report.days})[-MOST_DAYS:]
    cells = {
        (names.index(day.table), dates.index(day.date)): Cell(
            day.changes,
            1 - day.live / day.changes if day.changes else 0.0,
            f"{day.table}, {day.date}: {day.changes:,} changes, {day.live:,} still true, {day.files} files",
        )
        for day in report.days
        if day.table in names and day.date in dates
    }
    return heat_map(names, [date[5:] for date in dates], cells, "Changes of each table by day")


def _tables(report: ArchiveReport) -> str:
    return table(
        ("table", "files", "bytes", "changes", "deletes", "latest rows", "read for each row", "overlap", ""),
        [
            (
                one.table,
                f"{one.files:,}",
                size(one.bytes),
                f"{one.changes:,}",
                f"{one.deletes:,}",
                f"{one.live:,}",
                times(one.read_amplification),
                str(one.overlap),
                one.left,
            )
            for one in report.tables[:MOST_ROWS]
        ],
        numbers=range(1, 8),
    )
