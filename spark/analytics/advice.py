"""Next steps that the figures suggest, each with its command and what it would give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from shlex import quote
from typing import Final

from msgspec import Struct

from .paper import counted, section, size, times
from .report import ArchiveReport, StoreReport

SKEWED: Final = 1.5
"""Skew from which it is worth a step."""
MANY_BLOCKS: Final = 100
"""Overlap from which it is worth a step, if the blocks are small."""
SMALL_BLOCK_BYTES: Final = 32 << 10


class FeedPlace(Struct, frozen=True):
    """Names of things in the commands."""

    feed: str = "feed.toml"
    """Arguments that name the feed."""
    plan: str = ""
    """Path of the plan; empty if it wasn't written."""
    slowest: str = ""
    """Name of the sink that has acknowledged least; empty if unknown."""


class Advice(Struct, frozen=True):
    title: str
    text: str
    commands: Sequence[str]
    """Commands of a shell, or lines of a feed.toml; none if those of an earlier step do this, too."""
    gives: Sequence[tuple[str, str]]
    """Name and value of each expected figure."""


def store_advice(report: StoreReport, place: FeedPlace) -> Iterator[Advice]:
    yield from _compaction(report, place)
    yield from _delivery(report, place)
    yield from _balance(report)
    yield from _blocks(report)


def _compaction(report: StoreReport, place: FeedPlace) -> Iterator[Advice]:
    steps = report.plan.steps
    if not steps:
        return
    freed, written = sum(step.dead_bytes for step in steps), sum(step.live_bytes for step in steps)
    windows = len(report.windows)
    after = windows - len(steps) + (1 if written else 0)
    plan = place.plan or "plan.json"
    commands = [f"tidemill compact {place.feed} --plan {quote(plan)} --page after.html"]
    if not place.plan:
        commands.insert(0, f"tidemill analyze {place.feed} --plan {quote(plan)}")
    yield Advice(
        f"Compact {counted(len(steps), 'generation')}",
        "The running feed moves the live changes out of these generations and drops them. The command prints "
        "the figures from before and after, and writes the page of the state after.",
        commands,
        [
            ("frees", size(freed)),
            ("writes", size(written)),
            ("store", f"{size(report.bytes)} → {size(report.bytes - freed)}"),
            ("generations", f"{windows} → {after}"),
            (
                "read amplification",
                f"{times(report.read_amplification)} → {times(report.read_amplification_after)}",
            ),
        ],
    )


def _delivery(report: StoreReport, place: FeedPlace) -> Iterator[Advice]:
    stuck = report.dead_bytes - sum(step.dead_bytes for step in report.plan.steps)
    live = report.bytes - report.dead_bytes
    if not live:
        return
    sink = f"sink {place.slowest}" if place.slowest else "the slowest sink"
    rest = f" and {size(stuck)} of dead bytes that the plan leaves" if stuck else ""
    yield Advice(
        f"Find out what {sink} waits for",
        f"{size(live)} are live: {sink} hasn't acknowledged them. As soon as it has, the feed drops them"
        f"{rest} without rewriting anything.",
        [f"tidemill explain {place.feed}", f"tidemill status {place.feed}"],
        [("frees", size(live + stuck)), ("writes", size(0)), ("read amplification", "unchanged until then")],
    )


def _balance(report: StoreReport) -> Iterator[Advice]:
    if report.skew < SKEWED or len(report.stores) < 2:
        return
    yield Advice(
        "Use one store",
        "A table's changes all go to one store, chosen by a hash of its id. With this skew most changes go "
        "to one of them anyway, and the others only divide the memory for buffers. Takes effect at the "
        "feed's next start.",
        ["[sorter]", "stores = 1"],
        [("frees", size(0)), ("skew", f"{times(report.skew)} → {times(1.0)}")],
    )


def _blocks(report: StoreReport) -> Iterator[Advice]:
    worst = max(report.tables, key=lambda one: one.overlap, default=None)
    if worst is None or worst.overlap < MANY_BLOCKS or worst.bytes >= worst.blocks * SMALL_BLOCK_BYTES:
        return
    yield Advice(
        "Spill later, in larger blocks",
        f"Up to {worst.overlap:,} blocks of {worst.name} have changes of the same minute, and a block is "
        f"{size(worst.bytes / worst.blocks)} on average: they were spilled as they came. With more memory "
        "more changes are sorted before they go to disk. Takes effect at the feed's next start.",
        ["[sorter]", 'memory_bytes = "256MiB"'],
        [("frees", size(0)), ("blocks to merge", f"fewer than {worst.overlap:,}")],
    )


def archive_advice(report: ArchiveReport) -> Iterator[Advice]:
    folded = [one for one in report.tables if not one.left and one.dead_bytes]
    if not folded:
        return
    freed = sum(one.dead_bytes for one in folded)
    live = sum(one.live for one in folded)
    changes = sum(one.changes for one in folded)
    yield Advice(
        f"Compact the archive of {counted(len(folded), 'table')}",
        "Only the latest row of each key stays, of the changes up to this commit ts, the archive's last one; "
        "choose an earlier one to keep later changes. What the rows were before can't be read any more.",
        [f"tidemill compact --archive {quote(report.directory)} --up-to {report.newest}"],
        [
            ("frees", f"about {size(freed)}"),
            ("writes", f"about {size(sum(one.bytes for one in folded) - freed)}"),
            ("changes read per row", f"{times(changes / max(1, live))} → {times(1.0 if live else 0.0)}"),
        ],
    )


def advice_section(title: str, advice: Sequence[Advice], otherwise: str) -> str:
    """Render the steps, or the sentence `otherwise` if there are none."""
    if not advice:
        return section(title, otherwise)
    return section(title, "", f"<ol>{''.join(map(_item, advice))}</ol>")


def _item(one: Advice) -> str:
    gives = "".join(f"<span><i>{escape(name)}</i> <b>{escape(value)}</b></span>" for name, value in one.gives)
    commands = f"<pre>{escape(chr(10).join(one.commands))}</pre>" if one.commands else ""
    return (
        f"<li><h4>{escape(one.title)}</h4><p>{escape(one.text)}</p>{commands}"
        f'<div class="gives">{gives}</div></li>'
    )
