"""Compares what the target has at each commit with what the source has committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ...events import Checkpoint, Row, TableProgress, Ts, progress_of
from .selection import Selection
from .target import Snapshot
from .truth import Replay, State, TableState, Truth

MOST_ROWS = 4
"""Maximum number of rows of a kind in a violation's text."""


class Violation(Struct, frozen=True):
    time: float
    text: str


def audit(
    truth: Truth,
    snapshots: Sequence[Snapshot],
    selection: Selection,
    as_of: Callable[[Checkpoint], Ts],
) -> list[Violation]:
    """Return what is wrong: each commit of the target must be exactly the selected source as of its
    checkpoint.

    That is order, whole transactions, each once, the schema of each row, and nothing above the checkpoint.
    `as_of` returns the ts of the truth up to which the target has rows at a checkpoint.
    """
    violations: list[Violation] = []
    replay, last = Replay(truth), 0
    for snapshot in snapshots:
        checkpoint = snapshot.checkpoint
        if checkpoint is None:
            if snapshot.tables:
                violations.append(Violation(snapshot.time, "the target has tables without a checkpoint"))
            continue
        if checkpoint.ts < last:
            text = f"the checkpoint went back, from {last} to {checkpoint.ts}"
            violations.append(Violation(snapshot.time, text))
            continue
        last = checkpoint.ts
        state = selection.of(replay.advance(as_of(checkpoint)))
        violations += [
            Violation(snapshot.time, f"the target at checkpoint {checkpoint.ts}: {text}")
            for text in _differences(state, snapshot, checkpoint)
        ]
    return violations


def _differences(state: State, snapshot: Snapshot, checkpoint: Checkpoint) -> Iterator[str]:
    for name in sorted(state.keys() | snapshot.tables.keys()):
        wanted, have = state.get(name), snapshot.tables.get(name)
        progress = progress_of(checkpoint.loading, name)
        if progress is None:  # not begun: absent, or an old copy until it is loaded again
            continue
        if wanted is None:
            yield f"{name} is there, and the source has no such table"
        elif have is None:
            yield f"{name} is missing"
        elif have[0] != wanted.columns:
            yield f"{name} has the columns {', '.join(have[0])}; the source {', '.join(wanted.columns)}"
        else:
            yield from _rows_differ(name, wanted, have[1], progress)


def _rows_differ(
    name: str, wanted: TableState, have: Sequence[Row], progress: TableProgress
) -> Iterator[str]:
    there, expected = Counter(have), Counter(wanted.rows.values())
    if extra := list((there - expected).elements()):
        yield f"{name} has {_some(extra)}, which the source hasn't"
    missing = list((expected - there).elements())
    match progress.last:
        case None:
            pass
        case (int(last),):
            missing = [row for row in missing if isinstance(row[0], int) and row[0] <= last]
        case _:
            missing = []
    if missing:
        yield f"{name} lacks {_some(missing)}"


def _some(rows: Sequence[Row]) -> str:
    more = f" and {len(rows) - MOST_ROWS} more" if len(rows) > MOST_ROWS else ""
    return ", ".join(map(repr, rows[:MOST_ROWS])) + more
