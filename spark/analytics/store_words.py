"""Sentences that explain the figures of a store, with its own numbers."""

from __future__ import annotations

from collections.abc import Iterator

from .buckets import Buckets
from .paper import counted, share, size, times
from .report import StoreReport


def short_words(report: StoreReport) -> Iterator[str]:
    """Yield what matters, a sentence each."""
    changes = sum(one.changes for one in report.tables)
    yield (
        f"{size(report.bytes)} in {counted(changes, 'change')} wait here, {size(report.dead_bytes)} of which "
        "are delivered and only take space."
    )
    steps = report.plan.steps
    if steps:
        freed, written = sum(one.dead_bytes for one in steps), sum(one.live_bytes for one in steps)
        yield f"Compaction would free {size(freed)}, and write {size(written)}."
    largest = max(report.tables, key=lambda one: one.bytes, default=None)
    if largest is not None and len(report.tables) > 1:
        yield f"{largest.name} has {share(largest.bytes, report.bytes)} of the bytes."
    if report.hot_keys and changes:
        hot = report.hot_keys[0]
        yield f"{share(hot.changes, changes)} of the changes are of one row of {hot.name}."


def skew_words(report: StoreReport) -> str:
    largest = max(report.stores, key=lambda one: one.bytes, default=None)
    if largest is None:
        return "There is no store."
    if len(report.stores) == 1:
        return "There is one store, so nothing can be uneven."
    even = f"an even share would be {100 / len(report.stores):.0f} %"
    words = (
        f"{largest.store} has {share(largest.bytes, report.bytes)} of the bytes; {even}. Skew is the ratio "
        f"of the two, {times(report.skew)}. A table's changes all go to one store, chosen by a hash of its "
        "id, so "
    )
    if report.skew < 1.2:
        return words + "few large tables would make it uneven. It is even."
    return (
        words
        + "large tables in the same store make it uneven: its disk writes and merges more than the rest."
    )


def overlap_words(report: StoreReport) -> str:
    worst = max(report.tables, key=lambda one: one.overlap, default=None)
    read = max(report.tables, key=lambda one: one.read_amplification, default=None)
    if worst is None or read is None:
        return "The store has no changes."
    words = (
        "To read the changes of one minute, the feed merges all blocks that have some of them: the overlap. "
        f"It is largest for {worst.name}, {counted(worst.overlap, 'block')}. Blocks are read whole, and may "
        "have changes of other tables: read amplification is the bytes of blocks per byte of the table. "
    )
    if read.read_amplification < 1.1:
        return words + "Here hardly anything is read in vain."
    return words + f"It is largest for {read.name}, {times(read.read_amplification)}."


def windows_words(report: StoreReport) -> str:
    overlapping = sum(one.overlapping_files for one in report.windows)
    words = (
        "A generation is written, compacted and dropped as a whole. Dead changes in a block without live "
        "ones are free once it is compacted; those that share a block with live ones stay until these are "
        "acknowledged too."
    )
    if overlapping:
        pairs = counted(overlapping, "pair")
        words += (
            f" {pairs} of files of a generation overlap: both are searched for a key in their common range."
        )
    return words


def growth_words(report: StoreReport, columns: Buckets) -> str:
    if not columns.count:
        return "The store has no changes."
    rows = f"{report.rows:,} rows" if report.rows is not None else "an unknown number of rows"
    changes = sum(one.changes for one in report.tables)
    minutes = max(cell.minute for cell in report.cells) - min(cell.minute for cell in report.cells) + 1
    return (
        f"Changes that are still in the store, by their commit time (UTC), a column per {columns.unit}: "
        f"{size(report.bytes)}, {counted(changes, 'change')} and {rows} of {counted(minutes, 'minute')}; "
        f"on average {size(report.bytes / minutes)} per minute."
    )
