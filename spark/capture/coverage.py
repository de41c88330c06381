"""A check that a capture follows all tables that a query reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...chain.selection.tables import TablePatterns

_WILD: Final = ("*", "?", "[", "~")


def uncovered(followed: Sequence[str], wanted: Sequence[str]) -> str:
    """Return a pattern of `wanted` that may name tables, now or later, that `followed` doesn't; empty: none.

    Conservative: exclusions in `followed` make a pattern uncovered unless `wanted` ends with the same ones.
    """
    if tuple(followed) == tuple(wanted):
        return ""
    followed = _without_common_end(followed, wanted)
    included = [pattern for pattern in followed if not pattern.startswith("!")]
    has_all = len(included) == len(followed)
    if not followed:
        return wanted[0]
    every = TablePatterns.parse(followed)
    for pattern in wanted:
        schema, _, table = pattern.strip().partition(".")
        if pattern.startswith("!"):
            continue
        if not any(char in pattern for char in _WILD):
            is_covered = every.matches(schema, table)
        else:
            is_covered = has_all and any(_covers(one, pattern) for one in included)
        if not is_covered:
            return pattern
    return ""


def _without_common_end(followed: Sequence[str], wanted: Sequence[str]) -> Sequence[str]:
    """Return `followed` without the exclusions at the end of both, which `wanted` doesn't need either."""
    count = 0
    for mine, theirs in zip(reversed(followed), reversed(wanted), strict=False):
        if mine != theirs or not mine.startswith("!"):
            break
        count += 1
    return followed[: len(followed) - count]


def _covers(followed: str, wanted: str) -> bool:
    """True if `followed` matches every name that `wanted` matches."""
    if followed == wanted:
        return True
    mine, _, my_table = followed.strip().partition(".")
    schema, _, table = wanted.strip().partition(".")
    return _part_covers(mine, schema) and _part_covers(my_table, table)


def _part_covers(followed: str, wanted: str) -> bool:
    """True if they are equal, or if `followed` is a prefix of `wanted` and a star."""
    prefix = followed.removesuffix("*")
    if followed.endswith("*") and not any(char in prefix for char in _WILD):
        return wanted.startswith(prefix)
    return followed == wanted
