"""Histories of several sources, and the orders in which a merge may give their entries."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tidemill.timeline import Entry

AFTER_ALL = 1 << 62
"""The ts of a source that has nothing left to send."""

History = dict[str, list[Entry]]
Given = list[tuple[str, Entry]]


def history(random: Random, sources: str, length: int, *, regressions: bool) -> History:
    """Return entries of each source: transactions in parts and whole ones, and others."""
    return {name: _entries(random, name, length, regressions) for name in sources}


def _entries(random: Random, name: str, length: int, regressions: bool) -> list[Entry]:
    found: list[Entry] = []
    ts = random.randrange(3)
    while len(found) < length:
        ts = max(0, ts + random.choice([0, 1, 1, 2, 4] + [-3] * regressions))
        if random.random() < 0.4:
            parts = ["begin", *["rows"] * random.randrange(3), "end"]
            # The rows of a large transaction are often older than its beginning.
            times = [ts] + [max(0, ts + regressions * random.randrange(-3, 4)) for _ in parts[1:]]
        else:
            parts, times = [random.choice(["whole", "other"])], [ts]
        found += [Entry(at, part, name) for at, part in zip(times, parts, strict=True)]
    # Each entry is recognized by its number.
    return [Entry(one.ts, one.part, (name, number)) for number, one in enumerate(found)]


def assert_merged(history: History, given: Given, *, transactions: bool) -> None:
    """Assert that each entry came once, in its source's order, and none before one of another with a lower
    ts; with `transactions`, transactions are whole and have the ts of their beginning."""
    left = {name: list(entries) for name, entries in history.items()}
    owner, threshold = "", -1
    for source, entry in given:
        assert entry == left[source][0], f"{entry} isn't the next one of {source}"
        if transactions and owner:
            assert source == owner, f"{entry} is inside a transaction of {owner}"
        elif entry.ts != threshold:  # those with an equal ts may pass together
            lowest = min([entries[0].ts for entries in left.values() if entries])
            assert entry.ts == lowest, f"{entry} came before {lowest}"
            threshold = entry.ts
        if transactions:
            owner = source if not entry.ends and (owner or entry.part == "begin") else ""
        left[source].pop(0)
    assert not any(left.values())


def assert_repeated_only(history: History, given: Sequence[tuple[str, Entry]], *, transactions: bool) -> None:
    """Assert that each source's entries came in order, with none left out; those of an interrupted source may
    come again, but no other source inside a transaction that wasn't interrupted."""
    furthest = dict.fromkeys(history, -1)
    for source, entry in given:
        number = entry.item[1]
        assert number <= furthest[source] + 1, f"{entry}: {furthest[source] + 1} of {source} is missing"
        furthest[source] = max(furthest[source], number)
    assert furthest == {name: len(entries) - 1 for name, entries in history.items()}
    if transactions:
        for position, (source, entry) in enumerate(given):
            if entry.part == "end":
                begun = position
                while given[begun][1].part != "begin":
                    begun -= 1
                    assert given[begun][0] == source, f"{given[begun]} is inside a transaction of {source}"
