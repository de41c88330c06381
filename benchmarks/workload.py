"""W1, the sorter's workload: the same changes in every run."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ..events import PUT, KvChange, Ts, compose_ts

WINDOW = 10_000
KEY_BYTES = 40
VALUE_BYTES = 150
FIRST_TS = compose_ts(1_700_000_000_000)


@dataclass(frozen=True, slots=True)
class Window:
    """Changes of all tables that a resolved ts follows."""

    tables: dict[int, list[KvChange]]
    """By table, shuffled; the lists are the receiver's."""
    resolved: Ts


def w1(events: int = 1_000_000, tables: int = 16, seed: int = 1) -> list[Window]:
    """`events` changes of about 216 bytes, each a transaction of its own, over `tables` tables.

    Commit timestamps ascend over all, shuffled within windows of 10,000; a resolved ts ends each.
    """
    random = Random(seed)
    windows = []
    for start in range(0, events, WINDOW):
        by_table: dict[int, list[KvChange]] = {}
        order = list(range(start, min(start + WINDOW, events)))
        random.shuffle(order)
        for n in order:
            ts = FIRST_TS + 10 * (n + 1)
            change = KvChange(ts, ts - 5, PUT, random.randbytes(KEY_BYTES), random.randbytes(VALUE_BYTES))
            by_table.setdefault(n % tables, []).append(change)
        windows.append(Window(by_table, FIRST_TS + 10 * min(start + WINDOW, events)))
    return windows
