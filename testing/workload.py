"""The sorter's workload W1: the same changes in every run."""

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
    """Changes of all tables, followed by a resolved ts."""

    tables: dict[int, list[KvChange]]
    """Changes by table, shuffled; the lists belong to the receiver."""
    resolved: Ts


def w1(events: int = 1_000_000, tables: int = 16, seed: int = 1) -> list[Window]:
    """Return `events` changes of about 216 bytes, each a transaction of its own, over `tables` tables.

    Commit timestamps ascend over all changes, shuffled within windows of 10,000; a resolved ts ends each
    window.
    """
    random = Random(seed)
    windows = []
    for start in range(0, events, WINDOW):
        by_table: dict[int, list[KvChange]] = {}
        order = list(range(start, min(start + WINDOW, events)))
        random.shuffle(order)
        for n in order:
            by_table.setdefault(n % tables, []).append(_change(n, random))
        windows.append(Window(by_table, FIRST_TS + 10 * min(start + WINDOW, events)))
    return windows


def w1_by_table(tables: int, each: int = 10, seed: int = 1) -> list[Window]:
    """Return `each` changes as in W1 for every table, sent at once; their commit timestamps are far apart,
    and one resolved ts ends them all. Each Window has 1,000 tables."""
    random = Random(seed)
    resolved = FIRST_TS + 10 * tables * each
    windows = []
    for start in range(0, tables, 1000):
        by_table = {}
        for table in range(start, min(start + 1000, tables)):
            order = list(range(table, tables * each, tables))
            random.shuffle(order)
            by_table[table] = [_change(n, random) for n in order]
        windows.append(Window(by_table, resolved))
    return windows


def _change(n: int, random: Random) -> KvChange:
    ts = FIRST_TS + 10 * (n + 1)
    return KvChange(ts, ts - 5, PUT, random.randbytes(KEY_BYTES), random.randbytes(VALUE_BYTES))
