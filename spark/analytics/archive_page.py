"""The part of the page about an archive."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from .advice import advice_section, archive_advice
from .chart import Bar, bars
from .growth import columns
from .paper import counted, legend, rest, section, size, table, tiles, times
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
        "Tables by the bytes that compaction frees",
        _overlap_words(report),
        legend(("live", "latest rows"), ("free", "changes that later ones replaced")),
        bars([_bar(one) for one in report.tables[:MOST_ROWS]], "Live and replaced bytes of each table"),
        _other_tables(report),
    )
    yield section("Tables in figures", "", _tables(report), _other_tables(report))
    yield section(
        "Growth of the archive",
        f"Bytes of files by day of commit (UTC), {dates[0]} to {dates[-1]}.",
        _growth(report.days, dates),
    )
    if report.hot_keys:
        hot = [(one.name, one.key, f"{one.changes:,}") for one in report.hot_keys]
        text = "Rows with the most changes."
        yield section("Hot keys", text, table(("table", "row", "changes"), hot, numbers=(2,)))


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


def _growth(days: Sequence[DayFigures], dates: Sequence[str]) -> str:
    sizes = dict.fromkeys(dates, 0)
    for day in days:
        if day.date in sizes:
            sizes[day.date] += day.bytes
    parts = [[("live", float(one))] for one in sizes.values()]
    return columns(parts, dates, "Bytes of files per day", size, base=1024)


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
