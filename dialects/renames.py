"""The order of renames that happen at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Rename(NamedTuple):
    old: str
    new: str
    temporary: str
    """A name that nothing else has."""


def in_order(renames: Sequence[Rename], *, folds: bool = True) -> list[tuple[str, str]]:
    """Return single renames, from and to, that one after the other have the effect of all at once.

    If a name is both left and taken, all pass through their temporary names. With `folds`, the database has
    no two names that differ only in case.
    """
    key = str.casefold if folds else str
    renames = [one for one in renames if one.old != one.new]
    if {key(one.old) for one in renames}.isdisjoint([key(one.new) for one in renames]):
        return [(one.old, one.new) for one in renames]
    return [
        *((one.old, one.temporary) for one in renames),
        *((one.temporary, one.new) for one in renames),
    ]
