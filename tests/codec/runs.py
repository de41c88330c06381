"""The recorded rows of every type as runs: a run for each row, and what they decode to."""

from __future__ import annotations

from itertools import pairwise

from tidemill.codec.mysql.layout import Layouts
from tidemill.events import Run

from .vectors import Vector


def runs_of_rows(vector: Vector, op: int = 23, commit_ts: int = 7) -> list[Run]:
    """Each row as an event of its own; of updates each row with the one after it, and with itself."""
    layouts = Layouts()
    layout = layouts.layout(layouts.number_of(vector.table_map))
    runs = []
    for event in vector.events:
        whole = layout.block().add(event, commit_ts, commit_ts)
        starts = [*whole.starts(), len(event)]  # type: ignore[attr-defined]
        images = [event[a:b] for a, b in pairwise(starts)]
        bodies = images
        columns = event[28 : starts[0]]
        if op == 24:
            bodies = [a + b + a + a for a, b in zip(images, images[1:] + images[:1], strict=True)]
            columns *= 2
        for body in bodies:
            rest = event[13:28] + columns + body
            size = (13 + len(rest)).to_bytes(4, "little")
            runs.append(
                layout.block().add(event[:4] + bytes((op,)) + event[5:9] + size + rest, commit_ts, commit_ts)
            )
    return runs
