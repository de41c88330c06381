"""Figures of a store before and after a compaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from ...store.plan import StepOutcome
from .paper import section, size, table, times
from .report import StoreReport

_Measure: TypeAlias = tuple[str, Callable[[StoreReport], float], Callable[[float], str]]


def _number(value: float) -> str:
    return f"{value:,.0f}"


_MEASURES: Final[Sequence[_Measure]] = (
    ("keys and values", lambda one: one.bytes, size),
    ("of them dead", lambda one: one.dead_bytes, size),
    ("files", lambda one: sum(store.file_bytes for store in one.stores), size),
    ("generations", lambda one: len(one.windows), _number),
    ("number of files", lambda one: sum(window.files for window in one.windows), _number),
    ("read amplification", lambda one: one.read_amplification, times),
    (
        "bytes stored per live byte",
        lambda one: one.bytes / (one.bytes - one.dead_bytes) if one.bytes > one.dead_bytes else 0.0,
        times,
    ),
    (
        "write amplification, largest",
        lambda one: max([store.write_amplification for store in one.stores], default=0.0),
        times,
    ),
)


class Compaction(Struct, frozen=True):
    """A plan that was carried out, with the reports from before and after it."""

    before: StoreReport
    outcomes: Sequence[StepOutcome]
    after: StoreReport


def comparison(done: Compaction) -> list[tuple[str, str, str]]:
    """Return name, value before and value after of each figure."""
    return [(name, show(of(done.before)), show(of(done.after))) for name, of, show in _MEASURES]


def compaction_section(done: Compaction) -> str:
    carried = [one for one in done.outcomes if not one.left]
    freed = sum(one.bytes_before - one.bytes_after for one in carried)
    moved = sum(one.bytes_after for one in carried)
    words = (
        f"{len(carried)} of {len(done.outcomes)} steps were carried out: they freed {size(freed)} and wrote "
        f"{size(moved)}. Both columns were measured in the running feed, which wrote and dropped changes "
        "of its own in between."
    )
    steps = table(
        ("store", "generation", "before", "after", ""),
        [
            (one.store, one.window, size(one.bytes_before), size(one.bytes_after), one.left)
            for one in done.outcomes
        ],
        numbers=(2, 3),
    )
    figures = table(("", "before", "after"), comparison(done), numbers=(1, 2))
    return section("Before and after the compaction", words, figures, "<h4>Its steps</h4>", steps)
