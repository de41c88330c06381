"""The page about a lake: sentences first, then figures, then pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from shlex import quote
from typing import Final

from ...sink.files.lakes.upkeep import LakeOutcome, LakePlan, LakeReport, LakeStep, LakeTable
from ...sink.files.lakes.upkeep.plan import Action
from ...sink.files.lakes.upkeep.report import LakePartition
from .advice import Advice, advice_section
from .chart import Bar, bars
from .growth import columns
from .page import document
from .paper import counted, legend, rest, section, share, size, table, tiles, times

MOST_TABLES: Final = 30
MOST_SAID: Final = 5
"""Number of tables, the slowest ones, that have sentences."""
MOST_DAYS: Final = 60
_SKEWED: Final = 3.0
"""Skew of partitions that is worth a sentence."""
_MANY_VERSIONS: Final = 100
"""Number of old snapshots that is worth a sentence."""
_HOT: Final = 0.05
"""Share of the changes from which one key is worth a sentence."""

_TITLES: Final[dict[Action, str]] = {
    "join": "Join small files of {}",
    "sort": "Join small files of {}, by commit ts",
    "purge": "Rewrite {} without its deleted rows",
    "expire": "Forget old snapshots of {}",
    "vacuum": "Remove files of {} that no kept version has",
    "checkpoint": "Write a checkpoint of the log of {}",
}
_WHY: Final[dict[Action, str]] = {
    "join": "Every file costs a reader an open, however small it is. The rows stay the same.",
    "sort": "Every file costs a reader an open, however small it is. A reader of one time then passes over "
    "the rows of others. The rows stay the same.",
    "purge": "A reader reads deleted rows, and then drops them.",
    "expire": "Every commit writes the snapshots again, and a reader opens them first. Forgotten ones can't "
    "be read afterwards.",
    "vacuum": "Versions older than the time that is kept can't be read afterwards.",
    "checkpoint": "A reader opens every commit since the last checkpoint before it opens a file of rows.",
}


def lake_page(
    report: LakeReport,
    plan: LakePlan,
    made: float,
    where: str = "",
    done: Sequence[LakeOutcome] = (),
    before: LakeReport | None = None,
) -> str:
    """Render the page; `made` in Unix seconds, `where` the path of the plan, empty if it isn't written.

    After a compaction `report` is of the state after it, `before` of that before, `done` what was done.
    """
    when = datetime.fromtimestamp(made, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    parts = [
        f"<h1>{escape(report.url)}</h1><p>As of {when}.</p>",
        section("In short", "", _short(report, plan)),
    ]
    if before is not None:
        parts.append(_compared(before, report, done))
    parts.append(advice_section("What to do next", [*_advice(report, plan, where)], _NOTHING))
    parts += [_tiles(report), _tables(report), *_pictures(report)]
    return document(report.url, parts)


_NOTHING: Final = "Nothing: the files are large enough, and nothing old is left to remove."


def _short(report: LakeReport, plan: LakePlan) -> str:
    said = [_summary(report, plan)]
    for one in report.tables[:MOST_SAID]:
        said += _sentences(one)
    said += [f"{one.folder} isn't in this report: {one.why}" for one in report.left[:MOST_TABLES]]
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in said)}</ul>"


def _summary(report: LakeReport, plan: LakePlan) -> str:
    tables, files = counted(len(report.tables), "table"), counted(report.files, "file")
    has = f"{tables} with {size(report.bytes)} in {files}. Reading everything once takes"
    now, after = seconds(report.read_seconds), seconds(report.read_seconds_after)
    if not plan.steps:
        return f"{has} {now} here, and there is nothing that would make it shorter."
    takes = seconds(sum(step.seconds for step in plan.steps))
    steps = counted(len(plan.steps), "step")
    return f"{has} {now} here, and about {after} after the plan of {steps}, which takes about {takes}."


def _sentences(one: LakeTable) -> Iterator[str]:
    if one.files > 2 * one.files_after:
        yield (
            f"{one.name}: {counted(one.files, 'file')} of {size(one.bytes / one.files)} on average, where "
            f"{one.files_after:,} would do: {seconds(one.read_seconds)} for a read, then about "
            f"{seconds(one.read_seconds_after)}."
        )
    if one.deleted_rows:
        deleted = share(one.deleted_rows, one.rows + one.deleted_rows)
        yield f"{one.name}: {deleted} of the rows in its files are deleted."
    if one.keys and one.changes > 2 * one.keys:
        yield (
            f"{one.name}: a reader of the present rows reads {times(one.changes / one.keys)} as many changes "
            "as there are keys."
        )
    if one.hot_keys and one.hot_keys[0].changes > _HOT * one.changes and one.keys and one.keys > 1:
        hot = one.hot_keys[0]
        yield f"{one.name}: {share(hot.changes, one.changes)} of the changes are of one row, {hot.key}."
    if one.skew >= _SKEWED:
        most = max(one.partitions, key=lambda part: part.bytes)
        yield f"{one.name}: the partition {most.name} has {times(one.skew)} the bytes of an average one."
    if one.log_bytes > one.bytes or one.old_versions > _MANY_VERSIONS:
        old = f", of which {one.old_versions:,} needn't be kept" if one.old_versions else ""
        yield f"{one.name}: {counted(one.versions, 'version')}{old}, in {size(one.log_bytes)} of metadata."
    if one.unused_bytes > one.bytes:
        yield (
            f"{one.name}: {size(one.unused_bytes)} are of older versions, more than the table itself; "
            f"{size(one.removable_bytes)} of them may go now."
        )
    if one.unannounced:
        yield (
            f"{one.name}: a feed has yet to add {counted(one.unannounced, 'file')} of its last commit; until "
            "it has, nothing is removed."
        )


def _tiles(report: LakeReport) -> str:
    unused = sum(one.unused_bytes for one in report.tables)
    small = sum(one.small_files for one in report.tables)
    log = sum(one.log_bytes for one in report.tables)
    return tiles(
        [
            (size(report.bytes), "of rows", counted(report.files, "file")),
            (f"{small:,}", "small files", f"{share(small, report.files)} of all"),
            (size(unused), "of older versions", f"kept for {report.keep_hours} hours"),
            (size(log), "of metadata", f"{sum(one.versions for one in report.tables):,} versions"),
            (seconds(report.read_seconds), "to read all", f"then {seconds(report.read_seconds_after)}"),
        ]
    )


def _advice(report: LakeReport, plan: LakePlan, where: str) -> Iterator[Advice]:
    names = {one.folder: one.name for one in report.tables}
    path = quote(where or "plan.json")
    command = f"tidemill compact {quote(report.url)} --plan {path} --page after.html"
    commands = [command] if where else [f"tidemill analyze {quote(report.url)} --plan {path}", command]
    for number, step in enumerate(plan.steps[:MOST_TABLES]):
        yield Advice(
            _TITLES[step.action].format(names[step.folder]),
            _WHY[step.action],
            commands if not number else [],
            [*_gives(step)],
        )


def _gives(step: LakeStep) -> Iterator[tuple[str, str]]:
    yield "takes about", seconds(step.seconds)
    noun = {"checkpoint": "commits to replay", "expire": "snapshots"}.get(step.action, "files")
    yield noun, f"{step.files_before:,} → {step.files_after:,}"
    if step.writes_bytes:
        yield "writes", size(step.writes_bytes)
    if step.frees_bytes:
        later = "" if step.action == "vacuum" else ", by a later vacuum"
        yield "frees", f"{size(step.frees_bytes)}{later}"
    if step.partitions:
        yield "partitions", f"{len(step.partitions):,}"


def _tables(report: LakeReport) -> str:
    rows = [
        (
            one.name,
            f"{one.rows:,}",
            f"{one.files:,} → {one.files_after:,}",
            size(one.bytes),
            size(one.unused_bytes),
            share(one.deleted_rows, one.rows + one.deleted_rows),
            f"{one.versions:,}",
            f"{one.replayed:,}",
            times(one.skew),
            "unknown" if one.keys is None else times(one.changes / one.keys) if one.keys else "0",
            f"{seconds(one.read_seconds)} → {seconds(one.read_seconds_after)}",
        )
        for one in report.tables[:MOST_TABLES]
    ]
    head = (
        "table", "rows", "files", "bytes", "older", "deleted", "versions", "opened first", "skew",
        "changes per key", "read",
    )  # fmt: skip
    hidden = report.tables[MOST_TABLES:]
    left = rest(len(hidden), "table", f"together {size(sum(one.bytes for one in hidden))}")
    words = (
        "An arrow leads to the state after the plan. Opened first are files of the log or of the metadata. "
        "Skew is the largest partition's bytes over the average."
    )
    return section("Tables in figures", words, table(head, rows, numbers=range(1, len(head))), left)


def _pictures(report: LakeReport) -> Iterator[str]:
    shown = report.tables[:MOST_TABLES]
    drawn = [
        Bar(
            one.name,
            [("live", one.bytes), ("free", one.unused_bytes)],
            f"{size(one.bytes)}, {size(one.unused_bytes)} older",
        )
        for one in shown
    ]
    key = legend(("live", "the present version"), ("free", "older versions and leftovers"))
    yield section("Bytes of the tables", "", key, bars(drawn, "Bytes of each table"))
    files = [
        Bar(one.name, [("live", one.files_after), ("free", max(0, one.files - one.files_after))], _files(one))
        for one in shown
    ]
    key = legend(("live", "files that would do"), ("free", "more than these"))
    yield section("Files of the tables", "", key, bars(files, "Files of each table"))
    days = _by_day(report)
    if days:
        dates = [date for date, _ in days]
        sizes = [[("live", float(one))] for _, one in days]
        yield section(
            "Growth",
            f"By day of commit (UTC), {dates[0]} to {dates[-1]}.",
            columns(sizes, dates, "Bytes of rows by day", size, base=1024),
        )


def _files(one: LakeTable) -> str:
    return f"{one.files:,} → {one.files_after:,}"


def _by_day(report: LakeReport) -> list[tuple[str, int]]:
    parts: list[LakePartition] = [part for one in report.tables for part in one.partitions if part.name]
    dates = sorted({part.name for part in parts})[-MOST_DAYS:]
    return [(date, sum(part.bytes for part in parts if part.name == date)) for date in dates]


def comparison(before: LakeReport, after: LakeReport) -> list[tuple[str, str, str]]:
    """Return name, value before and value after of each figure."""
    return [(name, old, new) for (name, old), (_, new) in zip(_figures(before), _figures(after), strict=True)]


def _figures(report: LakeReport) -> list[tuple[str, str]]:
    tables = report.tables
    return [
        ("files", f"{report.files:,}"),
        ("bytes of rows", size(report.bytes)),
        ("bytes of older versions", size(sum(one.unused_bytes for one in tables))),
        ("deleted rows in files", f"{sum(one.deleted_rows for one in tables):,}"),
        ("versions", f"{sum(one.versions for one in tables):,}"),
        ("bytes of metadata", size(sum(one.log_bytes for one in tables))),
        ("files to open before rows", f"{sum(one.replayed for one in tables):,}"),
        ("reading everything, measured", seconds(report.read_seconds)),
    ]


def _compared(before: LakeReport, after: LakeReport, done: Sequence[LakeOutcome]) -> str:
    carried = [one for one in done if not one.left]
    words = (
        f"{len(carried)} of {counted(len(done), 'step')} were carried out in "
        f"{seconds(sum(one.seconds for one in done))}. Both columns were measured; a feed that runs added "
        "files in between."
    )
    steps = table(
        ("table", "step", "files", "bytes", "took", ""),
        [
            (
                one.step.folder,
                one.step.action,
                f"{one.files_before:,} → {one.files_after:,}",
                f"{size(one.bytes_before)} → {size(one.bytes_after)}",
                seconds(one.seconds),
                one.left,
            )
            for one in done
        ],
        numbers=(2, 3, 4),
    )
    figures = table(("", "before", "after"), comparison(before, after), numbers=(1, 2))
    return section("Before and after", words, figures, "<h4>The steps</h4>", steps)


def seconds(count: float) -> str:
    """Format a time for people."""
    if count < 1:
        return f"{count:.2f} s"
    if count < 120:
        return f"{count:.1f} s"
    return f"{count / 60:.0f} min" if count < 7200 else f"{count / 3600:.1f} h"
