"""The part of the page about an archive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from .advice import advice_section, archive_advice
from .chart import Bar, Cell, bars, heat_map, heat_scale
from .growth import columns, curve
from .paper import amount, counted, legend, rest, section, size, table, tiles, times
from .report import ArchiveReport, ArchiveTable, DayFigures

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
            (size(dead), "compaction frees", f"{100 * dead / total:.0f} % of it" if total else ""),
        ]
    )
    if not report.tables:
        yield section("The archive is empty", "It has no changes of any table.")
        return
    yield advice_section(
        "What to do next with the archive",
        [*archive_advice(report)],
        "Nothing: compaction would free nothing.",
    )
    dates = sorted({day.date for day in report.days})[-MOST_DAYS:]
    yield section(
        "Growth of the archive",
        f"By day of commit (UTC), {dates[0]} to {dates[-1]}. The latest rows are what compaction keeps.",
        legend(("live", "latest rows"), ("free", "changes that later ones replaced")),
        *_growth(report.days, dates),
    )
    yield section(
        "Tables by the bytes that compaction frees",
        _overlap_words(report),
        legend(("live", "latest rows"), ("free", "changes that later ones replaced")),
        bars([_bar(one) for one in report.tables[:MOST_ROWS]], "Live and replaced bytes of each table"),
        _other_tables(report),
    )
    yield section(
        "Tables by day",
        "Changes of each table by day of commit. Orange ones were replaced by later changes.",
        *_heat(report, dates),
    )
    yield section("Tables in figures", "", _tables(report), _other_tables(report))
    if report.hot_keys:
        hot = [
            Bar(one.name, [("live", one.changes)], f"{one.changes:,} changes of {one.key}")
            for one in report.hot_keys
        ]
        yield section("Hot keys", "Rows with the most changes.", bars(hot, "The rows changed most"))


def _bar(one: ArchiveTable) -> Bar:
    note = f"{size(one.bytes)} in {counted(one.files, 'file')}" + (f": {one.left}" if one.left else "")
    return Bar(one.table, [("live", one.bytes - one.dead_bytes), ("free", one.dead_bytes)], note)


def _overlap_words(report: ArchiveReport) -> str:
    worst = max(report.tables, key=lambda one: one.overlap)
    read = max(report.tables, key=lambda one: one.read_amplification)
    files = counted(worst.overlap, "file")
    return (
        f"A reader of one commit ts opens up to {files} of {worst.table}, the largest overlap. To get the "
        f"present rows of {read.table} it reads {times(read.read_amplification)} as many changes as rows; "
        "after compaction it reads each row once."
    )


def _other_tables(report: ArchiveReport) -> str:
    hidden = report.tables[MOST_ROWS:]
    return rest(len(hidden), "table", f"together {size(sum(one.bytes for one in hidden))}")


def _growth(days: Sequence[DayFigures], dates: Sequence[str]) -> Iterable[str]:
    places = {date: place for place, date in enumerate(dates)}
    sums = [[0, 0, 0] for _ in dates]
    for day in days:
        if day.date in places:
            for at, value in enumerate((day.bytes, day.changes, day.live)):
                sums[places[day.date]][at] += value
    sizes = [float(one[0]) for one in sums]
    yield columns([[("live", one)] for one in sizes], dates, "Bytes of files per day", size, base=1024)
    yield curve(sizes, dates, "Bytes of files, cumulative", size, base=1024)
    parts = [[("live", one[2]), ("free", one[1] - one[2])] for one in sums]
    yield columns(parts, dates, "Changes per day", amount, base=10)


def _heat(report: ArchiveReport, dates: Sequence[str]) -> Iterable[str]:
    names = [one.table for one in report.tables[:MOST_ROWS]]
    rows = {name: row for row, name in enumerate(names)}
    places = {date: place for place, date in enumerate(dates)}
    cells = {
        (rows[day.table], places[day.date]): Cell(
            day.changes,
            1 - day.live / day.changes if day.changes else 0.0,
            f"{day.table}, {day.date}: {counted(day.changes, 'change')}, {counted(day.live, 'latest row')}, "
            f"{counted(day.files, 'file')}",
        )
        for day in report.days
        if day.table in rows and day.date in places
    }
    yield heat_scale(cells.values(), amount, "latest", "replaced")
    yield heat_map(names, [date[5:] for date in dates], cells, "Changes of each table by day")
    yield _other_tables(report)


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
