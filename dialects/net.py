"""The sum of changes of a table without a key.

A row without a key has no identity: of equal rows, any one is as good as another. So changes that follow each
other have the same result as their sum: rows that must be there and go, and rows that come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..events import Row
from .groups import ChangeGroup


class Net(NamedTuple):
    """The sum of changes: `gone` must be there before them."""

    gone: Counter[Row]
    come: Counter[Row]


def net_of(groups: Sequence[ChangeGroup]) -> Net:
    """Return the sum of changes of one table, in order."""
    gone: Counter[Row] = Counter()
    come: Counter[Row] = Counter()
    for group in groups:
        for change in group.changes:
            if (before := change.before) is not None:
                if come[before]:
                    come[before] -= 1
                else:
                    gone[before] += 1
            if (after := change.after) is not None:
                come[after] += 1
    return Net(gone, come)
